//go:build e2e || flux

// Package gitops lets teams' repositories loose on a real API server with guardrails, and
// sees where they end. With the tag flux the real controllers of Flux apply them, fetched
// from a real Git server; with the tag e2e, which every CI run has, kustomize builds them
// and they are applied as the team's account, which is what Flux does.
package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/flux"
)

const (
	root = "../.."
	// settle bounds what is waited for.
	settle = 90 * time.Second
	// system is the namespace of Landwaiter.
	system = "landwaiter-system"
)

// w is what all tests share: one cluster, each test with teams of its own.
var w *world

type world struct {
	*cluster.Cluster
	binary, charts, dir string
	// rendered has the objects of the chart.
	rendered []*unstructured.Unstructured
	// stops ends what tests have started for all of them, in reverse order.
	stops []func()
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landwaiter-gitops-")
	if err == nil {
		err = start(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
	} else {
		code = m.Run()
	}
	if w != nil && w.Cluster != nil {
		for _, stop := range slices.Backward(w.stops) {
			stop()
		}
		w.Stop()
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "gitops: logs are kept in", filepath.Join(dir, "logs"))
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
	}
	return code
}

// tool returns the value of a variable that the make targets set.
func tool(name string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", fmt.Errorf("%s is not set; run make flux or make e2e", name)
	}
	return value, nil
}

// start starts a cluster with the chart's roles, guardrails and operator's account, but
// without what runs.
func start(dir string) error {
	tools, err := tool("LANDWAITER_CLUSTER_TOOLS")
	if err != nil {
		return err
	}
	w = &world{dir: dir}
	var errs [2]error
	w.binary, errs[0] = tool("LANDWAITER_BINARY")
	w.charts, errs[1] = tool("LANDWAITER_CHART_TOOLS")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	w.Cluster, err = cluster.Start(ctx, cluster.Options{Tools: tools, Dir: dir, Progress: os.Stderr, WithoutGatekeeper: true, Workloads: true,
		// As in a real cluster: with the administrator's rights, controllers would pass every rule.
		ManagerArgs: []string{"--use-service-account-credentials=true"}})
	if err != nil {
		return err
	}
	return w.install(ctx)
}

func (w *world) install(ctx context.Context) error {
	if err := w.installFlux(ctx); err != nil {
		return err
	}
	var err error
	if w.rendered, err = w.template(ctx); err != nil {
		return err
	}
	other := []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy", "Provider"} // nothing of it runs
	fixed := slices.DeleteFunc(slices.Clone(w.rendered), func(o *unstructured.Unstructured) bool { return slices.Contains(other, o.GetKind()) })
	// Landwaiter, which lists Tenants for the operator's fence, does not run either: this lists all that come.
	fixed = append(fixed, of("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: landwaiter-operated-tenants}, rules: [{apiGroups: [landwaiter.dev], resources: [tenants], verbs: [operate]}]}"))
	for _, name := range []string{system, cluster.GatekeeperNamespace} {
		fixed = append(fixed, of("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	}
	return w.Apply(ctx, fixed...)
}

// installFlux installs Flux's own definitions where its tools are built, and else their
// names and scopes, which are all that is needed without controllers.
func (w *world) installFlux(ctx context.Context) error {
	if tools := os.Getenv("LANDWAITER_FLUX_TOOLS"); tools != "" {
		return flux.Install(ctx, w.Cluster, tools)
	}
	definitions, err := cluster.DecodeFile("../guard/testdata/flux.yaml")
	if err != nil {
		return err
	}
	return w.Apply(ctx, definitions...)
}

// template renders the chart.
func (w *world) template(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var stdout, stderr bytes.Buffer
	helm := exec.CommandContext(ctx, filepath.Join(w.charts, "helm"), "template", "landwaiter", filepath.Join(root, "charts/landwaiter"),
		"--namespace", system, "--set", "guardrails.enabled=true,operator.enabled=true")
	helm.Stdout, helm.Stderr = &stdout, &stderr
	if err := helm.Run(); err != nil {
		return nil, fmt.Errorf("helm template: %w: %s", err, stderr.String())
	}
	return cluster.Decode(stdout.Bytes())
}

// of makes an object from YAML.
func of(format string, args ...any) *unstructured.Unstructured {
	objects, err := cluster.Decode(fmt.Appendf(nil, format, args...))
	if err != nil || len(objects) != 1 {
		panic(fmt.Sprintf("%d objects, %v: %s", len(objects), err, fmt.Sprintf(format, args...)))
	}
	return objects[0]
}

// within returns a context that ends when the test must have seen something.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	t.Cleanup(cancel)
	return ctx
}

// must runs the program as a cluster admin; it must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(within(t), w.binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig())
	output, err := command.CombinedOutput()
	require.NoError(t, err, "landwaiter %v: %s", args, output)
	return string(output)
}

// apply applies an object as the administrator.
func apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	require.NoError(t, w.Apply(within(t), objects...))
}

// get returns an object, or nil if it is not there.
func get(t *testing.T, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	err := w.Client.Get(within(t), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return object
}

// configMap is a manifest of the simplest kind.
func configMap(namespace, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: %s}\ndata: {from: git}\n", namespace, name)
}

// field returns a string in an object, empty if it is not there.
func field(object *unstructured.Unstructured, path ...string) string {
	if object == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(object.Object, path...) // absent is empty
	return text
}
