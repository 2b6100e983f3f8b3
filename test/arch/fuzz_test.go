package arch

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Inputs in the tree are run by every go test, and are where the next fuzzing begins.
func TestEveryFuzzTargetKeepsInputs(t *testing.T) {
	targets := 0
	for _, s := range readTree(t) {
		if !s.test {
			continue
		}
		s.functions(func(f *ast.FuncDecl) {
			if f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
				return
			}
			targets++
			inputs, err := os.ReadDir(filepath.Join(root, s.pkg, "testdata", "fuzz", f.Name.Name))
			require.NoError(t, err, "%s of %s: run make fuzz KEEP=8", f.Name.Name, s.pkg)
			require.NotEmpty(t, inputs, "%s of %s: run make fuzz KEEP=8", f.Name.Name, s.pkg)
		})
	}
	require.Positive(t, targets)
}
