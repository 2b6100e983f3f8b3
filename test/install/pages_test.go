//go:build e2e || nightly

package install

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// fits makes a pod fit for namespaces of the Pod Security level restricted, as the pages do.
const fits = ` --override-type=json --overrides="$(cat config/restricted-pod.json)"`

// Credentials of the registry: those that docs/howto/install.md writes.
const user, password = "USER", "PASSWORD"

// reader is a cluster admin before the first page, with what the pages ask for. What
// differs from a real one's cluster is in two tables: substitutions and standIns.
type reader struct {
	*cluster.Cluster
	runner   *page.Runner
	registry *fixture.Registry
	kubelet  *kubelet
	followed map[string]bool // blocks by where they are
}

// newReader starts an API server without Gatekeeper, a registry that asks for a login, and
// makes a copy of what a reader has checked out. linkCosign puts both versions of cosign
// into a folder.
func newReader(t *testing.T, linkCosign func(folder string) error) *reader {
	t.Helper()
	e := suite.ForTest(t)
	r := &reader{followed: map[string]bool{}}
	var err error
	r.Cluster, err = e.Cluster(t.Context(), cluster.Options{Workloads: true, WithoutGatekeeper: true})
	require.NoError(t, err)
	r.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.registry.Close()) })
	for _, name := range []string{"platform/app", "platform/unsigned", "platform/once", "platform/never-signed", "iris-blue/web", "iris-blue/unsigned"} {
		_, err := r.registry.PushImage(t.Context(), name, "v1")
		require.NoError(t, err)
	}
	r.registry.SetIntercept(login)

	checkout, bin, home := e.Path("checkout"), e.Path("bin"), e.Path("home")
	for _, name := range []string{"charts", "config", "docs", "library"} {
		require.NoError(t, os.CopyFS(filepath.Join(checkout, name), os.DirFS(filepath.Join(root, name))))
	}
	for _, folder := range []string{bin, filepath.Join(home, ".docker")} {
		require.NoError(t, os.MkdirAll(folder, 0o700))
	}
	binary := suite.MustTool(t, suite.Landwaiter)
	for name, path := range map[string]string{"kubectl": suite.MustTool(t, suite.ClusterTools, "kubectl"), "landwaiter": binary,
		"helm": suite.MustTool(t, suite.ChartTools, "helm"), "kustomize": suite.MustTool(t, suite.ChartTools, "kustomize")} {
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	require.NoError(t, linkCosign(bin))
	authority := e.Path("registry.crt")
	require.NoError(t, os.WriteFile(authority, r.registry.CertificatePEM(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".docker", "config.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`,
		r.registry.Host(), base64.StdEncoding.EncodeToString([]byte(user+":"+password))), 0o600))
	r.kubelet = &kubelet{Cluster: r.Cluster, binary: suite.MustTool(t, suite.LandwaiterServer), dir: e.Path("kubelet"), authority: authority}
	r.kubelet.start(t)
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "stand-in.yaml"), fmt.Appendf(nil,
		"provider: {url: \"https://localhost:%d\"}\ntls: {extraDNSNames: [localhost]}\ncache: {denyTTL: 1s}\n", r.kubelet.port), 0o600))
	r.runner = &page.Runner{Dir: checkout, Progress: testLog{t}, Substitutions: r.substitutions(), Environment: []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "KUBECONFIG=" + r.Kubeconfig(),
		"COSIGN_PASSWORD=asked for", "SSL_CERT_FILE=" + authority, cluster.EndAtOnce,
		// Nothing listens on port 9. Go leaves loopback addresses out of proxying.
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9",
	}}
	r.runner.StandIns = r.standIns(t)
	return r
}

// followPages reads the pages in the order in which an admin needs them. Each starts with
// what the one before left in the cluster.
func (r *reader) followPages(t *testing.T) {
	t.Helper()
	r.installAndEnforce(t)
	r.trustsTheNewKeyOnly(t)
	for _, name := range []string{"docs/reference/resources.md", "docs/howto/trust.md", "charts/landwaiter/README.md"} {
		r.follow(t, name)
		r.complete(t, name)
	}
	r.bash(t, "kubectl delete clusterrolebinding landwaiter-cluster-reader") // self-service.md has its own
	r.writesRules(t)

	const upgrade = "docs/operate/upgrade.md"
	r.laterVersion(t, true)
	r.follow(t, upgrade, "Upgrade")
	r.isLater(t, true)
	r.follow(t, upgrade, "Go back")
	r.isLater(t, false)
	r.bash(t, "landwaiter tenant add leaver --set namespaces=leaver-web --set access.developers=leavers") // no operator runs
	r.complete(t, upgrade)
	for _, name := range []string{"docs/operate/outage.md", "docs/operate/uninstall.md"} {
		r.follow(t, name)
		r.complete(t, name)
	}
	r.nothingDenies(t)
	require.Contains(t, r.bash(t, "kubectl get rolebindings --all-namespaces --selector landwaiter.dev/tenant=leaver"), "No resources found")
}

