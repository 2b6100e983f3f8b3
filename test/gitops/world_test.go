//go:build e2e || nightly

// Package gitops lets teams' repositories loose on a real API server with guardrails, and
// sees where they end. The nightly tests have the real controllers of Flux, which fetch from a
// real Git server; on each change kustomize builds what the repositories have, and it is
// applied as the team's account, which is what Flux does.
package gitops

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var parts = suite.New("gitops")

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "32"); err != nil { // lanes say how many run at once, and a test that waits for one must not keep others
		panic(err)
	}
	os.Exit(parts.Run(m))
}

// world is a cluster with Gatekeeper, Flux's CRDs, and the chart's roles, guardrails
// and operator's account, but without Landwaiter. Each test has teams of its own.
type world struct {
	*cluster.Cluster
	program suite.Program
	// rendered has the objects of the chart.
	rendered []*unstructured.Unstructured
}

func start(ctx context.Context, e *suite.Env) (*world, error) {
	binary, err := suite.Tool(suite.Landwaiter)
	if err != nil {
		return nil, err
	}
	w := &world{}
	if w.Cluster, err = e.Cluster(ctx, cluster.Options{Workloads: true,
		// As in a real cluster: with the administrator's permissions, controllers would pass every rule.
		ManagerArgs: []string{"--use-service-account-credentials=true"}}); err != nil {
		return nil, err
	}
	w.program = suite.Program{Path: binary, Kubeconfig: w.Kubeconfig()}
	if w.rendered, err = suite.Chart(ctx, "landwaiter", "--set", "guardrails.enabled=true,operator.enabled=true"); err != nil {
		return nil, err
	}
	objects, err := flux.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	other := []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy", "Provider"} // nothing of it runs
	objects = append(objects,
		slices.DeleteFunc(slices.Clone(w.rendered), func(o *unstructured.Unstructured) bool { return slices.Contains(other, o.GetKind()) })...)
	return w, w.Apply(ctx, append(objects, suite.Namespace(suite.System),
		// Landwaiter, which lists Tenants for the operator guardrails, does not run either: this lists all that come.
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: landwaiter-operated-tenants}, rules: [{apiGroups: "+
			"[landwaiter.dev], resources: [tenants], verbs: [operate, end, purge]}]}"))...)
}

var names atomic.Int32

// fresh returns a name that nothing in this process has had: tests may run several times in
// one cluster.
func fresh(name string) string { return fmt.Sprint(name, names.Add(1)) }

// apply applies objects as the administrator.
func (w *world) apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	require.NoError(t, w.Apply(suite.Within(t), objects...))
}

// get returns an object, or nil if it is not there.
func (w *world) get(t *testing.T, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	err := w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: namespace, Name: name}, object)
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
