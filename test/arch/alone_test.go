package arch

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Digests are only known to a program that links their algorithm.
func TestImagesAreParsedInAProgramThatImportsNothingElse(t *testing.T) {
	name := "registry.example.com/app@sha256:" + strings.Repeat("0", 64)
	command := exec.CommandContext(t.Context(), "go", "run", "./test/arch/testdata/alone", name,
		strings.Replace(name, "sha256:", "sha512:"+strings.Repeat("0", 64), 1))
	command.Dir = root
	said, err := command.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), name+" <nil>\n")
	require.Contains(t, string(said), "has a sha512 digest, only sha256 is supported")
}
