//go:build e2e

// Package policies applies the library to a real API server with a real Gatekeeper, as its
// README says, and shows what is denied, what is admitted and what audits count.
package policies

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

const (
	root = "../.."
	// settle bounds what is waited for; machines differ.
	settle = 30 * time.Second
)

// w is what all tests share: one cluster with Landwaiter and the whole library in it.
var w *world

type world struct {
	*stack.Stack
	kubectl string
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landwaiter-policies-")
	if err == nil {
		w, err = start(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
	} else {
		code = m.Run()
		w.Stop()
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "policies: logs are kept in", filepath.Join(dir, "logs"))
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
	}
	return code
}

func start(dir string) (*world, error) {
	tools := map[string]string{}
	for _, name := range []string{"LANDWAITER_BINARY", "LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS"} {
		if tools[name] = os.Getenv(name); tools[name] == "" {
			return nil, fmt.Errorf("%s is not set; run make e2e", name)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := stack.Start(ctx, stack.Options{
		Options: cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: dir, Progress: os.Stderr},
		Root:    root, Binary: tools["LANDWAITER_BINARY"], ChartTools: tools["LANDWAITER_CHART_TOOLS"],
	})
	if err != nil {
		return nil, err
	}
	made := &world{Stack: s, kubectl: filepath.Join(tools["LANDWAITER_CLUSTER_TOOLS"], "kubectl")}
	if err := made.install(ctx); err != nil {
		made.Stop()
		return nil, err
	}
	return made, nil
}

// install applies the definitions of what the templates judge, then all templates. The
// stack's own constraint goes: it would deny every pod here.
func (w *world) install(ctx context.Context) error {
	all, err := cluster.DecodeFile(root + "/library/verified-images/samples/constraint.yaml")
	if err != nil {
		return err
	}
	for _, object := range all {
		if err := w.Client.Delete(ctx, object); err != nil {
			return fmt.Errorf("delete the stack's constraint: %w", err)
		}
	}
	objects, err := definitions(os.Getenv("LANDWAITER_FLUX_TOOLS"))
	if err != nil {
		return err
	}
	if err := w.Apply(ctx, objects...); err != nil {
		return err
	}
	if err := w.run(ctx, "apply", "-k", root+"/library"); err != nil {
		return err
	}
	return w.run(ctx, "wait", "--timeout=60s", "--for=jsonpath={.status.created}=true", "--all", "constrainttemplates")
}

// run runs kubectl as the administrator.
func (w *world) run(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, w.kubectl, append([]string{"--kubeconfig", w.Kubeconfig()}, args...)...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}

// definitions are Flux's own where its tools are built, and else names alone, which are all
// that a template needs; those of External Secrets and the CSI driver always are.
func definitions(tools string) ([]*unstructured.Unstructured, error) {
	kinds := []schema.GroupVersionKind{
		{Group: "external-secrets.io", Version: "v1", Kind: "ExternalSecret"},
		{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Kind: "SecretProviderClass"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"},
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	}
	var objects []*unstructured.Unstructured
	if tools != "" {
		kinds = kinds[:2]
		files, err := filepath.Glob(filepath.Join(tools, "crds", "*.yaml"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("find Flux's definitions in %s: %d files, %w", tools, len(files), err)
		}
		for _, file := range files {
			read, err := cluster.DecodeFile(file)
			if err != nil {
				return nil, err
			}
			objects = append(objects, read...)
		}
	}
	for _, kind := range kinds {
		plural := strings.ToLower(kind.Kind) + "s"
		if stem, found := strings.CutSuffix(plural, "ys"); found {
			plural = stem + "ies"
		}
		if stem, found := strings.CutSuffix(plural, "sss"); found {
			plural = stem + "sses"
		}
		read, err := cluster.Decode(fmt.Appendf(nil, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.%[2]s}, spec: {group: %[2]s, scope: Namespaced,
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[1]s, singular: %[4]s}, versions: [{name: %[5]s, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, plural, kind.Group, kind.Kind, strings.ToLower(kind.Kind), kind.Version))
		if err != nil {
			return nil, err
		}
		objects = append(objects, read...)
	}
	return objects, nil
}

// within returns a context that ends when the test must have seen something.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	t.Cleanup(cancel)
	return ctx
}

// decode reads YAML in which NS stands for a namespace and HOST for the registry.
func decode(t *testing.T, namespace, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.Decode([]byte(strings.NewReplacer("NS", namespace, "HOST", w.Registry.Host()).Replace(text)))
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	return objects
}

// apply applies YAML.
func apply(t *testing.T, namespace, text string) {
	t.Helper()
	require.NoError(t, w.Apply(within(t), decode(t, namespace, text)...))
}

// try asks whether objects could be made, and returns the first refusal.
func try(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := w.Client.Create(ctx, object.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
	}
	return nil
}

// enforced applies a constraint of the library that denies, in these namespaces alone, for the
// length of a test.
func enforced(t *testing.T, path, name string, match, parameters map[string]any) {
	t.Helper()
	objects, err := cluster.DecodeFile(path)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	constraint := objects[0]
	constraint.SetName(name)
	require.NoError(t, unstructured.SetNestedField(constraint.Object, "deny", "spec", "enforcementAction"))
	for field, value := range match {
		require.NoError(t, unstructured.SetNestedField(constraint.Object, value, "spec", "match", field))
	}
	if parameters != nil {
		require.NoError(t, unstructured.SetNestedMap(constraint.Object, parameters, "spec", "parameters"))
	}
	require.NoError(t, w.Apply(within(t), constraint))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), constraint); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete constraint %s: %v", name, err)
		}
	})
}

// denied waits until objects are denied by a constraint for a reason.
func denied(t *testing.T, constraint, reason string, ask func(context.Context) error) {
	t.Helper()
	var err error
	defer func() { t.Log(err) }()
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		if err = ask(ctx); err == nil || !strings.Contains(err.Error(), "["+constraint+"]") || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("not denied by %s because %q: %w", constraint, reason, err)
		}
		return nil
	}))
}

// admitted waits until what is asked is admitted.
func admitted(t *testing.T, ask func(context.Context) error) {
	t.Helper()
	require.NoError(t, cluster.Until(within(t), ask))
}
