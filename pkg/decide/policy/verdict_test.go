package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Others cannot make such a verdict.
func TestAnOutcomeThatDoesNotExistAllowsNothing(t *testing.T) {
	unknown := Verdict{outcome: 77}
	require.Equal(t, "denied", unknown.Outcome().String())
	kept, err := Restore("perhaps", unknown)
	require.Error(t, err)
	require.Zero(t, kept)
	var all Combined
	all.Add(Verdict{outcome: Allowed}, false)
	all.Add(unknown, false)
	require.NotEqual(t, Allowed, all.Verdict().Outcome())
}

func TestPoliciesThatOnlyWarnAllowNothingAlone(t *testing.T) {
	var all Combined
	require.Equal(t, Denied, all.Verdict().Outcome())
	all.Add(Verdict{outcome: Allowed}, true)
	all.Add(Verdict{Reason: "unsigned"}, true)
	require.Equal(t, Denied, all.Verdict().Outcome())
	all.Add(Verdict{outcome: Allowed, Reason: "signed"}, false)
	require.Equal(t, Allowed, all.Verdict().Outcome())
	all.Add(NotDecided(ObjectRef{}, "503"), false)
	require.Equal(t, Undecided, all.Verdict().Outcome())
	all.Add(Verdict{Reason: "unsigned"}, false)
	require.Equal(t, Denied, all.Verdict().Outcome())
}

func TestSuggestsTheNearestWord(t *testing.T) {
	words := []string{"images", "type", "cosign", "trustStoreRefs", "keys", "keyless"}
	for word, want := range map[string]string{"image": "images", "kees": "keys", "Type": "type", "truststoreref": "trustStoreRefs", "consign": "cosign",
		"zzz": "", "": ""} {
		near, ok := Nearest(word, words)
		require.Equal(t, want, near, word)
		require.Equal(t, want != "", ok, word)
	}
}

func TestCountsTheEditsBetweenWords(t *testing.T) {
	for _, row := range []struct {
		from, to string
		want     int
	}{
		{"", "", 0}, {"", "keys", 4}, {"keys", "", 4}, {"keys", "keys", 0}, {"kitten", "sitting", 3}, {"cosign", "consign", 1},
		{"flaw", "lawn", 2}, {"schlüssel", "schlussel", 1}, {"abc", "cba", 2}, {"ab", "ba", 2},
	} {
		require.Equal(t, row.want, edits(row.from, row.to), "%q to %q", row.from, row.to)
	}
}
