//go:build nightly

package gitops

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// ageKey makes an age key, and returns what the platform is told, and the Secret's entry and text.
func ageKey(t *testing.T) (setting, entry, private string, env []string) {
	t.Helper()
	private = suite.Program{Path: suite.MustTool(t, suite.FluxTools, "age-keygen")}.Must(t)
	return "sopsAge=" + regexp.MustCompile(`age1[0-9a-z]+`).FindString(private), "age.agekey", private, nil
}

// pgpKey does the same with gpg. The path of gpg's folder must be short: it has a socket.
func pgpKey(t *testing.T) (setting, entry, private string, env []string) {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg")
	require.NoError(t, err)
	env = []string{"GNUPGHOME=" + home}
	gpg := suite.Program{Path: "gpg", Env: env}
	t.Cleanup(func() {
		suite.Program{Path: "gpgconf", Env: env}.Must(t, "--kill", "all")
		require.NoError(t, os.RemoveAll(home))
	})
	gpg.Must(t, "--batch", "--passphrase", "", "--quick-generate-key", "fleet@example.com", "default", "default", "never")
	fingerprint := regexp.MustCompile(`[0-9A-F]{40}`).FindString(gpg.Must(t, "--list-keys", "--with-colons"))
	return "sopsPGP=" + fingerprint, "sops.asc", gpg.Must(t, "--batch", "--armor", "--export-secret-keys", fingerprint), env
}

// What the admin does for a team with a private repository, with the commands of docs/howto/gitops-operate.md:
// the platform's own key decrypts the login that is in its tree, and the login opens the
// repository. The steps before tenants are not there.
func TestALoginThatThePlatformEncryptedOpensAPrivateRepository(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	server, err := r.git.StartSSH(t.Context())
	require.NoError(t, err)
	t.Cleanup(server.Close)
	for about, c := range map[string]struct {
		key    func(*testing.T) (setting, entry, private string, env []string)
		secret string
		ssh    bool
	}{
		"age, over SSH":     {ageKey, "sops-age", true},
		"PGP, with a token": {pgpKey, "sops-gpg", false},
	} {
		t.Run(about, func(t *testing.T) {
			name := fresh("cherry")
			repository := r.repository(t, name, map[string]string{"prod/app.yaml": configMap(name, "app")})
			fleet, err := r.git.Create(suite.Within(t), name+"-fleet")
			require.NoError(t, err)
			setting, entry, private, env := c.key(t)
			env = append(env, "PATH="+suite.MustTool(t, suite.FluxTools)+":"+os.Getenv("PATH"))
			landwaiter := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Dir: fleet.Dir, Env: env}
			login := filepath.Join(t.TempDir(), "login")
			url, kind, text := repository.URL(), "token", repository.Password
			if c.ssh {
				url, kind, text = server.URL(name), "ssh", server.KnownHosts()
			}
			require.NoError(t, os.WriteFile(login, []byte(text), 0o600))
			landwaiter.Must(t, "platform", "init", ".", "--set", "environments=prod", "--set", "constraints=images", "--set", setting)
			said := landwaiter.Run(t, "", "platform", "scaffold", ".", name, "--set", "reconciler.source.url="+url, "--git-auth", kind+"="+login)
			require.Zero(t, said.Code, said.Stderr)
			require.Contains(t, landwaiter.Must(t, "platform", "check", "."), " 0 findings")
			_, err = fleet.Push(suite.Within(t), "the platform")
			require.NoError(t, err)

			tenants := playedTenants(t, fleet, "prod", name)
			r.apply(t, fleet.Secret(flux.Namespace, name+"-login"), tenants, fleetSource(name, fleet))

			// Without the platform's key nothing of any team is applied.
			require.Contains(t, r.refused(t, flux.Kustomization(), flux.Namespace, tenants.GetName(), c.secret), "not found")
			require.Nil(t, r.get(t, "v1", "Namespace", "", name))
			key := suite.Object("{apiVersion: v1, kind: Secret, metadata: {namespace: flux-system, name: %s}}", c.secret)
			key.Object["stringData"] = map[string]any{entry: private}
			r.apply(t, key)
			r.applied(t, flux.Namespace, tenants.GetName(), "")
			if c.ssh {
				// The key opens nothing until the team has added it to its repository.
				r.refused(t, flux.GitRepository(), name, name, "unable to authenticate")
				deployKey := regexp.MustCompile(`(?m)^ssh-ed25519 \S+`).FindString(said.Stderr)
				require.NoError(t, server.Authorize(name, deployKey))
				require.NoError(t, flux.Reconcile(suite.Within(t), r.Cluster, flux.GitRepository(), name, name))
			}
			_, err = flux.Await(suite.Within(t), r.Cluster, flux.Kustomization(), name, name, "", metav1.ConditionTrue)
			require.NoError(t, err)
			require.NotNil(t, r.get(t, "v1", "ConfigMap", name, "app"))
		})
	}
}

