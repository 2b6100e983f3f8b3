package configdir_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
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
			require.Empty(t, o.Broken, "it is no object that could not be read")
			require.Len(t, o.Resources, 1)
			require.ErrorContains(t, resource.Refused(o.Resources[0]), c.want)
			require.Equal(t, policy.ReasonInvalid, problems[0].Reason)
			require.Contains(t, problems[0].Message, "p.yaml, document 1 (line 1): ")
		})
	}
}

// Otherwise a team's own policy would stand in for one that is mandatory.
func TestAPolicyThatTheCRDRefusesStillSaysWhoseImagesItDenies(t *testing.T) {
	team := []string{written.Namespace("team-a", "1"), written.Object("VerificationPolicy", "team-a", "p", "rules: [{images: [\"**\"], action: Allow}]")}
	for name, c := range map[string]struct {
		spec string
		want policy.Outcome
	}{
		"a mandatory policy": {"{scope: Mandatory, rules: [{images: [], action: Allow}]}", policy.Denied},
		"one that warns":     {"{scope: Mandatory, enforcementAction: Warn, rules: [{images: [], action: Allow}]}", policy.Allowed},
		"a fallback":         {"{rules: [{images: [], action: Allow}]}", policy.Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := "apiVersion: v1\n" + strings.Join(append(slices.Clone(team), written.Object("ClusterVerificationPolicy", "", "c", c.spec)),
				"\n---\napiVersion: landwaiter.dev/v1beta1\n")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(text), 0o600))
			o, _, err := configdir.Load(t.Context(), dir)
			require.NoError(t, err)
			snapshot, _ := written.Compiled(o)
			ref, err := image.Parse("registry.example.com/app:1")
			require.NoError(t, err)
			outcome, known := snapshot.For("team-a").Foreseen(ref)
			require.True(t, known)
			require.Equal(t, c.want, outcome)
		})
	}
}
