//go:build e2e

package admission

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// library is a cluster with Landwaiter and the whole library in it, applied as its README says.
type library struct {
	*stack.Stack
	kubectl string
}

var withLibrary = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*library, error) {
	kubectl, err := suite.Tool(suite.ClusterTools, "kubectl")
	if err != nil {
		return nil, err
	}
	s, err := e.Stack(ctx, cluster.Options{}, nil)
	if err != nil {
		return nil, err
	}
	l := &library{Stack: s, kubectl: kubectl}
	return l, l.install(ctx)
})

// install applies the CRDs of what the templates judge, then all templates. The
// stack's own constraint goes: it would deny every pod here.
func (l *library) install(ctx context.Context) error {
	all, err := cluster.DecodeFile(suite.Root + "/library/verified-images/samples/constraint.yaml")
	if err != nil {
		return err
	}
	for _, object := range all {
		if err := l.Client.Delete(ctx, object); err != nil {
			return fmt.Errorf("delete the stack's constraint: %w", err)
		}
	}
	objects, err := definitions(ctx)
	if err != nil {
		return err
	}
	if err := l.Apply(ctx, objects...); err != nil {
		return err
	}
	if err := l.run(ctx, "apply", "-k", suite.Root+"/library"); err != nil {
		return err
	}
	return l.run(ctx, "wait", fmt.Sprint("--timeout=", 2*suite.Patience), "--for=jsonpath={.status.created}=true", "--all", "constrainttemplates")
}

// run runs kubectl as the administrator.
func (l *library) run(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, l.kubectl, append([]string{"--kubeconfig", l.Kubeconfig()}, args...)...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}

// CRDs are Flux's own, and of External Secrets a name alone, which is all that a
// template needs.
func definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	secrets, err := cluster.Decode(
		[]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: externalsecrets.external-secrets.io},
  spec: {group: external-secrets.io, scope: Namespaced, names: {kind: ExternalSecret, listKind: ExternalSecretList, plural: externalsecrets, singular: externalsecret},
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`))
	if err != nil {
		return nil, err
	}
	all, err := flux.Definitions(ctx)
	return append(all, secrets...), err
}

// decode reads YAML in which $NS stands for a namespace and $HOST for the registry: a dollar sign
// is in no key that the YAML may hold.
func (l *library) decode(t *testing.T, namespace, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.Decode([]byte(strings.NewReplacer("$NS", namespace, "$HOST", l.Registry.Host()).Replace(text)))
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	return objects
}

// apply applies YAML.
func (l *library) apply(t *testing.T, namespace, text string) {
	t.Helper()
	require.NoError(t, l.Apply(suite.Within(t), l.decode(t, namespace, text)...))
}

// try asks whether objects could be made, and returns the first refusal.
func (l *library) try(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := l.Client.Create(ctx, object.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
	}
	return nil
}

// enforced applies a constraint of the library that denies, in these namespaces alone, for the
// length of a test.
func (l *library) enforced(t *testing.T, path, name string, match, parameters map[string]any) {
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
	require.NoError(t, l.Apply(suite.Within(t), constraint))
	t.Cleanup(func() {
		if err := l.Client.Delete(context.Background(), constraint); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete constraint %s: %v", name, err)
		}
	})
}

// denied waits until objects are denied by a constraint for a reason.
func (l *library) denied(t *testing.T, constraint, reason string, ask func(context.Context) error) {
	t.Helper()
	var err error
	defer func() { t.Log(err) }()
	suite.Eventually(t, func(ctx context.Context) error {
		if err = ask(ctx); err == nil || !strings.Contains(err.Error(), "["+constraint+"]") || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("not denied by %s because %q: %w", constraint, reason, err)
		}
		return nil
	})
}

// admitted waits until what is asked is admitted.
func (l *library) admitted(t *testing.T, ask func(context.Context) error) {
	t.Helper()
	suite.Eventually(t, ask)
}
