package configdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const placed = `# a comment
apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata:
  name: p
  namespace: team-a
  labels: {app.kubernetes.io/name: x}
spec:
  rules:
  - images: ["**"]
    action: Deny
  - images:
    - registry.example.com/**
    action: Allow
`

func TestKnowsTheLineOfEveryField(t *testing.T) {
	listed := "apiVersion: v1\nkind: List\nitems:\n- " + strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(placed, "# a comment\n"), "\n", "\n  ")) + "\n"
	for name, c := range map[string]struct {
		text  string
		shift int
	}{
		"a document":        {placed, 0},
		"a second document": {"a: b\n---\n" + placed, 2},
		"an item of a list": {listed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Read(t.Context(), "", []string{Standard}, strings.NewReader(c.text))
			require.NoError(t, err)
			d := files.Declarations[len(files.Declarations)-1]
			require.Equal(t, source("VerificationPolicy", "team-a", "p"), d.Source)
			require.Equal(t, "standard input", d.File)
			for field, line := range map[string]int{
				"": 2, "metadata.namespace": 6, "metadata.labels": 7, "spec": 8, "spec.rules": 9, "spec.rules[0]": 10, "spec.rules[0].action": 11,
				"spec.rules[1].images[0]": 13,
				"spec.rules[1].action":    14, "spec.rules[1].gone": 12, "spec.rules[7].images": 9, "spec.gone.more": 8, "gone": 2, "[app]..x]": 2, "spec.rules[-1]": 9,
			} {
				require.Equal(t, line+c.shift, d.LineOf(field), field)
			}
		})
	}
}

func TestReadsFilesDirectoriesAndStandardInputOnce(t *testing.T) {
	dir := writeTree(t,
		files{"rules/a.yaml": verifier("team-a", "a"), "rules/deep/b.yaml": verifier("team-a", "b"), "c.txt": verifier("team-a", "c"), "rules/note.txt": garbage})
	read, err := Read(t.Context(), "",
		[]string{filepath.Join(dir, "rules"), filepath.Join(dir, "rules", "deep", ".", "b.yaml"), filepath.Join(dir, "c.txt"), Standard}, strings.NewReader(garbage))
	require.NoError(t, err)
	require.Equal(t, []string{"Verifier team-a/a", "Verifier team-a/b", "Verifier team-a/c"}, names(read.Objects))
	require.Len(t, read.Declarations, 4)
	require.Error(t, read.Declarations[3].Err)
	require.Zero(t, read.Declarations[3].Source)
}

func TestReadKeepsNoSecret(t *testing.T) {
	read, err := Read(t.Context(), "", []string{Standard}, strings.NewReader(printed(listedSecret, listedVerifier, listedPod)))
	require.NoError(t, err)
	for _, d := range read.Declarations {
		require.Equal(t, d.Source.Kind == "Verifier", d.JSON != nil)
		require.Equal(t, d.Source.Kind == "Pod", d.Ignored)
	}
	require.Len(t, read.Declarations, 3)
}

func TestReadFailsForWhatItCannotRead(t *testing.T) {
	dir := writeTree(t, files{"a.yaml": verifier("team-a", "a")})
	link(t, dir, "gone.yaml", "nowhere")
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, maxFileBytes+1), 0o600))
	for path, message := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		dir:                        "gone.yaml",
		large:                      "large: it is larger than 4194304 bytes",
		Standard:                   "read standard input: it is larger",
	} {
		_, err := Read(t.Context(), "", []string{path}, strings.NewReader(strings.Repeat("#", maxFileBytes+1)))
		require.ErrorContains(t, err, message)
	}
	many := t.TempDir()
	var paths []string
	for i := range maxTotalBytes/maxFileBytes + 1 {
		paths = append(paths, filepath.Join(many, fmt.Sprint(i)))
		require.NoError(t, os.WriteFile(paths[i], []byte("#"+strings.Repeat("x", maxFileBytes-1)), 0o600))
	}
	_, err := Read(t.Context(), "", paths, nil)
	require.ErrorContains(t, err, "larger than 67108864 bytes together")
}
