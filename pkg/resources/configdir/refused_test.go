package configdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
)

// Nothing else in the way of files to a Snapshot has a CRD.
func TestAResourceThatTheCRDRefusesIsBroken(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"rules":         {"{rules: [" + strings.Repeat("{images: [a], action: Allow},", 65) + "]}", "spec.rules: must have at most 64 items; shorten it"},
		"an empty list": {"{rules: [{images: [], action: Allow}]}", "spec.rules[0].images"},
		"no name":       {"{}\nmetadata: {name: No_Name, namespace: team-a}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nspec: " + c.spec
			if !strings.Contains(text, "metadata") {
				text += "\nmetadata: {name: p, namespace: team-a}"
			}
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(text), 0o600))
			o, problems, err := configdir.Load(t.Context(), dir)
			if c.want == "" {
				require.Error(t, err) // it has no identity
				return
			}
			require.NoError(t, err)
			require.Empty(t, o.Resources)
			require.Len(t, o.Broken, 1)
			require.ErrorContains(t, o.Broken[0].Err, c.want)
			require.Equal(t, policy.ReasonInvalid, problems[0].Reason)
		})
	}
}
