//go:build e2e

// Package teams onboards teams as a cluster admin does, with the program and with the
// operator, against a real API server and kube-controller-manager. Gatekeeper is not
// there: nothing of this may depend on it.
package teams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

const (
	root = "../.."
	// settle bounds what is waited for.
	settle = 20 * time.Second
	// landwaiter is the namespace of the installation.
	landwaiter = "landwaiter-system"
)

// w is what all tests share: one cluster, each test with teams of its own.
var w *world

type world struct {
	*cluster.Cluster
	binary, charts, dir string
	// rendered has the objects of the chart.
	rendered []*unstructured.Unstructured
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landwaiter-teams-")
	if err == nil {
		w, err = start(dir)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		err = cluster.Until(ctx, fenced) // policies take effect a moment after they are made
		cancel()
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "teams:", err)
	} else {
		code = m.Run()
	}
	if w != nil {
		w.Stop()
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "teams: logs are kept in", filepath.Join(dir, "logs"))
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "teams:", err)
	}
	return code
}

// start starts the cluster and installs the chart, with guardrails and the rights of the
// operator. Its Deployments run nothing: there are no nodes.
func start(dir string) (*world, error) {
	made := &world{dir: dir}
	tools := map[string]string{}
	for _, name := range []string{"LANDWAITER_BINARY", "LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS"} {
		if tools[name] = os.Getenv(name); tools[name] == "" {
			return nil, fmt.Errorf("%s is not set; run make e2e", name)
		}
	}
	made.binary, made.charts = tools["LANDWAITER_BINARY"], tools["LANDWAITER_CHART_TOOLS"]
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var err error
	made.Cluster, err = cluster.Start(ctx, cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: dir, Progress: os.Stderr, WithoutGatekeeper: true})
	if err != nil {
		return nil, err
	}
	if err := made.install(ctx); err != nil {
		made.Stop()
		return nil, err
	}
	return made, nil
}

func (w *world) install(ctx context.Context) error {
	var err error
	if w.rendered, err = w.template(ctx, "landwaiter", "--namespace", landwaiter, "--set", "guardrails.enabled=true,operator.enabled=true,mutation.enabled=true,operator.mutation=true"); err != nil {
		return err
	}
	definitions, err := cluster.DecodeFile("testdata/definitions.yaml")
	if err != nil {
		return err
	}
	for _, name := range []string{landwaiter, cluster.GatekeeperNamespace} {
		definitions = append(definitions, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
	}
	if err := w.Apply(ctx, append(definitions, w.rendered...)...); err != nil {
		return err
	}
	return w.listAll(ctx)
}

// listAll lists all Tenants for the operator's fence, those to come too: Landwaiter, which
// lists them by name, does not run in most tests.
func (w *world) listAll(ctx context.Context) error {
	return w.list(ctx, map[string]any{"apiGroups": []any{"landwaiter.dev"}, "resources": []any{"tenants"}, "verbs": []any{"operate"}})
}

func (w *world) list(ctx context.Context, rules ...any) error {
	return w.Apply(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": "landwaiter-operated-tenants"}, "rules": append([]any{}, rules...)}})
}

// template renders a chart.
func (w *world) template(ctx context.Context, chart string, args ...string) ([]*unstructured.Unstructured, error) {
	var stdout, stderr bytes.Buffer
	helm := exec.CommandContext(ctx, filepath.Join(w.charts, "helm"), append([]string{"template", "landwaiter", filepath.Join(root, "charts", chart)}, args...)...)
	helm.Stdout, helm.Stderr = &stdout, &stderr
	if err := helm.Run(); err != nil {
		return nil, fmt.Errorf("helm template: %w: %s", err, stderr.String())
	}
	return cluster.Decode(stdout.Bytes())
}

// within returns a context that ends when the test must have seen something.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	t.Cleanup(cancel)
	return ctx
}

// result is what the program did.
type result struct {
	code           int
	stdout, stderr string
}

// try runs the program as a cluster admin.
func try(t *testing.T, args ...string) result {
	t.Helper()
	return tryWith(t, "", args...)
}

func tryWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), w.binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig())
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// must runs the program, which must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := try(t, args...)
	require.Equal(t, 0, r.code, "%v: %s%s", args, r.stdout, r.stderr)
	return r.stdout
}

// added is what tenant add -o json prints of one Tenant.
type added struct {
	Tenant, Home                                   string
	Members                                        []string
	Created, Changed, Unchanged, Removed, Released int
}

// add runs tenant add.
func add(t *testing.T, args ...string) added {
	t.Helper()
	var printed struct{ Tenants []added }
	out := must(t, append([]string{"tenant", "add", "-o", "json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &printed), out)
	require.Len(t, printed.Tenants, 1)
	return printed.Tenants[0]
}

// gone deletes a team and its namespaces at the end of a test.
func gone(t *testing.T, names ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		defer cancel()
		for _, name := range names {
			command := exec.CommandContext(ctx, w.binary, "tenant", "delete", name, "--delete-namespaces", "--yes")
			command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig())
			if out, err := command.CombinedOutput(); err != nil && !strings.Contains(string(out), "there is no Tenant") {
				t.Errorf("delete Tenant %s: %v: %s", name, err, out)
			}
		}
	})
}

// owned are the kinds that a Tenant's objects have.
func owned() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "ResourceQuota"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}, {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		{Version: "v1", Kind: "Namespace"},
	}
}

// objectsOf returns what carries a Tenant's label, by kind, namespace and name.
func objectsOf(t *testing.T, tenant string) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, kind := range owned() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		require.NoError(t, w.Client.List(within(t), list, client.MatchingLabels{v1alpha1.LabelTenant: tenant}))
		for i := range list.Items {
			object := &list.Items[i]
			found[strings.TrimPrefix(kind.Kind+" "+object.GetNamespace()+"/", "/")+object.GetName()] = object
		}
	}
	return found
}

// versions returns the resource versions of objects.
func versions(objects map[string]*unstructured.Unstructured) map[string]string {
	made := map[string]string{}
	for name, object := range objects {
		made[name] = object.GetResourceVersion()
	}
	return made
}

// exists reports whether a namespace exists.
func exists(t *testing.T, namespace string) bool {
	t.Helper()
	err := w.Client.Get(within(t), client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// makeNamespace makes a namespace as somebody does who knows of no Tenant.
func makeNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	require.NoError(t, w.Client.Create(within(t), object))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete namespace %s: %v", name, err)
		}
	})
}

// provisioned waits for the condition that the operator writes.
func provisioned(t *testing.T, tenant string, status metav1.ConditionStatus, reason string) string {
	t.Helper()
	live := &v1alpha1.Tenant{}
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKey{Name: tenant}, live); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionProvisioned)
		if condition == nil || condition.Status != status || condition.Reason != reason || condition.ObservedGeneration != live.Generation {
			return fmt.Errorf("Provisioned is %+v", condition)
		}
		return nil
	}))
	return meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionProvisioned).Message
}

// eventually waits until a team has, or does not have, objects.
func eventually(t *testing.T, tenant string, limit time.Duration, check func(map[string]*unstructured.Unstructured) bool) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var last []string
	require.NoError(t, cluster.Until(ctx, func(context.Context) error {
		objects := objectsOf(t, tenant)
		if check(objects) {
			return nil
		}
		last = slices.Sorted(func(yield func(string) bool) {
			for name := range objects {
				if !yield(name) {
					return
				}
			}
		})
		return errors.New("not yet")
	}), "%v", last)
	t.Logf("after %s", time.Since(began).Round(time.Millisecond))
}
