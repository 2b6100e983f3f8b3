package scaffold

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
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
	return "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: allow-egress, namespace: flux-system}\nspec: {podSelector: {}, " +
		"policyTypes: [Egress]}\n" +
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
			require.Empty(t, (Platform{SharedSource: shared}).lacking(o), identity(o))
		}
		require.Len(t, objects, 10)
		require.Equal(t, []string{"Namespace flux-system", "CustomResourceDefinition gitrepositories.source.toolkit.fluxcd.io"}, names[:2],
			"what others need is first")
		require.Equal(t, "GitRepository flux-system/default", names[9], "what needs others is last")
		require.Equal(t,
			map[string]any{"interval": "1m", "url": "https://github.com/example/demo", "ref": map[string]any{"branch": "main"}, "ignore": "ctrl.py\nREADME.md"},
			objects[9].Object["spec"])
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
			b.Components = append(b.Components, "---\na: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, "+
				"*b, *b, *b, *b, *b, *b]\n"+
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

// With sopsKMS, kustomize-controller has a cloud identity that may decrypt all of the platform's Secrets.
func TestTeamsDoNotDecryptWithTheIdentityOfFlux(t *testing.T) {
	const key, entry = "sopsKMS=arn:aws:kms:eu-central-1:111122223333:key/0d9d8d8e-0000-4000-8000-000000000000", "clusters/staging/flux-system/"
	const feature, kubeConfig, decryption = "--feature-gates=ObjectLevelWorkloadIdentity=true", "--default-kubeconfig-service-account=default",
		"--default-decryption-service-account=default"
	components, err := os.ReadFile("testdata/gotk-components.yaml")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		image  string
		locked bool
	}{
		"a Flux that is not there yet":            {"", true},
		"Flux 2.7":                                {"ghcr.io/fluxcd/kustomize-controller:v1.7.0", true},
		"Flux 2.10, by digest":                    {"ghcr.io/fluxcd/kustomize-controller:v1.10.0@sha256:00", true},
		"Flux 2.6, which stops at such arguments": {"registry.example.com/flux/kustomize-controller:v1.6.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			put1(t, dir, entry+"gotk-components.yaml", string(components))
			put1(t, dir, entry+"gotk-sync.yaml", gotkSync)
			rewrite(t, dir, entry+"gotk-components.yaml", "metadata: {name: kustomize-controller,",
				"metadata: {annotations: {image: '"+c.image+"'}, name: kustomize-controller,")
			p, err := Prepare(dir, Told{Settings: settings(key, "environments=staging", "constraints=images")})
			require.NoError(t, err)
			tree, err := NewPlatform(p)
			require.NoError(t, err)
			_, err = Write(dir, tree, WriteOptions{})
			require.NoError(t, err)
			for _, o := range loaded(t, dir).build(path.Dir(entry)).objects {
				given := argumentsOf(o)
				require.Equal(t, c.locked && o.GetName() == "kustomize-controller", slices.Contains(given, decryption), o.GetName())
				for _, argument := range []string{feature, kubeConfig} {
					require.Equal(t, c.locked && slices.Contains([]string{"kustomize-controller", "helm-controller"}, o.GetName()),
						slices.Contains(given, argument), o.GetName())
				}
			}
			require.Equal(t, c.locked,
				strings.Contains(content(t, dir, "clusters/staging/tenants.yaml"), "  decryption:\n    provider: sops\n    serviceAccountName: kustomize-controller\n"))
			light(t, dir)
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Findings)
			put1(t, dir, "components/flux-lockdown/kustomization.yaml", Platform{}.lockdown())
			report, err = Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			found := slices.ContainsFunc(report.Findings, func(f resource.Finding) bool {
				return strings.Contains(f.Message, "kustomize-controller lacks "+decryption)
			})
			require.Equal(t, c.locked, found)
		})
	}
}