// installAndEnforce follows the pages that make an installation. An admin signs between two
// steps of docs/howto/enforce.md, and pins tags once something runs.
func (r *reader) installAndEnforce(t *testing.T) {
	t.Helper()
	const install, enforce = "docs/howto/install.md", "docs/howto/enforce.md"
	r.follow(t, install, "1. Install Gatekeeper")
	r.follow(t, "docs/howto/hardening.md")
	r.follow(t, install, "2. Build the container image", "3. Install Landwaiter", "4. Say what must be signed")
	r.follow(t, "docs/howto/install-without-helm.md")
	r.follow(t, enforce, "1. List what would be denied")
	r.follow(t, "docs/howto/sign.md")
	r.follow(t, enforce, "2. Empty the list", "3. Warn", "4. Deny", "Check the installation")
	r.follow(t, "docs/howto/self-service.md")
	r.follow(t, install, "Pin tags", "Warm up")
	r.rotates(t)
	for _, name := range []string{install, "docs/howto/hardening.md", "docs/howto/install-without-helm.md", enforce, "docs/howto/sign.md",
		"docs/howto/self-service.md", "docs/operate/rotate.md"} {
		r.complete(t, name)
	}
}

// rotates follows docs/operate/rotate.md in a cluster with a mandatory policy, which would deny what only the old key
// signed.
func (r *reader) rotates(t *testing.T) {
	t.Helper()
	const mandatory = "{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: platform-everywhere}, " +
		"spec: {scope: Mandatory, defaultAction: Allow, rules: [{images: [registry.example.com/platform/**], require: [{anyOf: [platform-signature]}]}]}}"
	r.bash(t, "echo '"+mandatory+"' | kubectl apply -f -")
	r.follow(t, "docs/operate/rotate.md")
	r.bash(t, "echo '"+mandatory+"' | kubectl delete -f -")
}

// substitutions are what only a reader has.
func (r *reader) substitutions() []page.Substitution {
	return []page.Substitution{
		{Page: "helm install landwaiter charts/landwaiter", Test: "helm install landwaiter charts/landwaiter --values stand-in.yaml",
			Why: "Gatekeeper runs outside of the cluster, and reaches Landwaiter at localhost; denials are cached for a second, since the test waits for " +
				"changed verdicts"},
		{Page: "bin/landwaiter check", Test: "landwaiter check", Why: "the program is built elsewhere"},
		{Page: "registry.example.com", Test: r.registry.Host(), Why: "a registry with TLS and a login, on 127.0.0.1"},
	}
}

// login refuses requests without the credentials.
func login(response http.ResponseWriter, request *http.Request) bool {
	if name, secret, _ := request.BasicAuth(); name == user && secret == password {
		return false
	}
	response.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
	response.WriteHeader(http.StatusUnauthorized)
	return true
}

// testLog writes what commands printed into the log of the test.
type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Log(string(text))
	return len(text), nil
}

// follow runs the blocks of some sections of a page, or of all of them.
func (r *reader) follow(t *testing.T, name string, sections ...string) {
	t.Helper()
	blocks, err := page.Read(root, name)
	require.NoError(t, err)
	for _, section := range sections {
		require.True(t, slices.ContainsFunc(blocks, func(b page.Block) bool { return b.Section == section }), "%s has no section %s", name, section)
	}
	blocks = slices.DeleteFunc(blocks, func(b page.Block) bool { return len(sections) > 0 && !slices.Contains(sections, b.Section) })
	require.NoError(t, r.runner.Run(t.Context(), blocks...))
	for _, b := range blocks {
		r.followed[b.String()] = true
	}
}

// complete checks that no block of a page was left out, but for those that other tests run.
func (r *reader) complete(t *testing.T, name string) {
	t.Helper()
	blocks, err := page.Read(root, name)
	require.NoError(t, err)
	for _, b := range blocks {
		require.True(t, b.Mark == page.By || b.Mark == page.NotRun || r.followed[b.String()], "%s was not followed", b)
	}
}

// bash runs a command of the test itself, and returns what it printed.
func (r *reader) bash(t *testing.T, command string) string {
	t.Helper()
	output, err := r.runner.Bash(t.Context(), command)
	require.NoError(t, err, "%s: %s", command, output)
	return output
}

// standIns are what the test does where a page's source says that it cannot do the same.
func (r *reader) standIns(t *testing.T) map[string]func(context.Context, page.Block) (string, error) {
	return map[string]func(context.Context, page.Block) (string, error){
		"gatekeeper-chart": r.installGatekeeper,
		"image":            func(context.Context, page.Block) (string, error) { return "", nil },
		"kustomize": func(ctx context.Context, b page.Block) (string, error) {
			return r.runner.Bash(ctx, strings.ReplaceAll(b.Text, "kubectl apply --server-side", "kubectl apply --server-side --force-conflicts --dry-run=server"))
		},
		"old-checkout": func(ctx context.Context, b page.Block) (string, error) {
			r.laterVersion(t, false)
			return r.runner.Bash(ctx, b.Text)
		},
		"cosign-2": func(ctx context.Context, b page.Block) (string, error) {
			return r.runner.Bash(ctx, "cosign() { cosign-v2 \"$@\"; }\n"+b.Text)
		},
	}
}

