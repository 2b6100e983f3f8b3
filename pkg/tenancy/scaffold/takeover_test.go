package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// The repository has the names and folders of the public one. docs/howto/gitops-take-over.md has the commands.
func TestARepositoryOfFlux2MultiTenancyIsTakenOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../../test/gitops/testdata/flux2-multi-tenancy")))
	platform, err := Prepare(dir, Told{Settings: settings("githubOrg=example")})
	require.NoError(t, err)
	tree, err := NewPlatform(platform)
	require.NoError(t, err)
	apps := &v1beta1.Tenant{}
	apps.Name, apps.Spec.HomeNamespace = "dev-team", "apps"
	apps.Spec.Reconciler = &v1beta1.TenantReconciler{Source: &v1beta1.TenantSource{URL: "https://github.com/example/flux2-multi-tenancy", Branch: "dev-team"}}

	// Nothing of it is replaced before its owner says so.
	before := content(t, dir, "clusters/staging/infrastructure.yaml")
	_, err = Write(dir, tree, WriteOptions{})
	require.Equal(t, []string{".github/workflows/e2e.yaml", "clusters/production/flux-system/kustomization.yaml", "clusters/production/infrastructure.yaml", "clusters/production/tenants.yaml",
		"clusters/staging/flux-system/kustomization.yaml", "clusters/staging/infrastructure.yaml", "clusters/staging/tenants.yaml"}, editedFiles(t, err))
	require.Equal(t, before, content(t, dir, "clusters/staging/infrastructure.yaml"))
	_, err = os.Stat(filepath.Join(dir, SettingsFile))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Write(dir, tree, WriteOptions{Force: true})
	require.NoError(t, err)

	asked := Addition{Dir: dir, Team: Team{Tenant: apps}}
	_, err = asked.Run(t.Context())
	require.Equal(t, []string{"tenants/base/dev-team/kustomization.yaml", "tenants/base/dev-team/sync.yaml", "tenants/production/dev-team-patch.yaml", "tenants/staging/dev-team-patch.yaml"}, editedFiles(t, err))
	asked.Write.Force = true
	_, err = asked.Run(t.Context())
	require.NoError(t, err)

	// What is left over is named, each at its place.
	light(t, dir)
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	var found []string
	for _, f := range report.Findings {
		found = append(found, f.ID+" "+f.File)
	}
	require.Equal(t, []string{"NotApplied infrastructure/kyverno-policies/kustomization.yaml", "NotApplied infrastructure/kyverno/kustomization.yaml", "NotApplied tenants/base/dev-team/rbac.yaml",
		"NamespaceSet tenants/production/kustomization.yaml", "NamespaceSet tenants/staging/kustomization.yaml"}, found)
	for _, folder := range []string{"infrastructure/kyverno", "infrastructure/kyverno-policies", "tenants/base/dev-team/rbac.yaml"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, folder)))
	}
	for _, environment := range []string{"staging", "production"} {
		rewrite(t, dir, "tenants/"+environment+"/kustomization.yaml", "namespace: apps\n", "")
	}
	report, err = Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.Equal(t, []string{"clusters/production", "clusters/staging"}, report.Clusters)

	// The objects that Flux has of the team keep their names; its permissions are smaller.
	text := loaded(t, dir).build("tenants/staging").yaml(t)
	for _, same := range []string{"kind: GitRepository", "branch: dev-team", "path: ./staging", "serviceAccountName: dev-team", "namespace: apps"} {
		require.Contains(t, text, same)
	}
	require.NotContains(t, text, "cluster-admin")
	require.Equal(t, content(t, dir, "clusters/staging/flux-system/gotk-sync.yaml"), content(t, "../../../test/gitops/testdata/flux2-multi-tenancy", "clusters/staging/flux-system/gotk-sync.yaml"))
	require.Regexp(t, regexp.MustCompile(`(?m)^  - \.\./base/dev-team$`), content(t, dir, "tenants/staging/kustomization.yaml"))
}

// editedFiles are those that a run would not replace.
func editedFiles(t *testing.T, err error) (files []string) {
	t.Helper()
	var edited *EditedError
	require.True(t, errors.As(err, &edited), "%v", err)
	for _, file := range edited.Files {
		files = append(files, file.Path)
	}
	return files
}
