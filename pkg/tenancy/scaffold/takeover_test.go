package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// The repository has the names and folders of the public one. docs/howto/gitops-take-over.md has the commands.
func TestARepositoryOfFlux2MultiTenancyIsTakenOver(t *testing.T) {
	dir := filepath.Join(folder(t), "fleet")
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
	require.Equal(t, []string{".github/workflows/e2e.yaml", "clusters/production/flux-system/kustomization.yaml", "clusters/production/infrastructure.yaml",
		"clusters/production/tenants.yaml",
		"clusters/staging/flux-system/kustomization.yaml", "clusters/staging/infrastructure.yaml", "clusters/staging/tenants.yaml"}, editedFiles(t, err))
	require.Equal(t, before, content(t, dir, "clusters/staging/infrastructure.yaml"))
	_, err = os.Stat(filepath.Join(dir, SettingsFile))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Write(dir, tree, WriteOptions{Force: true})
	require.NoError(t, err)

	asked := Addition{Dir: dir, Team: Team{Tenant: apps}}
	_, err = asked.Run(t.Context())
	require.Equal(t, []string{"tenants/base/dev-team/kustomization.yaml", "tenants/base/dev-team/sync.yaml", "tenants/production/dev-team-patch.yaml",
		"tenants/staging/dev-team-patch.yaml"}, editedFiles(t, err))
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
	require.Equal(t, []string{"NotApplied infrastructure/kyverno-policies/kustomization.yaml", "NotApplied infrastructure/kyverno/kustomization.yaml",
		"NotApplied tenants/base/dev-team/rbac.yaml",
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
	require.Regexp(t, regexp.MustCompile(`annotations:\n    kustomize.toolkit.fluxcd.io/force: enabled\n(  +.*\n)+  name: dev-team-reconciler\n`), text,
		"its role is another one than before")
	require.Equal(t, content(t, dir, "clusters/staging/flux-system/gotk-sync.yaml"),
		content(t, "../../../test/gitops/testdata/flux2-multi-tenancy", "clusters/staging/flux-system/gotk-sync.yaml"))
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

// taken is a repository of that shape whose team's source is private, with its tree written over it.
func taken(t *testing.T, platform ...string) Addition {
	t.Helper()
	dir := filepath.Join(folder(t), "fleet")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../../test/gitops/testdata/flux2-multi-tenancy")))
	rewrite(t, dir, "tenants/base/dev-team/sync.yaml", "  interval: 1m\n  url:", "  interval: 1m\n  secretRef: {name: dev-team-auth}\n  url:")
	p, err := Prepare(dir, Told{Settings: settings(platform...)})
	require.NoError(t, err)
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	_, err = Write(dir, tree, WriteOptions{Force: true})
	require.NoError(t, err)
	team := &v1beta1.Tenant{}
	team.Name, team.Spec.HomeNamespace = "dev-team", "apps"
	team.Spec.Reconciler = &v1beta1.TenantReconciler{Source: &v1beta1.TenantSource{URL: "https://github.com/example/flux2-multi-tenancy"}}
	return Addition{Dir: dir, Team: Team{Tenant: team}, Write: WriteOptions{Force: true}}
}

func TestATeamThatIsTakenOverKeepsTheSecretOfItsRepository(t *testing.T) {
	a := taken(t, "constraints=images")
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	require.Contains(t, content(t, a.Dir, "tenants/base/dev-team/sync.yaml"), "secretRef:\n    name: dev-team-auth\n")
	require.Contains(t, content(t, a.Dir, "tenants/base/dev-team/tenant.yaml"), "name: dev-team-auth")
}

func TestALoginOfTheTreeIsReadByTheNameThatItHas(t *testing.T) {
	a := addition(t, Platform{SOPSAge: recipient})
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	put1(t, a.Dir, "tenants/base/shop/auth.yaml", strings.ReplaceAll(encryptedLogin, "git-auth", "shop-login"))
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	require.Contains(t, content(t, a.Dir, "tenants/base/shop/sync.yaml"), "name: shop-login")
}

func TestATeamThatIsTakenOverStaysInItsNamespace(t *testing.T) {
	a := taken(t, "constraints=images")
	a.Team.Tenant.Spec.HomeNamespace, a.Team.Tenant.Spec.Namespaces = "dev-team", []string{"apps"}
	before := content(t, a.Dir, "tenants/base/dev-team/sync.yaml")
	_, err := a.Run(t.Context())
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, err.Error(), "add --set homeNamespace=apps")
	require.Equal(t, before, content(t, a.Dir, "tenants/base/dev-team/sync.yaml"))
}

func TestATreeThatDecryptsSecretsNeedsTheirKey(t *testing.T) {
	dir := filepath.Join(folder(t), "fleet")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../../test/gitops/testdata/flux2-multi-tenancy")))
	rewrite(t, dir, "clusters/staging/tenants.yaml", "spec:\n", "spec:\n  decryption: {provider: sops, secretRef: {name: sops-gpg}}\n")
	for name, c := range map[string]struct{ settings, says string }{
		"none": {"constraints=images", "clusters/staging/tenants.yaml: Flux decrypts Secrets here"},
		"PGP":  {"sopsPGP=0123456789ABCDEF0123456789ABCDEF01234567", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Prepare(dir, Told{Settings: settings(c.settings)})
			require.NoError(t, err)
			tree, err := NewPlatform(p)
			require.NoError(t, err)
			if err = p.KeepsDecryption(dir, tree); c.says == "" {
				require.NoError(t, err)
				return
			}
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, err.Error(), c.says)
		})
	}
}

