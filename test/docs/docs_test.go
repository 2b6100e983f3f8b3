// Package docs holds the documents to what the program does: their resources are
// read and compiled, their fields are those that there are.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// resources are the YAML blocks of a document that have ours.
func resources(t *testing.T, name string) []string {
	t.Helper()
	var blocks []string
	for _, block := range strings.Split(read(t, name), "```yaml\n")[1:] {
		text, _, closed := strings.Cut(block, "```")
		require.True(t, closed, name)
		if strings.Contains(text, "landwaiter.dev/") {
			blocks = append(blocks, filled(t, text))
		}
	}
	require.NotEmpty(t, blocks, name)
	return blocks
}

// certificates of the documents, which leave out what is inside of one.
var certificates = sync.OnceValues(func() (string, error) {
	authority, err := fixture.NewAuthority("example")
	if err != nil {
		return "", err
	}
	return string(authority.CertificatePEM), nil
})

// filled puts a certificate wherever a document has one without its text.
func filled(t *testing.T, text string) string {
	t.Helper()
	certificate, err := certificates()
	require.NoError(t, err)
	return regexp.MustCompile(`( +)-----BEGIN CERTIFICATE-----\n +…\n +-----END CERTIFICATE-----\n`).ReplaceAllStringFunc(text, func(found string) string {
		indent := found[:len(found)-len(strings.TrimLeft(found, " "))]
		return indent + strings.ReplaceAll(strings.TrimSpace(certificate), "\n", "\n"+indent) + "\n"
	})
}

// indented makes text the value of a block scalar.
func indented(text []byte) string {
	return "|\n    " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")
}

// granted is what the documents take to be there: the Secrets and ConfigMaps
// that their resources name.
func granted(t *testing.T, name string) string {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	const pull = `'{"auths":{"registry.example.com":{"username":"u","password":"p"}}}'`
	documents := []string{}
	add := func(kind, namespace, name, key, value string) {
		field := map[string]string{"Secret": "stringData", "ConfigMap": "data"}[kind]
		documents = append(documents, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: "+name+", namespace: "+namespace+"}\n"+field+":\n  "+key+": "+value+"\n")
	}
	if name == "docs/howto/attestations.md" { // the others bring their own
		documents = append(documents, "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterTrustStore\nmetadata: {name: platform-keys}\nspec: {type: PublicKeys, "+
			"source: {secretKeyRef: {name: cosign-pub, key: cosign.pub}}}\n")
	}
	// docs/howto/github-attestations.md writes GitHub's root with a shell
	if name == "docs/howto/attestations.md" || name == "docs/howto/examples/github-provenance.md" {
		documents = append(documents, "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterTrustStore\nmetadata: {name: github}\nspec: {type: SigstoreRoot, source: "+
			"{tuf: {mirror: \"https://tuf-repo.github.com\", root: \"{}\"}}}\n")
	}
	if name == "docs/howto/self-service.md" { // docs/howto/install.md writes it with a shell
		documents = append(documents, "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerifier\nmetadata: {name: platform-signature}\nspec: {type: Cosign, "+
			"cosign: {keys: {insecureIgnoreTransparencyLog: true, inline: "+strconv.Quote(string(key.PEM))+"}}}\n")
	}
	add("Secret", "team-a", "cosign-pub", "cosign.pub", indented(key.PEM))
	for _, name := range []string{"platform-keys", "cosign-pub"} {
		add("Secret", resource.DefaultClusterResourceNamespace, name, "cosign.pub", indented(key.PEM))
	}
	add("Secret", "team-a", "vault-token", "token", "hvs.x")
	add("Secret", "team-a", "github-app", "appID", "'4711'")
	for _, name := range []string{"pull", "deploy-token", "group-token"} {
		add("Secret", "team-a", name, ".dockerconfigjson", pull)
	}
	add("Secret", "landwaiter-system", "pull", ".dockerconfigjson", pull)
	// OpenShift makes these.
	authority, err := fixture.NewAuthority("openshift-service-serving-signer")
	require.NoError(t, err)
	add("ConfigMap", "landwaiter-system", "openshift-service-ca", "service-ca.crt", indented(authority.CertificatePEM))
	add("Secret", "landwaiter-system", "landwaiter-pull-dockercfg-7x2kd", ".dockercfg",
		`'{"image-registry.openshift-image-registry.svc:5000":{"username":"serviceaccount","password":"p"}}'`)
	documents = append(documents, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: landwaiter-pull, namespace: landwaiter-system}\nimagePullSecrets: "+
		"[{name: landwaiter-pull-dockercfg-7x2kd}]\n")
	return strings.Join(documents, "---\n")
}

