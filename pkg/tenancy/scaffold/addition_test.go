package scaffold

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// addition is a run for a team in a new tree, with a repository that is read by SSH.
func addition(t *testing.T, p Platform) Addition {
	t.Helper()
	dir := filepath.Join(folder(t), "fleet")
	p.Constraints = []string{"images"}
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	_, err = Write(dir, tree, WriteOptions{})
	require.NoError(t, err)
	put1(t, filepath.Dir(dir), "known_hosts", knownHosts)
	return Addition{Dir: dir, Team: Team{Tenant: shop(t, "reconciler.source.url=ssh://git@github.com/example/shop")},
		Read: func(file string) ([]*v1beta1.Tenant, error) {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			var tenant v1beta1.Tenant
			return []*v1beta1.Tenant{&tenant}, yaml.Unmarshal(text, &tenant)
		}}
}

func shop(t *testing.T, values ...string) *v1beta1.Tenant {
	t.Helper()
	tenant, err := onboard.Description{Name: "shop", Settings: settings(values...)}.Tenant()
	require.NoError(t, err)
	return tenant
}

func TestALoginInPlainTextIsOutsideOfTheTree(t *testing.T) {
	a := addition(t, Platform{})
	outside := filepath.Dir(a.Dir)
	out := filepath.Join(outside, "login.yaml")
	a.Login = LoginOptions{Kind: "ssh", File: filepath.Join(outside, "known_hosts"), Out: out}

	a.Write.DryRun = true
	added, err := a.Run(t.Context())
	require.NoError(t, err)
	require.Empty(t, added.DeployKey)
	require.NoFileExists(t, out, "a dry run makes no key")

	a.Write.DryRun = false
	added, err = a.Run(t.Context())
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(added.DeployKey, "ssh-ed25519 "))
	require.Equal(t, "shop/git-auth", added.Plain)
	found, err := os.Stat(out)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), found.Mode().Perm())
	require.NoFileExists(t, filepath.Join(a.Dir, "tenants/base/shop", AuthFile))

	var failed *FailedError
	_, err = a.Run(t.Context())
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "must not exist", "the key that somebody has given to the Git host stays")
}

func TestALoginIsRefusedBeforeAnythingIsMade(t *testing.T) {
	for message, change := range map[string]func(a *Addition, beside string){
		"is in the tree, and the Secret is in plain text": func(a *Addition, _ string) { a.Login.Out = filepath.Join(a.Dir, "login.yaml") },
		"link/login.yaml is in the tree": func(a *Addition, beside string) {
			require.NoError(t, os.Symlink(a.Dir, filepath.Join(beside, "link")))
			a.Login.Out = filepath.Join(beside, "link/login.yaml")
		},
		"where to with the Secret?":        func(a *Addition, _ string) { a.Login.Out = "" },
		"begins with https://, not ssh://": func(a *Addition, _ string) { a.Login.Kind = "token" },
		"begins with ssh://, not https://": func(a *Addition, _ string) {
			a.Team.Tenant.Spec.Reconciler.Source.URL = "https://github.com/example/shop"
		},
		"--git-auth needs --set reconciler.source.url=URL": func(a *Addition, _ string) { a.Team.Tenant = shop(t) },
		"has no key of [git.example.com]:22": func(a *Addition, _ string) {
			a.Team.Tenant.Spec.Reconciler.Source.URL = "ssh://git@git.example.com:2222/shop"
		},
		"read the login: open":                                  func(a *Addition, _ string) { a.Login.File += ".gone" },
		"has no .landwaiter.yaml: run landwaiter platform init": func(a *Addition, beside string) { a.Dir = beside },
		"--git-auth-out means nothing without --git-auth":       func(a *Addition, _ string) { a.Login.Kind = "" },
	} {
		t.Run(message, func(t *testing.T) {
			a := addition(t, Platform{})
			beside := filepath.Dir(a.Dir)
			out := filepath.Join(beside, "login.yaml")
			a.Login = LoginOptions{Kind: "ssh", File: filepath.Join(beside, "known_hosts"), Out: out}
			change(&a, beside)
			added, err := a.Run(t.Context())
			require.ErrorContains(t, err, message)
			require.Equal(t, Added{}, added)
			require.NoFileExists(t, out)
			require.NoFileExists(t, filepath.Join(a.Dir, "tenants/base/shop/tenant.yaml"))
		})
	}
}