// installGatekeeper runs the page's helm install with the chart that its Go module has.
// Hooks are pods, which cannot run: what one of them does to the namespace is done here. The
// time for which Gatekeeper keeps answers is shorter, because the test waits for each change
// of a verdict.
func (r *reader) installGatekeeper(ctx context.Context, b page.Block) (string, error) {
	_, install, _ := strings.Cut(b.Text, "\n") // after helm repo add
	chart, err := suite.GatekeeperChart(ctx)
	if err != nil {
		return "", err
	}
	output, err := r.runner.Bash(ctx, strings.TrimSpace(strings.ReplaceAll(install, "gatekeeper/gatekeeper", chart+" --no-hooks"))+
		" --set externaldataProviderResponseCacheTTL=1s\nkubectl label namespace gatekeeper-system admission.gatekeeper.sh/ignore=no-self-managing "+
		"pod-security.kubernetes.io/enforce=restricted\n")
	if err != nil {
		return output, err
	}
	return output, r.AdoptGatekeeper(ctx)
}

// trustsTheNewKeyOnly checks what docs/operate/rotate.md says of a key that was rotated.
func (r *reader) trustsTheNewKeyOnly(t *testing.T) {
	t.Helper()
	const sign = "cosign sign --signing-config signing-config.json --yes --key "
	const image = " $(cosign triangulate --type digest registry.example.com/platform/once:v1)"
	const run = "kubectl run once --namespace team-a --image registry.example.com/platform/once:v1 --dry-run=server" + fits
	r.bash(t, sign+"retired/cosign.key"+image)
	output, err := r.runner.Bash(t.Context(), run)
	require.Error(t, err)
	require.Contains(t, output, "[verified-images]")
	r.bash(t, sign+"cosign.key"+image)
	suite.Eventually(t, func(ctx context.Context) error {
		_, err := r.runner.Bash(ctx, run)
		return err
	})
}

// later is an annotation that a CRD and the template have in the later version only.
const later = "example.com/later"

// laterVersion makes the checkout one of a later version, or of the version before.
func (r *reader) laterVersion(t *testing.T, yes bool) {
	t.Helper()
	for _, name := range []string{"charts/landwaiter/Chart.yaml", "charts/landwaiter/files/crds/landwaiter.dev_verifiers.yaml",
		"library/verified-images/template.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		if yes {
			changed := strings.Replace(string(text), "\n  annotations:\n", "\n  annotations:\n    "+later+": \"true\"\n", 1)
			changed = strings.Replace(changed, "\nversion: ", "\nversion: 1", 1)
			require.NotEqual(t, string(text), changed, name)
			text = []byte(changed)
		}
		require.NoError(t, os.WriteFile(filepath.Join(r.runner.Dir, name), text, 0o600))
	}
}

// isLater checks which version's CRD and template the API server has.
func (r *reader) isLater(t *testing.T, yes bool) {
	t.Helper()
	for _, object := range []string{"customresourcedefinition verifiers.landwaiter.dev", "constrainttemplate verifiedimages"} {
		text := r.bash(t, "kubectl get "+object+" -o jsonpath='{.metadata.annotations}'")
		require.Equal(t, yes, strings.Contains(text, later), "%s: %s", object, text)
	}
	history := r.bash(t, "helm history landwaiter --namespace landwaiter-system --max 1")
	require.Equal(t, yes, strings.Contains(history, "landwaiter-1"), history)
}

// nothingDenies checks that a cluster without Landwaiter admits what it denied, and has
// nothing that still asks for it.
func (r *reader) nothingDenies(t *testing.T) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		_, err := r.runner.Bash(ctx, "kubectl run left --namespace team-a --image registry.example.com/platform/never-signed:v1"+fits)
		return err
	})
	suite.Eventually(t, func(context.Context) error { // Kubernetes deletes them after their roles
		if left := r.bash(t, "kubectl get providers.externaldata.gatekeeper.sh"); !strings.Contains(left, "No resources found") {
			return errors.New(left)
		}
		return nil
	})
	for _, left := range []string{"constrainttemplates", "assign.mutations.gatekeeper.sh"} {
		require.Contains(t, r.bash(t, "kubectl get "+left), "No resources found")
	}
	for _, left := range []string{"customresourcedefinitions", "clusterroles", "clusterrolebindings", "namespaces"} {
		require.NotContains(t, r.bash(t, "kubectl get "+left+" -o name"), "landwaiter", left)
	}
}
