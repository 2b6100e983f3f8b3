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

func TestBootstrapPrintsTheSourceAndTheLockdown(t *testing.T) {
	text, command, err := Bootstrap("https://github.com/example/demo", "main", false)
	require.NoError(t, err)
	objects, err := decode(text)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	require.Equal(t, "GitRepository flux-system/default", identity(objects[0]))
	require.Contains(t, command, "flux install --watch-all-namespaces")
	require.Contains(t, command, "--no-cross-namespace-refs=true")
	_, command, err = Bootstrap("ssh://git@example.com/demo", "main", true)
	require.NoError(t, err)
	require.NotContains(t, command, "--no-cross-namespace-refs=true")
	for _, url := range []string{"", "http://example.com/x", "https://me:token@example.com/x"} {
		_, _, err = Bootstrap(url, "main", false)
		require.ErrorContains(t, err, "--git-url")
	}
}