// A key that is made and not written is one that nobody can give to the Git host.
func TestNoKeyIsMadeForATreeThatSomebodyEdited(t *testing.T) {
	a := addition(t, Platform{})
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	rewrite(t, a.Dir, "tenants/base/shop/sync.yaml", "branch: main", "branch: mine")
	beside := filepath.Dir(a.Dir)
	a.Login = LoginOptions{Kind: "ssh", File: filepath.Join(beside, "known_hosts"), Out: filepath.Join(beside, "login.yaml")}
	var edited *EditedError
	_, err = a.Run(t.Context())
	require.ErrorAs(t, err, &edited)
	require.NoFileExists(t, a.Login.Out)
}

// encryptedLogin is the login of team shop, as sops leaves it.
const encryptedLogin = "apiVersion: v1\nkind: Secret\nmetadata: {name: git-auth, namespace: shop}\nstringData: {password: '" + sealedValue +
	"'}\nsops: {mac: '" + sealedValue + "'}\n"

func TestAnEncryptedLoginIsKept(t *testing.T) {
	a := addition(t, Platform{SOPSAge: recipient})
	put1(t, a.Dir, "tenants/base/shop/"+AuthFile, encryptedLogin)
	a.Login = LoginOptions{Kind: "ssh", File: filepath.Join(filepath.Dir(a.Dir), "known_hosts")}
	added, err := a.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, "shop/git-auth", added.Kept)
	require.Equal(t, filepath.Join(a.Dir, "tenants/base/shop", AuthFile), added.KeptIn)
	require.Empty(t, added.DeployKey)

	put1(t, a.Dir, "tenants/base/shop/"+AuthFile, "apiVersion: v1\nkind: Secret\nmetadata: {name: git-auth, namespace: shop}\nstringData: {password: hunter2}\n")
	var failed *FailedError
	_, err = a.Run(t.Context())
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "read the login of an earlier run")
}

func TestATenantAddsToTheOneInTheTree(t *testing.T) {
	a := addition(t, Platform{})
	a.Team.Tenant = shop(t, "namespaces=shop-web", "isolation.network=Open", "adopt=true")
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	there := func() v1beta1.TenantSpec {
		found, err := a.Read(filepath.Join(a.Dir, "tenants/base/shop/tenant.yaml"))
		require.NoError(t, err)
		return found[0].Spec
	}

	a.Settings = settings("namespaces=shop-api", "adopt=false")
	a.Team.Tenant = shop(t, a.Settings.Values...)
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, v1beta1.TenantSpec{HomeNamespace: "shop", Namespaces: []string{"shop-web", "shop-api"}, Isolation: v1beta1.TenantIsolation{Network: "Open"}},
		there())

	a.Whole = true
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, v1beta1.TenantSpec{HomeNamespace: "shop", Namespaces: []string{"shop-api"}}, there())

	put1(t, a.Dir, "tenants/base/shop/tenant.yaml", "kind: Tenant\nmetadata: {name: other}\n")
	a.Whole = false
	_, err = a.Run(t.Context())
	require.ErrorContains(t, err, "has no Tenant shop")
}

