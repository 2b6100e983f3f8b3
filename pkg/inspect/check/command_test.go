package check

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// words returns the arguments of each kubectl that a shell starts for command.
func words(t *testing.T, command string) []string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-c", `kubectl() { for word in "$@"; do printf '%s\n' "$word" >&2; done; }
`+command)
	shell.Env = []string{"PATH=/nonexistent"} // what is injected would fail, and be seen
	var stderr strings.Builder
	shell.Stderr = &stderr
	require.NoError(t, shell.Run(), "%s\n%s", command, &stderr)
	return strings.Split(stderr.String(), "\n")
}

func TestNoKeyThatAResourceNamesGetsOutOfItsQuotes(t *testing.T) {
	for _, key := range []string{"cosign.pub", "k'$(touch hole)'", "`touch hole`", "k\"; touch hole", "%s%d", "k\nnext", "a'b", "{{.data}}"} {
		t.Run(key, func(t *testing.T) {
			store := &v1beta1.TrustStore{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.KindTrustStore},
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "keys"}}
			store.Spec.Source.SecretKeyRef = &v1beta1.KeyReference{Name: "keys", Key: key}
			found := resource.Exposures(store)
			require.Len(t, found, 1)
			plain := isKey(key)
			require.Equal(t, key == "cosign.pub", plain)

			command := inlined(found[0], []v1beta1.Object{store})
			require.NotContains(t, words(t, command), "touch")
			if !plain {
				require.Equal(t, "kubectl edit truststores.landwaiter.dev keys --namespace=team-a", command)
				require.Empty(t, (&view{Inventory: &Inventory{}}).renewal(store))
				return
			}
			require.Contains(t, words(t, command), `--output=go-template=[{"op":"replace","path":"/spec/source","value":{"inline":{{printf "%q" (index .data `+
				`"cosign.pub" | base64decode)}}}}]`)
			renewed := words(t, (&view{Inventory: &Inventory{}}).renewal(store))
			require.Contains(t, renewed, `--output=go-template={"stringData":{"cosign.pub":{{printf "%q" (index .data "new.pem")}}}}`)
		})
	}
}

func TestEveryTextIsOneWordForAShell(t *testing.T) {
	for _, text := range []string{"", "-n", "a b", "a'b", "$(touch hole)", "`x`", `\`, "a;b", "*", "~", "#", "a&b", "{a,b}"} {
		require.Equal(t, text, words(t, "kubectl "+resource.ShellWord(text))[0])
	}
	encoded, err := json.Marshal("\u202e\n")
	require.NoError(t, err)
	require.NotContains(t, resource.ShellWord("\u202e\n"), "\u202e", encoded)
}