func TestARepositoryWithOtherEnvironmentsSaysWhichTheTreeHas(t *testing.T) {
	dir := filepath.Join(folder(t), "fleet[1]") // no pattern
	for _, name := range []string{"dev", "prod"} {
		put1(t, dir, "clusters/"+name+"/flux-system/kustomization.yaml", kustomization("", nil, nil))
	}
	_, err := Prepare(dir, Told{})
	require.EqualError(t, err, "clusters has dev, prod, and the tree would have staging, production: name the environments with --set environments=dev --set "+
		"environments=prod")
	_, err = Prepare(dir, Told{Settings: settings("environments=dev", "environments=prod")})
	require.NoError(t, err)
	_, err = Prepare(dir, Told{Settings: settings("environments=dev")})
	require.NoError(t, err, "the owner has said which")
}

// A small tree, and one thing in it that stops a part of it.
func TestCheckNamesWhatWouldStopATeam(t *testing.T) {
	for name, c := range map[string]struct {
		platform Platform
		breaks   func(t *testing.T, dir string)
		id       string
		says     []string
	}{
		"an encrypted Secret that nothing decrypts": {Platform{}, func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/shop/auth.yaml", encryptedLogin)
			rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- auth.yaml\n")
		}, "NotDecrypted", []string{"applies the encrypted Secret", "has no spec.decryption", "sopsPGP"}},
		"an encrypted object of another kind": {Platform{}, func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/shop/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: '"+sealedValue+
				"'}\nsops: {age: [{recipient: "+recipient+"}], mac: '"+sealedValue+"'}\n")
			rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- settings.yaml\n")
		}, "NotDecrypted", []string{"applies the encrypted ConfigMap", "has no spec.decryption"}},
		"a Secret that is encrypted for others": {Platform{SOPSAge: recipient + ",age1" + strings.Repeat("z", 58)}, func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/shop/auth.yaml", strings.Replace(encryptedLogin, "sops: {", "sops: {age: [{recipient: age1"+strings.Repeat("q", 58)+"}], ", 1))
			rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- auth.yaml\n")
		}, "EncryptedForOthers", []string{"applies the Secret shop/git-auth, which is encrypted for none of the recipients in sopsAge"}},
		"one that is encrypted for a key of PGP alone": {Platform{SOPSAge: recipient}, func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/shop/auth.yaml", strings.Replace(encryptedLogin, "sops: {", "sops: {pgp: [{fp: "+fingerprint+"}], ", 1))
			rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- auth.yaml\n")
		}, "EncryptedForOthers", []string{"encrypted for none of the recipients in sopsAge"}},
		"one for another key of PGP": {Platform{SOPSPGP: fingerprint + "," + strings.Repeat("B", 40)}, func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/shop/auth.yaml", strings.Replace(encryptedLogin, "sops: {", "sops: {pgp: [{fp: "+strings.Repeat("A", 40)+"}], ", 1))
			rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- auth.yaml\n")
		}, "EncryptedForOthers",
			[]string{"encrypted for none of the recipients in sopsPGP", "--set sopsPGP=RECIPIENT,RECIPIENT, if Secret flux-system/sops-gpg has its key"}},
		"one for age, where Flux has a key of PGP": {Platform{SOPSPGP: fingerprint}, func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/shop/auth.yaml", strings.Replace(encryptedLogin, "sops: {", "sops: {age: [{recipient: "+recipient+"}], ", 1))
			rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- auth.yaml\n")
		}, "EncryptedForOthers", []string{"encrypted for none of the recipients in sopsPGP"}},
		"one for age, where Flux asks a service": {Platform{SOPSKMS: "arn:aws:kms:eu-central-1:111122223333:key/a"}, func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/shop/auth.yaml", strings.Replace(encryptedLogin, "sops: {", "sops: {age: [{recipient: "+recipient+"}], ", 1))
			rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- auth.yaml\n")
		}, "EncryptedForOthers", []string{"encrypted for none of the recipients in sopsKMS"}},
		"a namespace of two Tenants": {Platform{}, func(t *testing.T, dir string) {
			text := content(t, dir, "tenants/base/shop/tenant.yaml")
			put1(t, dir, "tenants/base/other/kustomization.yaml", kustomization("", []string{"tenant.yaml", "namespace.yaml"}, nil))
			put1(t, dir, "tenants/base/other/tenant.yaml", strings.ReplaceAll(text, "name: shop", "name: other"))
			put1(t, dir, "tenants/base/other/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
			rewrite(t, dir, "tenants/staging/kustomization.yaml", "resources:\n", "resources:\n- ../base/other\n")
		}, "DoesNotBuild", []string{"Namespace shop is in tenants/base/other/namespace.yaml, tenants/base/shop/"}},
		"a folder that is gone": {Platform{}, func(t *testing.T, dir string) {
			rewrite(t, dir, "tenants/staging/kustomization.yaml", "resources:\n", "resources:\n- ../base/gone\n")
		}, "DoesNotBuild", []string{"it names ../base/gone, which is not there: take the entry out"}},
		"a source that a constraint denies": {Platform{GitHubOrg: "elsewhere", Constraints: []string{"flux"}}, func(*testing.T, string) {},
			"SourceNotAllowed",
			[]string{"GitRepository shop/shop: spec.url ssh://git@github.com/example/shop is below no prefix of constraint flux-allowed-sources (gitPrefixes)"}},
		"a bucket that a " +
			"constraint denies": {Platform{GitHubOrg: "example", AllowedSources: []string{"https://storage.googleapis.com/ours/"}, Constraints: []string{"flux"}},
			func(t *testing.T, dir string) {
				put1(t, dir, "tenants/base/shop/bucket.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: Bucket\nmetadata: {name: b, namespace: shop}\nspec: "+
					"{interval: 5m, provider: gcp, endpoint: minio.example.com, bucketName: strangers}\n")
				rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- bucket.yaml\n")
			}, "SourceNotAllowed",
			[]string{"Bucket shop/b: the bucket strangers at storage.googleapis.com is not in bucketEndpoints of constraint flux-allowed-sources"}},
		"a source with a space " +
			"in its name": {Platform{AllowedSources: []string{"https://dev.azure.com/org/", "ssh://git@github.com/example/"}, Constraints: []string{"flux"}},
			func(t *testing.T, dir string) {
				put1(t, dir, "tenants/base/shop/git.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: g, namespace: shop}\nspec: "+
					"{interval: 5m, url: 'https://dev.azure.com/org/My%20Project/_git/r'}\n")
				rewrite(t, dir, "tenants/base/shop/kustomization.yaml", "resources:\n", "resources:\n- git.yaml\n")
			}, "SourceNotAllowed",
			[]string{"https://dev.azure.com/org/My%20Project/_git/r has a part that servers may read differently, so constraint flux-allowed-sources denies it",
				"the ID of a project"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := addition(t, c.platform)
			if c.platform.Constraints != nil {
				tree, err := NewPlatform(c.platform)
				require.NoError(t, err)
				_, err = Write(a.Dir, tree, WriteOptions{Force: true})
				require.NoError(t, err)
			}
			_, err := a.Run(t.Context())
			require.NoError(t, err)
			light(t, a.Dir)
			c.breaks(t, a.Dir)
			report, err := Check(t.Context(), a.Dir, CheckOptions{})
			require.NoError(t, err)
			found := ""
			for _, f := range report.Findings {
				found += f.ID + ": " + f.Message + "\n"
			}
			require.Contains(t, found, c.id+": ")
			for _, says := range c.says {
				require.Contains(t, found, says)
			}
		})
	}
}

func TestASecretForAnyKeyOfTheTreeIsRight(t *testing.T) {
	other := "age1" + strings.Repeat("z", 58)
	require.Empty(t, forOthers(t, Platform{SOPSPGP: strings.Repeat("A", 40) + "," + fingerprint}, "pgp: [{fp: "+fingerprint+"}], "))
	for about, keys := range map[string]string{
		"for the second key": "age: [{recipient: age1" + strings.Repeat("q", 58) + "}, {recipient: " + other + "}], ",
		"in a group":         "key_groups: [{age: [{recipient: " + other + "}]}], ",
		"for a service too":  "age: [{recipient: x}], kms: [{arn: y}], ", "of a test, for nobody": "",
	} {
		require.Empty(t, forOthers(t, Platform{SOPSAge: recipient + "," + other}, keys), about)
	}
}

// forOthers returns what is found of a login that is encrypted for keys, if it is that Flux has none of them.
func forOthers(t *testing.T, p Platform, keys string) (found []string) {
	t.Helper()
	a := addition(t, p)
	put1(t, a.Dir, "tenants/base/shop/auth.yaml", strings.Replace(encryptedLogin, "sops: {", "sops: {"+keys, 1))
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	report, err := Check(t.Context(), light(t, a.Dir), CheckOptions{})
	require.NoError(t, err)
	for _, f := range report.Findings {
		if f.ID == "EncryptedForOthers" {
			found = append(found, f.Message)
		}
	}
	return found
}