// A platform that keeps a copy of its key, as docs/operate/restore.md says, reads its tree again after the
// cluster is gone: the copy that the first cluster gave out decrypts the login, and a new cluster gets it.
func TestACopyOfTheDecryptionKeyOpensTheTreeInANewCluster(t *testing.T) {
	ofPlatforms.enter(t)
	start := func() *cluster.Cluster {
		c, err := suite.ForTest(t).Cluster(suite.Within(t), cluster.Options{WithoutGatekeeper: true})
		require.NoError(t, err)
		return c
	}
	lost := start()
	runner := follow(t, lost.Kubeconfig())
	read, err := page.Read(suite.Root, "docs/operate/restore.md")
	require.NoError(t, err)
	runner.blocks = read
	blocks := runner.own(t)
	require.Len(t, blocks, 3)
	for _, program := range []string{"sops", "age-keygen"} {
		require.NoError(t, os.Symlink(suite.MustTool(t, suite.FluxTools, program), filepath.Join(runner.Dir, "bin", program)))
	}
	_, _, private, _ := ageKey(t)
	key := filepath.Join(runner.Dir, "age.key")
	require.NoError(t, os.WriteFile(key, []byte(private), 0o600))
	_, err = runner.Bash(t.Context(), `kubectl create namespace flux-system
kubectl create secret generic sops-age --namespace=flux-system --from-file=age.agekey=age.key
landwaiter platform init fleet --set constraints=images --set sopsAge="$(age-keygen -y age.key)"
echo hunter2 | landwaiter platform scaffold fleet iris-green --set reconciler.source.url=https://github.com/example/iris-green --git-auth token=-
rm age.key`)
	require.NoError(t, err)

	require.NoError(t, runner.Run(t.Context(), blocks[0]), "export")
	copied, err := os.ReadFile(key)
	require.NoError(t, err)
	require.Equal(t, private, string(copied))
	require.NoError(t, runner.Run(t.Context(), blocks[1]), "try")
	require.NoError(t,
		os.WriteFile(filepath.Join(runner.Dir, "other.key"), []byte(suite.Program{Path: suite.MustTool(t, suite.FluxTools, "age-keygen")}.Must(t)), 0o600))
	_, err = runner.Bash(t.Context(), strings.Replace(blocks[1].Text, "age.key", "other.key", 1))
	require.Error(t, err, "another key is noticed before it is needed")

	fresh := start()
	runner.Environment = append(runner.Environment, "KUBECONFIG="+fresh.Kubeconfig())
	require.NoError(t, runner.Run(t.Context(), blocks[2]), "use")
	out, err := runner.Bash(t.Context(), `kubectl get secret sops-age --namespace=flux-system -o go-template='{{index .data "age.agekey" | base64decode}}'`)
	require.NoError(t, err)
	require.Equal(t, private, out)
}

