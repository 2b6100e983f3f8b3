//go:build e2e

package gitops

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The commands of docs/tutorials/platform-in-git.md, docs/howto/gitops-operate.md, docs/howto/gitops-layouts.md
// and docs/howto/gitops-take-over.md run in this order, in an empty folder and without a cluster.
// They check whole trees, which takes the race detector ten times as long as the program as it
// is released. Then what the trees run is shown to a cluster that has their rules.
func TestTheCommandsOfThePageOnGitOpsWork(t *testing.T) {
	w := guarded(t)
	// What flux2-multi-tenancy ran before would be refused, which a command of the page shows.
	w.apply(t, suite.Namespace("apps"))
	before := suite.Pod("apps", "podinfo", "ghcr.io/stefanprodan/podinfo:6.9.2")
	require.NoError(t, w.Client.Create(suite.Within(t), before))
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(suite.Within(t), before)) })
	reader := follow(t, w.Kubeconfig(), page.Substitution{Page: "sha256:…", Test: "sha256:" + strings.Repeat("5", 64), Why: "nothing was pushed"})
	reader.StandIns = map[string]func(context.Context, page.Block) (string, error){
		"flux2-multi-tenancy": func(context.Context, page.Block) (string, error) {
			return "", os.CopyFS(filepath.Join(reader.Dir, "flux2-multi-tenancy"), os.DirFS("testdata/flux2-multi-tenancy"))
		},
		"arc-soft-multitenancy": func(context.Context, page.Block) (string, error) {
			shape(t, reader.Dir, "arc-soft-multitenancy")
			return "", nil
		},
		"dev-team": func(context.Context, page.Block) (string, error) {
			return "", os.CopyFS(filepath.Join(reader.Dir, "dev-team"), os.DirFS(unpacked(t, "flux2-multi-tenancy-dev-team")))
		}}
	reader.run(t, func(b page.Block) bool { return slices.Contains(pagesOnGitOps(), b.Page) })
	out, err := reader.Bash(t.Context(), reader.own(t)[0].Text)
	require.NoError(t, err)
	require.Contains(t, out, "podinfo: allowPrivilegeEscalation != false")
	w.requirePodsLive(t, reader)
	require.NoFileExists(t, filepath.Join(reader.Dir, "arc-soft-multitenancy/arc/cluster1-base-azure-policy.json"))
	requireIndentedListsEdited(t, reader)
}

// requireIndentedListsEdited has the commands of docs/howto/gitops-operate.md edit the lists that a
// taken-over repository keeps, which its authors indented.
func requireIndentedListsEdited(t *testing.T, reader *followed) {
	t.Helper()
	const tree = "flux2-multi-tenancy"
	scaffold := func(team string) {
		out, err := reader.Bash(t.Context(), "sed s/iris-green/"+team+"/ iris-green.yaml | landwaiter platform scaffold "+tree+" -f -")
		require.NoError(t, err, out)
	}
	scaffold("iris-green")
	scaffold("iris-blue")
	patch, err := os.ReadFile(filepath.Join(reader.Dir, "fleet/tenants/production/iris-green-own.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(reader.Dir, tree, "tenants/production/iris-green-own.yaml"), patch, 0o600))
	var done int
	for _, b := range reader.blocks {
		if b.Page == "docs/howto/gitops-operate.md" && strings.Contains(b.Text, "sed ") && strings.Contains(b.Text, "/kustomization.yaml\n") &&
			strings.Contains(b.Text, "fleet/") {
			out, err := reader.Bash(t.Context(), strings.NewReplacer("fleet/", tree+"/", " fleet", " "+tree).Replace(b.Text))
			require.NoError(t, err, out)
			require.Contains(t, out, " 0 findings")
			done++
		}
	}
	require.Equal(t, 2, done, "a team differs, and a team is removed")
	text, err := os.ReadFile(filepath.Join(reader.Dir, tree, "tenants/production/kustomization.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "\n  - path: iris-green-patch.yaml\n  - path: iris-green-own.yaml\n")
	require.NotContains(t, string(text), "iris-blue")
}

// A reader who has more policies of Kyverno takes flux2-multi-tenancy over with its order.
func TestKyvernoIsKeptAsThePageSays(t *testing.T) {
	reader := follow(t, filepath.Join(t.TempDir(), "none"))
	tree := filepath.Join(reader.Dir, "flux2-multi-tenancy")
	require.NoError(t, os.CopyFS(tree, os.DirFS("testdata/flux2-multi-tenancy")))
	edit := func(name, old, with string) {
		file := filepath.Join(tree, name)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), old)
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, with)), 0o600))
	}
	edit("infrastructure/kyverno/source.yaml", "fluxcd.io/v1\n", "fluxcd.io/v1beta2\n")              // as upstream has it
	edit("clusters/staging/infrastructure.yaml", "  serviceAccountName: kustomize-controller\n", "") // as the document has it
	for _, commands := range []string{
		"cd flux2-multi-tenancy && git init --quiet --initial-branch main && git add . && git -c user.name=a -c user.email=a@example.com commit " +
			"--quiet --message old",
		"landwaiter platform init flux2-multi-tenancy --force --set githubOrg=example",
		"landwaiter platform scaffold flux2-multi-tenancy dev-team --force --set homeNamespace=apps --set " +
			"reconciler.source.url=https://github.com/example/flux2-multi-tenancy",
		"rm flux2-multi-tenancy/tenants/base/dev-team/rbac.yaml && sed -i '/^namespace: apps$/d' flux2-multi-tenancy/tenants/*/kustomization.yaml",
		reader.own(t)[0].Text,
		"landwaiter platform init flux2-multi-tenancy", // what the page edited stays
		"landwaiter platform check flux2-multi-tenancy",
	} {
		out, err := reader.Bash(t.Context(), commands)
		require.NoError(t, err, out)
		if strings.Contains(commands, "platform check") {
			require.Contains(t, out, " 0 findings")
		}
	}
	for _, environment := range []string{"staging", "production"} {
		text, err := os.ReadFile(filepath.Join(tree, "clusters", environment, "tenants.yaml"))
		require.NoError(t, err)
		require.Contains(t, string(text), "\n  - name: guardrails\n  - name: kyverno-policies\n")
	}
}

// A tenant leaves the layout arc, and the other tenant of its application stays.
func TestATenantIsRemovedFromTheLayoutArcAsThePageSays(t *testing.T) {
	reader := follow(t, filepath.Join(t.TempDir(), "none"))
	commands := "landwaiter platform init arc --layout arc --set clusters=cluster1 --set clusters=cluster2 --set constraints=images\n"
	for _, tenant := range []string{"tenant2", "tenant3"} {
		commands += "landwaiter platform scaffold arc " + tenant + " --app app2 --shared --app-chart https://charts.example.com@1.0.0\n"
	}
	out, err := reader.Bash(t.Context(), commands)
	require.NoError(t, err, out)
	out, err = reader.Bash(t.Context(), reader.own(t)[0].Text)
	require.NoError(t, err, out)
	require.Contains(t, out, " 0 findings")
	list, err := os.ReadFile(filepath.Join(reader.Dir, "arc/clusters/cluster2/kustomization.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(list), "app2/tenant2")
	require.NotContains(t, string(list), "tenant3")
}

// The nightly tests show the trees of the other layouts too.
func TestTreesAreAccepted(t *testing.T) {
	guarded(t).accepts(t, written(t, map[string]grown{"flux": trees()["flux"]}, scaffold.LayoutFlux))
}
