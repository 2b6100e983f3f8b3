package scaffold

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const gotkSync = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/staging, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`

func TestLockdownGivesTheseArguments(t *testing.T) {
	components, err := os.ReadFile("testdata/gotk-components.yaml")
	require.NoError(t, err)
	documents := strings.Split(string(components), "---\n")
	const refs, bases, account = "--no-cross-namespace-refs=true", "--no-remote-bases=true", "--default-service-account=default"
	locked := map[string][]string{
		"source-controller":           nil,
		"kustomize-controller":        {refs, bases, account},
		"helm-controller":             {refs, account},
		"notification-controller":     {refs},
		"image-reflector-controller":  {refs},
		"image-automation-controller": {refs},
	}
	for name, c := range map[string]struct {
		components []string
		shared     bool
	}{
		"all controllers":              {documents, false},
		"without image controllers":    {documents[:4], false},
		"without all but two":          {documents[:2], false},
		"with a source that is shared": {documents, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := light(t, example{platform: &Platform{Constraints: []string{imagesSet}, SharedSource: c.shared}}.write(t))
			put1(t, dir, "clusters/staging/flux-system/gotk-components.yaml", strings.Join(c.components, "---\n"))
			put1(t, dir, "clusters/staging/flux-system/gotk-sync.yaml", gotkSync)
			built := loaded(t, dir).build("clusters/staging/flux-system")
			require.False(t, built.failed)
			require.Len(t, built.objects, len(c.components)+1)
			before, err := decode(strings.Join(c.components, "---\n"))
			require.NoError(t, err)
			for _, o := range built.objects {
				if isFlux(o, "Kustomization") {
					found, _, _ := unstructured.NestedString(o.Object, "spec", "serviceAccountName")
					require.Equal(t, "kustomize-controller", found)
					continue
				}
				i := slices.IndexFunc(before, func(b *unstructured.Unstructured) bool { return b.GetName() == o.GetName() })
				want := slices.Clone(locked[o.GetName()])
				if c.shared {
					want = slices.DeleteFunc(want, func(argument string) bool { return argument == refs })
				}
				require.Equal(t, append(argumentsOf(before[i]), want...), argumentsOf(o), o.GetName())
			}
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Findings)
		})
	}
}

// installed is as much of what flux install --export prints as the order needs.
func installed(t *testing.T) string {
	t.Helper()
	components, err := os.ReadFile("testdata/gotk-components.yaml")
	require.NoError(t, err)
	return "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: allow-egress, namespace: flux-system}\nspec: {podSelector: {}, policyTypes: [Egress]}\n" +
		"---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gitrepositories.source.toolkit.fluxcd.io}\n" +
		"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n---\n" + string(components)
}

func TestBootstrapPrintsTheSourceAndTheLockdown(t *testing.T) {
	asked := Bootstrap{Components: []byte(installed(t)), URL: "https://github.com/example/demo", Branch: "main", IgnorePaths: []string{"ctrl.py", "README.md"}}
	for _, shared := range []bool{false, true} {
		asked.SharedSource = shared
		text, err := asked.Manifest()
		require.NoError(t, err)
		objects, err := decode(text)
		require.NoError(t, err)
		var names []string
		for _, o := range objects {
			names = append(names, identity(o))
			require.Empty(t, lacking(o, shared), identity(o))
		}
		require.Len(t, objects, 10)
		require.Equal(t, []string{"Namespace flux-system", "CustomResourceDefinition gitrepositories.source.toolkit.fluxcd.io"}, names[:2], "what others need is first")
		require.Equal(t, "GitRepository flux-system/default", names[9], "what needs others is last")
		require.Equal(t, map[string]any{"interval": "1m", "url": "https://github.com/example/demo", "ref": map[string]any{"branch": "main"}, "ignore": "ctrl.py\nREADME.md"}, objects[9].Object["spec"])
		require.Equal(t, !shared, strings.Contains(text, "--no-cross-namespace-refs=true"))
		require.Contains(t, text, "--no-remote-bases=true")
	}
}

func TestBootstrapRefusesWhatWouldNotBeLockedDown(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Bootstrap)
		message string
	}{
		"no URL":                   {func(b *Bootstrap) { b.URL = "" }, "--git-url is required"},
		"a URL that is not secure": {func(b *Bootstrap) { b.URL = "http://example.com/x" }, `--git-url is "http://example.com/x"`},
		"a URL with a password":    {func(b *Bootstrap) { b.URL = "https://me:token@example.com/x" }, "leave out credentials"},
		"no branch":                {func(b *Bootstrap) { b.Branch = "" }, "--git-branch"},
		"nothing":                  {func(b *Bootstrap) { b.Components = nil }, "--filename: "},
		"what is no YAML":          {func(b *Bootstrap) { b.Components = []byte("a: [") }, "--filename: "},
		"a Flux elsewhere": {func(b *Bootstrap) {
			b.Components = []byte(strings.ReplaceAll(string(b.Components), "namespace: flux-system", "namespace: flux"))
		}, "it has no Deployment flux-system/kustomize-controller"},
		"a controller that opens itself": {func(b *Bootstrap) {
			b.Components = []byte(strings.Replace(string(b.Components), "--watch-all-namespaces=true", "--no-cross-namespace-refs=false", 2))
		}, "kustomize-controller has --no-cross-namespace-refs twice, and the last one counts"},
		"aliases without end": {func(b *Bootstrap) {
			b.Components = append(b.Components, "---\na: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"+
				"d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n"...)
		}, "once its aliases are expanded"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := Bootstrap{Components: []byte(installed(t)), URL: "https://github.com/example/demo", Branch: "main"}
			c.change(&asked)
			_, err := asked.Manifest()
			require.ErrorContains(t, err, c.message)
		})
	}
}