// fetched is what the documents' resources keep outside of the cluster.
func fetched(t *testing.T, objects resource.Objects) map[external.Source]external.Value {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	instance, err := sigstore.New()
	require.NoError(t, err)
	root, err := instance.TrustedRoot()
	require.NoError(t, err)
	known := map[external.Source]external.Value{}
	for _, sources := range resolve.Group(objects).Externals() {
		for _, source := range sources {
			known[source] = external.Value{Content: key.PEM}
			switch source.Kind {
			case external.TUF:
				known[source] = external.Value{Content: root}
			case external.Registry:
				known[source] = external.Value{Content: []byte(`{"auths":{"` + source.Address + `":{"username":"u","password":"p"}}}`)}
			case external.VaultKeys, external.VaultCertificates, external.KMS:
			}
		}
	}
	return known
}

func TestResourcesInDocumentsAreInForceOnAnyDay(t *testing.T) {
	for _, group := range withResources() {
		onAnyDay(t, group[0], func(t *testing.T) {
			dir := t.TempDir()
			var documents []string
			for _, name := range group {
				documents = append(documents, resources(t, name)...)
			}
			text := strings.Join(append(documents, granted(t, group[0])), "---\n")
			text = strings.ReplaceAll(text, never, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)) // readers replace these
			require.NoError(t, os.WriteFile(filepath.Join(dir, "resources.yaml"), []byte(text), 0o600))
			objects, problems, err := configdir.Load(t.Context(), dir)
			require.NoError(t, err)
			require.Empty(t, problems)
			_, problems = resolve.Empty(resolve.Outside{
				Registry:   func(registry.Access) verify.Registry { return nil },
				Revocation: func(verify.Namespace) http.RoundTripper { return http.DefaultTransport },
				AWSSigner:  func(verify.Namespace, external.Identity) external.RevokedOf { return nil },
			}).Next(resolve.Group(objects), fetched(t, objects))
			require.Empty(t, problems)
		})
	}
}

func TestExamplesLetOnlyAdminsDecideWhatIsTrusted(t *testing.T) {
	shown := map[string]bool{} // docs/howto/trust.md shows what it warns of, once
	check := func(name, dir string) {
		objects, _, err := configdir.Load(t.Context(), dir)
		require.NoError(t, err, name)
		require.NotEmpty(t, objects.Resources, name)
		for _, finding := range resource.Exposures(objects.Resources...) {
			require.Equal(t, "TrustStore team-a/rotated-keys", finding.Resource.String(), "%s: %s", name, finding)
			shown[name] = true
		}
	}
	for _, name := range slices.Concat(withResources()...) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "resources.yaml"), []byte(strings.Join(resources(t, name), "---\n")), 0o600))
		check(name, dir)
	}
	check("config/samples", filepath.Join(root, "config/samples"))
	check("the demo", filepath.Join(root, "test/kit/example/resources"))
	require.Equal(t, map[string]bool{"docs/howto/trust.md": true}, shown)
}