func TestALoginIsAKindAndAFile(t *testing.T) {
	for value, want := range map[string]LoginOptions{"ssh=known_hosts": {Kind: "ssh", File: "known_hosts"}, "token=-": {Kind: "token", File: "-"},
		"token=a=b": {Kind: "token", File: "a=b"}} {
		got, err := ParseLogin(value)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for value, message := range map[string]string{"": "it must be ssh=KNOWN_HOSTS or token=FILE", "password=x": "it must be", "ssh": "as ssh-keyscan prints them",
		"ssh=": "as ssh-keyscan", "token": "a file with the token"} {
		_, err := ParseLogin(value)
		require.ErrorContains(t, err, message)
	}
}

func TestAChartHasAURLAndAVersion(t *testing.T) {
	for text, want := range map[string]Chart{"https://charts.example.com": {URL: "https://charts.example.com", Version: "*"},
		"oci://registry.example.com/charts/web@1.2.3":  {URL: "oci://registry.example.com/charts/web", Version: "1.2.3"},
		"oci://registry.example.com/charts/web@>=1 <2": {URL: "oci://registry.example.com/charts/web", Version: ">=1 <2"}} {
		require.Equal(t, want, ParseChart(text))
	}
}

func TestATeamsOwnRepositoryIsRefusedWhereItWouldHarm(t *testing.T) {
	a := addition(t, Platform{})
	dir, key := filepath.Join(folder(t), "own"), filepath.Join(folder(t), "key.pub")
	put1(t, filepath.Dir(key), filepath.Base(key), "a key")
	own := func() Own {
		return Own{Dir: dir, Repository: Repository{Tenant: shop(t, "namespaces=shop-web"), Images: "registry.example.com/shop/**"}, SigningKey: key,
			Lint: func(_ context.Context, text string) ([]string, error) {
				require.Contains(t, text, "a key")
				return nil, nil
			}}
	}
	_, err := own().Run(t.Context())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "verification/policy.yaml"))

	for message, change := range map[string]func(o *Own){
		"is the platform's repository":          func(o *Own) { o.Dir = a.Dir },
		"give --signing-key and --images again": func(o *Own) { o.SigningKey, o.Repository.Images = "", "" },
		"--signing-key and --images belong":     func(o *Own) { o.Repository.Images = "" },
		"read --signing-key: open":              func(o *Own) { o.SigningKey += ".gone" },
		"developers and viewers have no":        func(o *Own) { o.Repository.Tenant = shop(t, "access.developers=devs") },
		"cannot be used: one; two": func(o *Own) {
			o.Lint = func(context.Context, string) ([]string, error) { return []string{"one", "two"}, nil }
		},
		`--place ".." is not a name`: func(o *Own) { o.Repository.Places = []string{".."} },
		"no Tenant is described":     func(o *Own) { o.Repository.Tenant = nil },
	} {
		o := own()
		change(&o)
		_, err := o.Run(t.Context())
		require.ErrorContains(t, err, message)
	}
}

// The file of the Tenant in the platform's repository says the layout and the places.
func TestATeamsOwnRepositoryHasTheFoldersThatThePlatformApplies(t *testing.T) {
	for name, c := range map[string]struct {
		platform Platform
		places   []string // of the team in the platform's repository
		file     string   // of the Tenant in it
		want     []string // in the team's own repository
		none     string   // not in it
	}{
		"flux": {Platform{Environments: []string{"dev", "live"}}, []string{"live"}, "tenants/base/shop/tenant.yaml", []string{"live/values.yaml"}, "dev"},
		"groups": {Platform{Layout: LayoutGroups, Groups: []string{"a", "b"}, Clusters: []string{"a/one", "a/two", "b/three"}}, []string{"a"},
			"tenants/base/shop/tenant.yaml", []string{"clusters/one/kustomization.yaml", "clusters/two/kustomization.yaml"}, "clusters/three"},
		"arc": {Platform{Layout: LayoutArc, Clusters: []string{"one", "two"}}, []string{"two"}, "clusters/two/shop/tenant.yaml",
			[]string{"clusters/two/shop/kustomization.yaml"}, "clusters/one"},
	} {
		t.Run(name, func(t *testing.T) {
			a := addition(t, c.platform)
			a.Team.Tenant, a.Team.Places = shop(t, "reconciler.source.url=https://github.com/example/shop"), c.places
			_, err := a.Run(t.Context())
			require.NoError(t, err)
			own := Own{Dir: filepath.Join(folder(t), "own"), From: filepath.Join(a.Dir, c.file), Repository: Repository{Tenant: shop(t)}}
			_, err = own.Run(t.Context())
			require.NoError(t, err)
			for _, file := range c.want {
				require.FileExists(t, filepath.Join(own.Dir, file))
			}
			require.NoFileExists(t, filepath.Join(own.Dir, c.none))

			own.Repository.Layout = LayoutDemo
			_, err = own.Run(t.Context())
			require.ErrorContains(t, err, "leave the flag out")
			own.Repository = Repository{Tenant: &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1beta1.TenantSpec{HomeNamespace: "other"}}}
			_, err = own.Run(t.Context())
			require.ErrorContains(t, err, "has Tenant other: run landwaiter platform scaffold")
		})
	}
}