// A platform changes the key of its encrypted Secrets, as docs/operate/rotate.md says: at each step the cluster's key opens
// what is merged, and at the end the old key opens nothing of it.
func TestTheKeyOfEncryptedSecretsIsRotatedAsThePageSays(t *testing.T) {
	ofPlatforms.enter(t)
	c, err := suite.ForTest(t).Cluster(suite.Within(t), cluster.Options{WithoutGatekeeper: true})
	require.NoError(t, err)
	runner := follow(t, c.Kubeconfig())
	runner.blocks, err = page.Read(suite.Root, "docs/operate/rotate.md")
	require.NoError(t, err)
	blocks := runner.own(t)
	require.Len(t, blocks, 4)
	for _, program := range []string{"sops", "age-keygen"} {
		require.NoError(t, os.Symlink(suite.MustTool(t, suite.FluxTools, program), filepath.Join(runner.Dir, "bin", program)))
	}
	_, err = runner.Bash(t.Context(), `age-keygen -o age.key
cp age.key before.key
kubectl create namespace flux-system
kubectl create secret generic sops-age --namespace=flux-system --from-file=age.agekey=age.key
landwaiter platform init fleet --set constraints=images --set sopsAge="$(age-keygen -y age.key)"
for team in iris-green iris-red; do
  echo hunter2 | landwaiter platform scaffold fleet $team --set reconciler.source.url=https://github.com/example/$team --git-auth token=-
done`)
	require.NoError(t, err)
	const login = "fleet/tenants/base/iris-red/auth.yaml"
	opens := func(key string) bool {
		out, err := runner.Bash(t.Context(), "SOPS_AGE_KEY_FILE="+key+" sops decrypt "+login)
		require.Equal(t, err == nil, strings.Contains(out, "hunter2"), out)
		return err == nil
	}
	// live is the key that Flux has.
	live := func() string {
		_, err := runner.Bash(t.Context(), `kubectl get secret sops-age --namespace=flux-system -o go-template='{{index .data "age.agekey" | `+
			`base64decode}}' > live.key`)
		require.NoError(t, err)
		return "live.key"
	}
	data := func() string {
		text, err := os.ReadFile(filepath.Join(runner.Dir, login))
		require.NoError(t, err)
		return regexp.MustCompile(`(?m)^ +password: ENC\[[^\]]*\]`).FindString(string(text))
	}
	require.NoError(t, runner.Run(t.Context(), blocks[0]), "both")
	require.True(t, opens(live()), "merged before the cluster has the new key")
	require.True(t, opens("age-next.key"))
	require.NoError(t, runner.Run(t.Context(), blocks[1]), "the cluster has both")
	require.True(t, opens(live()))
	before := data()
	require.NotEmpty(t, before)
	require.NoError(t, runner.Run(t.Context(), blocks[2]), "the new one only")
	require.True(t, opens(live()))
	require.False(t, opens("before.key"))
	require.NotEqual(t, before, data(), "the key of the data is another one too")
	require.NoError(t, runner.Run(t.Context(), blocks[3]), "the old one leaves")
	require.True(t, opens(live()))
	require.True(t, opens("age.key"))
	_, err = runner.Bash(t.Context(), "cmp live.key age.key")
	require.NoError(t, err)
}

// fleetSource is the source of a platform's repository, under a name of the test's own.
func fleetSource(name string, fleet *flux.Repository) *unstructured.Unstructured {
	return suite.Object("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: flux-system, name: %s-fleet}, spec: {interval: "+
		"1m, url: %q, ref: {branch: %s}, secretRef: {name: %[1]s-login}}}", name, fleet.URL(), flux.Branch)
}

// playedTenants is the tree's Kustomization of that name without what it waits for, under names
// of the test's own.
func playedTenants(t *testing.T, fleet *flux.Repository, environment, name string) *unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.DecodeFile(filepath.Join(fleet.Dir, "clusters", environment, "tenants.yaml"))
	require.NoError(t, err)
	require.Len(t, objects, 1)
	tenants := objects[0]
	require.True(t, strings.HasPrefix(tenants.GetName(), "tenants"))
	tenants.SetName(name + "-tenants")
	unstructured.RemoveNestedField(tenants.Object, "spec", "dependsOn")
	require.NoError(t, unstructured.SetNestedField(tenants.Object, name+"-fleet", "spec", "sourceRef", "name"))
	require.NoError(t, unstructured.SetNestedField(tenants.Object, "1s", "spec", "retryInterval"))
	return tenants
}