// Each reason of a condition is a row of its table, and the tables have no others.
func TestEveryReasonOfAConditionIsExplained(t *testing.T) {
	// Files have problems that no condition has.
	onlyWithFiles := []string{"Duplicate", "Ignored", "NeverReached", "Unwatched"}
	text := read(t, "docs/reference/conditions.md")
	for condition, declared := range reasons(t) {
		explained := map[string]bool{}
		for _, row := range regexp.MustCompile(`(?m)^\| `+"`(?:True|False|Unknown)` \\| `([A-Za-z]+)` \\| (.+) \\|$").
			FindAllStringSubmatch(tableOf(t, text, condition), -1) {
			explained[row[1]] = true
		}
		for _, reason := range declared {
			if slices.Contains(onlyWithFiles, reason) {
				require.Contains(t, text, "`"+reason+"` (", "%s is not explained", reason)
				continue
			}
			require.True(t, explained[reason], "%s: the reason %s is not explained", condition, reason)
			delete(explained, reason)
		}
		delete(explained, string(policy.ReasonPending)) // of both conditions
		delete(explained, string(policy.ReasonExpired)) // of ExpiresSoon, and of exceptions that are no longer Effective
		require.Empty(t, explained, "%s has no such reasons", condition)
	}
}

// tableOf is the table whose first column is a condition.
func tableOf(t *testing.T, text, condition string) string {
	t.Helper()
	_, table, found := strings.Cut(text, "| `"+condition+"` | reason |")
	require.True(t, found, "docs/reference/conditions.md has no table of %s", condition)
	table, _, _ = strings.Cut(table, "\n\n")
	return table
}

// reasons are the constants of pkg/decide/policy by the condition that their group is for.
func reasons(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "pkg/decide/policy/reason.go"), nil, parser.ParseComments)
	require.NoError(t, err)
	found := map[string][]string{}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		condition, ok := strings.CutPrefix(group.Doc.Text(), "Reasons of the condition ")
		if !ok {
			continue
		}
		condition = strings.TrimSuffix(strings.TrimSpace(condition), ".")
		condition, _, _ = strings.Cut(condition, " of ") // kinds
		for _, spec := range group.Specs {
			value, ok := spec.(*ast.ValueSpec)
			require.True(t, ok)
			literal, ok := value.Values[0].(*ast.BasicLit)
			require.True(t, ok)
			found[condition] = append(found[condition], strings.Trim(literal.Value, `"`))
		}
	}
	require.Len(t, found, 5)
	return found
}

func TestFilesThatDocumentsNameAreThere(t *testing.T) {
	path := regexp.MustCompile("(?m)(?:^|[ `(])((?:library|config|charts|docs|test)/[a-z0-9_./-]*[a-z0-9])")
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, name := range pages(t) {
		text := read(t, name)
		for _, found := range path.FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(filepath.Join(root, found[1]))
			require.NoError(t, err, "%s names %s", name, found[1])
		}
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(filepath.Join(root, filepath.Dir(name), found[1]))
			require.NoError(t, err, "%s links to %s", name, found[1])
		}
	}
}

func TestExamplesTrustNoStrangers(t *testing.T) {
	check := func(name, dir string) {
		objects, _, err := configdir.Load(t.Context(), dir)
		require.NoError(t, err, name)
		for _, o := range objects.Resources {
			for _, problem := range conditions.Review(o) {
				require.Contains(t, []policy.Reason{policy.ReasonPublishedKey, policy.ReasonPlaceholder}, problem.Reason, "%s: %s: %s", name, problem.Source,
					problem.Message)
			}
		}
	}
	for _, name := range slices.Concat(withResources()...) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "resources.yaml"), []byte(strings.Join(resources(t, name), "---\n")), 0o600))
		check(name, dir)
	}
	for _, dir := range []string{"config/samples", "test/kit/example/resources"} {
		check(dir, filepath.Join(root, dir))
	}
	samples, err := filepath.Glob(filepath.Join(root, "library/samples/*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	for _, sample := range samples {
		text, err := os.ReadFile(sample)
		require.NoError(t, err)
		if strings.Contains(string(text), "\napiVersion: landwaiter.dev/") {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "sample.yaml"), text, 0o600))
			check(sample, dir)
		}
	}
}
