//go:build e2e

package gitops

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/pods"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// requirePodsLive shows what the trees of the pages run to Pod Security and to the constraints of its platform, which deny
// here: platforms of every layout, the public repositories that were taken over, and teams' own repositories. Verified
// images are the matter of test/admission, and registries that of test/teams.
func (w *world) requirePodsLive(t *testing.T, reader *followed) {
	t.Helper()
	takeOverTMC(t, reader)
	shape(t, reader.Dir, "flux-multitenant-demo")
	program := w.program
	program.Dir = reader.Dir
	program.Must(t, "platform", "scaffold", "iris-green-podinfo", "--own", "-f", "fleet/tenants/base/iris-green/tenant.yaml")
	program.Must(t, "tenant", "add", "--tenant-namespace", "baz", "--tenant-name", fresh("baz"), "--set", "reconciler.source.url=https://git.example.com/demo")

	for _, tree := range []struct {
		platform string
		teams    []string // their own repositories
		run      []string // pods by what makes them
		missing  []string // charts that are only examples
	}{
		{platform: "fleet", teams: []string{"iris-green", "iris-green-podinfo"}, run: []string{"podinfo"}},
		{platform: "iris", teams: []string{"iris-green-clusters"}, run: []string{"external-secrets"}},
		{platform: "arc", teams: []string{"tenant4"}, run: []string{"app4"}},
		{platform: "demo", run: []string{"dummy"}},
		{platform: "flux2-multi-tenancy", teams: []string{"dev-team"}, run: []string{"podinfo"}},
		{platform: "flux-tmc-multitenant", run: []string{"external-secrets"}},
		{platform: "flux-multitenant-demo", run: []string{"dummy"}},
		{platform: "arc-soft-multitenancy", missing: []string{"https://charts.example.com shop", "https://charts.example.com app2"}},
	} {
		t.Run(tree.platform, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for _, folder := range append([]string{tree.platform}, tree.teams...) {
				found, err := pods.Built(filepath.Join(reader.Dir, folder))
				require.NoError(t, err)
				objects = append(objects, found...)
			}
			shown, missing, err := pods.Of(suite.Within(t), objects)
			require.NoError(t, err)
			w.rules(t, objects)
			for _, at := range tree.missing {
				require.Contains(t, missing, at)
			}
			for _, pod := range shown {
				if err := w.Client.Create(suite.Within(t), pod.DeepCopy(), client.DryRunAll); err != nil {
					t.Errorf("%s: %v", pod.Of, err)
				}
			}
			for _, name := range tree.run {
				require.True(t, slices.ContainsFunc(shown, func(pod pods.Pod) bool { return pod.Name == name || strings.HasSuffix(pod.Name, "-"+name) }),
					"no pod of %s was shown", name)
			}
		})
	}
}

// rules applies what a tree has to refuse pods with, until the test ends: namespaces with their levels and quotas, and
// the constraints, which deny. It has seen that each refuses something.
func (w *world) rules(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	var constraints []*unstructured.Unstructured
	for _, kind := range []string{"Namespace", "ConstraintTemplate", "ResourceQuota", "LimitRange"} {
		for _, o := range objects {
			if o.GetKind() == kind {
				unstructured.RemoveNestedField(o.Object, "metadata", "labels", "admission.gatekeeper.sh/ignore")
				w.apply(t, o)
			}
		}
	}
	for _, o := range objects {
		if o.GroupVersionKind().Group != "constraints.gatekeeper.sh" || !aboutPods(t, o) {
			continue
		}
		require.NoError(t, unstructured.SetNestedField(o.Object, "deny", "spec", "enforcementAction"))
		constraints = append(constraints, o)
		suite.Eventually(t, func(ctx context.Context) error { return w.Apply(ctx, o) }) // Gatekeeper makes the kind
		t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(w.Client.Delete(suite.Within(t), o))) })
	}
	for _, o := range objects {
		if name := o.GetNamespace(); name != "" && w.get(t, "v1", "Namespace", "", name) == nil {
			w.apply(t, suite.Namespace(name))
		}
	}
	if len(constraints) == 0 {
		return
	}
	yes, root := true, int64(0)
	bad := suite.Pod("default", "bad", "registry.example.com/bad:1")
	bad.Spec.HostNetwork = true
	bad.Spec.Volumes = []corev1.Volume{{Name: "etc", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}}}
	bad.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes, RunAsUser: &root}
	suite.Eventually(t, func(ctx context.Context) error {
		err := w.Client.Create(ctx, bad.DeepCopy(), client.DryRunAll)
		for _, o := range constraints {
			if !strings.Contains(fmt.Sprint(err), "["+o.GetName()+"]") && everywhere(o) {
				return fmt.Errorf("%s %s does not deny yet: %w", o.GetKind(), o.GetName(), err)
			}
		}
		return nil
	})
}

// aboutPods reports whether a constraint is about pods, and not about where their images are from or who signed
// them. The sample app's image is in no registry that the page lets a team use, so whether it was refused depended
// on how soon Gatekeeper had that constraint.
func aboutPods(t *testing.T, constraint *unstructured.Unstructured) bool {
	t.Helper()
	kinds, _, err := unstructured.NestedSlice(constraint.Object, "spec", "match", "kinds")
	require.NoError(t, err)
	return strings.Contains(fmt.Sprint(kinds), "Pod") && !slices.Contains([]string{"VerifiedImages", "TenantAllowedRegistries"}, constraint.GetKind())
}

// everywhere reports whether a constraint is about namespaces in general.
func everywhere(constraint *unstructured.Unstructured) bool {
	_, some, _ := unstructured.NestedFieldNoCopy(constraint.Object, "spec", "match", "namespaces")
	_, chosen, _ := unstructured.NestedFieldNoCopy(constraint.Object, "spec", "match", "namespaceSelector")
	return !some && !chosen
}

// takeOverTMC runs the page's commands on a copy of the repository. sops and age-keygen are played: the nightly test of the
// same commands has the real ones.
func takeOverTMC(t *testing.T, reader *followed) {
	t.Helper()
	const name, sealed = "flux-tmc-multitenant", "ENC[AES256_GCM,data:aGVsbG8=,iv:aXY=,tag:dGFn,type:str]"
	shape(t, reader.Dir, name)
	reader.play(t, "age-keygen", "echo age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\n")
	reader.play(t, "sops", "for file; do :; done\nprintf 'values: "+sealed+"\\nsops: {mac: \""+sealed+"\"}\\n' > \"$file\"\n")
	runner := *reader.Runner
	runner.Test = "TestTheRepositoryOfTheDocumentOnTMCIsTakenOver" // as the page has it
	own := slices.DeleteFunc(slices.Clone(reader.blocks), func(b page.Block) bool { return b.Mark != page.By || b.Name != runner.Test })
	require.NotEmpty(t, own, "the page names another test")
	require.NoError(t, runner.Run(t.Context(), own...))
}
