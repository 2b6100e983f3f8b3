//go:build e2e

package gitops

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Landwaiter does not run here, and a real Gatekeeper enforces the tree's constraints about
// images: no pod of a team starts, and Flux, which would repair this, does.
func TestFluxStartsWhereTheTreeDenies(t *testing.T) {
	w, dir := guarded(t), t.TempDir()
	w.program.Must(t, "platform", "init", dir, "--set", "environments=prod", "--set", "constraints=[images, flux-images]")
	own := filepath.Join(dir, "infrastructure/policies/own")
	require.NoError(t,
		os.WriteFile(filepath.Join(own, "rules.yaml"),
			[]byte("apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerificationPolicy\nmetadata: {name: ours}\nspec: {rules: [{images: [registry.example.com/**], "+
				"action: Allow}]}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte("resources: [rules.yaml]\n"), 0o600))
	w.program.Must(t, "platform", "init", dir, "--set", "enforcement=deny")

	template, err := cluster.DecodeFile(filepath.Join(dir, "infrastructure/templates/verified-images.yaml"))
	require.NoError(t, err)
	w.apply(t, append(template, suite.Namespace(flux.Namespace))...)
	built, err := cluster.Decode(
		[]byte(suite.Program{Path: suite.MustTool(t, suite.ChartTools, "kustomize")}.Must(t, "build", filepath.Join(dir, "infrastructure/policies"))))
	require.NoError(t, err)
	var constraints []*unstructured.Unstructured
	for _, o := range built {
		if o.GetKind() == "VerifiedImages" {
			constraints = append(constraints, o)
		}
	}
	require.Len(t, constraints, 2, "the one about Flux's namespace is there too")
	for _, constraint := range constraints {
		suite.Eventually(t, func(ctx context.Context) error { return w.Apply(ctx, constraint.DeepCopy()) }) // Gatekeeper makes the kind
		t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(w.Client.Delete(suite.Within(t), constraint))) })
	}

	starts := func(ctx context.Context, namespace string) error {
		return w.Client.Create(ctx, suite.Pod(namespace, "app", "ghcr.io/fluxcd/source-controller:v1.7.0"), client.DryRunAll)
	}
	suite.Eventually(t, func(ctx context.Context) error {
		err := starts(ctx, "default")
		if err == nil {
			return errors.New("the constraint is not enforced yet")
		}
		if !strings.Contains(err.Error(), "could not be decided in namespace default") {
			return err
		}
		return nil
	})
	suite.Eventually(t, func(ctx context.Context) error { return starts(ctx, flux.Namespace) })
}
