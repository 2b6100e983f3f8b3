//go:build e2e

package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/page"
)

// standIns are what the test does where a page's source says that it cannot do the same.
func (w *world) standIns(t *testing.T) map[string]func(context.Context, page.Block) (string, error) {
	return map[string]func(context.Context, page.Block) (string, error){
		"gatekeeper-chart": w.installGatekeeper,
		"image":            func(context.Context, page.Block) (string, error) { return "", nil },
		"kustomize": func(ctx context.Context, b page.Block) (string, error) {
			return w.runner.Bash(ctx, strings.ReplaceAll(b.Text, "kubectl apply --server-side", "kubectl apply --server-side --force-conflicts --dry-run=server"))
		},
		"old-checkout": func(ctx context.Context, b page.Block) (string, error) {
			w.laterVersion(t, false)
			return w.runner.Bash(ctx, b.Text)
		},
		"cosign-2": func(ctx context.Context, b page.Block) (string, error) {
			return w.runner.Bash(ctx, "cosign() { cosign-v2 \"$@\"; }\n"+b.Text)
		},
	}
}

// installGatekeeper runs the page's helm install with the chart that its Go module has.
// Hooks are pods, which cannot run: what one of them does to the namespace is done here. The
// time for which Gatekeeper keeps answers is shorter, because the test waits for each change
// of a verdict.
func (w *world) installGatekeeper(ctx context.Context, b page.Block) (string, error) {
	_, install, _ := strings.Cut(b.Text, "\n") // after helm repo add
	output, err := w.runner.Bash(ctx, strings.TrimSpace(strings.ReplaceAll(install, "gatekeeper/gatekeeper", w.chart+" --no-hooks"))+
		" --set externaldataProviderResponseCacheTTL=1s\nkubectl label namespace gatekeeper-system admission.gatekeeper.sh/ignore=no-self-managing pod-security.kubernetes.io/enforce=restricted\n")
	if err != nil {
		return output, err
	}
	return output, w.AdoptGatekeeper(ctx)
}

// The pages in the order in which an admin needs them. Each starts with what the one before
// left in the cluster.
func TestAnAdminInstallsUpgradesAndUninstallsWithThePagesAlone(t *testing.T) {
	w := newWorld(t)
	w.follow(t, "docs/install.md")
	w.complete(t, "docs/install.md")
	w.trustsTheNewKeyOnly(t)
	for _, name := range []string{"docs/resources.md", "charts/landwaiter/README.md"} {
		w.follow(t, name)
		w.complete(t, name)
	}
	w.bash(t.Context(), t, "kubectl delete clusterrolebinding landwaiter-cluster-viewer") // install.md has its own

	const upgrade = "docs/upgrade.md"
	w.laterVersion(t, true)
	w.follow(t, upgrade, "Upgrade")
	w.isLater(t, true)
	w.follow(t, upgrade, "Go back")
	w.isLater(t, false)
	w.follow(t, upgrade, "Stop enforcing at once", "Uninstall")
	w.complete(t, upgrade)
	w.nothingDenies(t)
}

// trustsTheNewKeyOnly checks what install.md says of a key that was rotated.
func (w *world) trustsTheNewKeyOnly(t *testing.T) {
	t.Helper()
	const sign = "cosign sign --signing-config signing-config.json --yes --key "
	const image = " $(cosign triangulate --type digest registry.example.com/platform/once:v1)"
	const run = "kubectl run once --namespace team-a --image registry.example.com/platform/once:v1 --dry-run=server"
	w.bash(t.Context(), t, sign+"cosign.key"+image)
	output, err := w.runner.Bash(t.Context(), run)
	require.Error(t, err)
	require.Contains(t, output, "[verified-images]")
	w.bash(t.Context(), t, sign+"cosign-next.key"+image)
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		_, err := w.runner.Bash(ctx, run)
		return err
	}))
}

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// later is an annotation that a CRD and the template have in the later version only.
const later = "example.com/later"

// laterVersion makes the checkout one of a later version, or of the version before.
func (w *world) laterVersion(t *testing.T, yes bool) {
	t.Helper()
	for _, name := range []string{"charts/landwaiter/Chart.yaml", "charts/landwaiter/files/crds/landwaiter.dev_verifiers.yaml", "library/verified-images/template.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		if yes {
			changed := strings.Replace(string(text), "\n  annotations:\n", "\n  annotations:\n    "+later+": \"true\"\n", 1)
			changed = strings.Replace(changed, "\nversion: ", "\nversion: 1", 1)
			require.NotEqual(t, string(text), changed, name)
			text = []byte(changed)
		}
		require.NoError(t, os.WriteFile(filepath.Join(w.runner.Dir, name), text, 0o600))
	}
}

// isLater checks which version's CRD and template the API server has.
func (w *world) isLater(t *testing.T, yes bool) {
	t.Helper()
	for _, object := range []string{"customresourcedefinition verifiers.landwaiter.dev", "constrainttemplate verifiedimages"} {
		text := w.bash(t.Context(), t, "kubectl get "+object+" -o jsonpath='{.metadata.annotations}'")
		require.Equal(t, yes, strings.Contains(text, later), "%s: %s", object, text)
	}
	history := w.bash(t.Context(), t, "helm history landwaiter --namespace landwaiter-system --max 1")
	require.Equal(t, yes, strings.Contains(history, "landwaiter-1"), history)
}

// nothingDenies checks that a cluster without Landwaiter admits what it denied, and has
// nothing that still asks for it.
func (w *world) nothingDenies(t *testing.T) {
	t.Helper()
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		_, err := w.runner.Bash(ctx, "kubectl run left --namespace team-a --image registry.example.com/platform/never-signed:v1")
		return err
	}))
	for _, left := range []string{"providers.externaldata.gatekeeper.sh", "constrainttemplates", "assign.mutations.gatekeeper.sh"} {
		require.Contains(t, w.bash(t.Context(), t, "kubectl get "+left), "No resources found")
	}
	for _, left := range []string{"customresourcedefinitions", "clusterroles", "clusterrolebindings", "namespaces"} {
		require.NotContains(t, w.bash(t.Context(), t, "kubectl get "+left+" -o name"), "landwaiter", left)
	}
}
