package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelpNamesTheProgramAsItWasCalled(t *testing.T) {
	for name, c := range map[string]struct{ file, usage, example string }{
		"by its name":             {"/usr/local/bin/landwaiter", "Usage:\n  landwaiter preview", "\n  landwaiter preview -f"},
		"as a plugin of kubectl":  {"/usr/local/bin/kubectl-landwaiter", "Usage:\n  kubectl landwaiter preview", "\n  kubectl landwaiter preview -f"},
		"as a plugin on Windows":  {"kubectl-landwaiter.exe", "Usage:\n  kubectl landwaiter preview", "\n  kubectl landwaiter preview -f"},
		"under a name of its own": {"lw", "Usage:\n  landwaiter preview", "\n  landwaiter preview -f"},
	} {
		t.Run(name, func(t *testing.T) {
			root := calledAs(newRoot(), c.file)
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetArgs([]string{"preview", "--help"})
			require.NoError(t, root.Execute())
			require.Contains(t, out.String(), c.usage)
			require.Contains(t, out.String(), c.example)
			require.NotContains(t, out.String(), "kubectl kubectl")
			require.NotContains(t, out.String(), "kubectl-landwaiter")
		})
	}
}
