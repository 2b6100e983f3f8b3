package image

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPatternsCoverWhatTheyMatchAllOf(t *testing.T) {
	for _, c := range []struct {
		p, q string
		want bool
	}{
		{"**", "**", true},
		{"**", "r.io/a", true},
		{"r.io/**", "**", false},
		{"r.io/**", "r.io/a/**", true},
		{"r.io/**", "r.io/a", true},
		{"r.io/**", "r.io/**/a", true},
		{"r.io/a/**", "r.io/**", false},
		{"r.io/a/**", "r.io/a", false},
		{"r.io/a", "r.io/a", true},
		{"r.io/a", "r.io/b", false},
		{"r.io/a", "s.io/a", false},
		{"*.r.io/**", "eu.r.io/a", true},
		{"*.r.io/**", "r.io/a", false},
		{"*.r.io/**", "*.r.io/a", true},
		{"*.r.io/**", "*.eu.r.io/a", false},
		{"eu.r.io/**", "*.r.io/a", false},
		{"r.io/team-*", "r.io/team-a", true},
		{"r.io/team-*", "r.io/team-a*", true},
		{"r.io/team-a*", "r.io/team-*", false},
		{"r.io/team-*", "r.io/*", false},
		{"r.io/*", "r.io/team-*", true},
		{"r.io/*", "r.io/a/b", false},
		{"r.io/*", "r.io/**", false},
		{"r.io/*/**", "r.io/**", false},
		{"r.io/*/**", "r.io/**/a", true},
		{"r.io/**/*", "r.io/*/**", true},
		{"r.io/*/**", "r.io/**/*", true},
		{"r.io/*/**", "r.io/**/**", true},
		{"r.io/**/**", "r.io/*/**", true},
		{"r.io/**/*", "r.io/**", false},
		{"r.io/**/*/a", "r.io/*/**/a", true},
		{"r.io/**/**", "r.io/*", false},
		{"r.io/**/a", "r.io/b/**/a", true},
		{"r.io/**/a", "r.io/b/**", false},
		{"r.io/a/**", "r.io/**/a", false},
		{"r.io/*a*", "r.io/a*a", true},
		{"r.io/a*a", "r.io/*a*", false},
		{"docker.io/library/*", "docker.io/nginx", true},
		{"docker.io/**", "index.docker.io/acme/app", true},
	} {
		steps := 1000
		require.Equal(t, c.want, parsed(t, c.p).Covers(parsed(t, c.q), &steps), "%s covers %s", c.p, c.q)
		require.Less(t, steps, 1000)
	}
	steps := 1000
	require.False(t, Pattern{}.Covers(parsed(t, "r.io/a"), &steps))
	require.False(t, parsed(t, "**").Covers(Pattern{}, &steps), "what matches nothing is not said to be covered")
}

func TestPatternsCoverNothingWithoutStepsForIt(t *testing.T) {
	long := parsed(t, "r.io/"+strings.Repeat("a/", 31)+"a")
	for steps := range 20 {
		require.False(t, long.Covers(long, &steps))
	}
	steps := 0
	require.False(t, parsed(t, "**").Covers(long, &steps))
	patterns, _ := hostile()
	for _, p := range patterns {
		for _, q := range patterns {
			steps := 1 << 20
			parsed(t, p).Covers(parsed(t, q), &steps)
			require.Less(t, 1<<20-steps, 1<<14, "%.40s covers %.40s", p, q)
		}
	}
}

func parsed(t testing.TB, text string) Pattern {
	t.Helper()
	p, err := ParsePattern(text)
	require.NoError(t, err, text)
	return p
}

// FuzzCovers holds what is said of two patterns to what they match. Few different letters make patterns that are
// alike.
func FuzzCovers(f *testing.F) {
	f.Add("r.io/**", "r.io/a*/b", "r.io/ab/b")
	f.Add("r.io/*/**", "r.io/**/a", "r.io/a/a")
	f.Add("*.r.io/**/a", "eu.r.io/*/**/a", "eu.r.io/a/b/a")
	f.Add("r.io/*a*b", "r.io/a*b", "r.io/aab")
	f.Fuzz(func(t *testing.T, p, q, image string) {
		covering, errP := ParsePattern(p)
		covered, errQ := ParsePattern(q)
		ref, errRef := Parse(image)
		steps := 1 << 16
		if errP == nil && errQ == nil && errRef == nil && covered.Match(ref) && covering.Covers(covered, &steps) {
			require.True(t, covering.Match(ref), "%q covers %q, and %q is matched only by the second", p, q, image)
		}
	})
}

// All patterns and repositories of a few segments are compared, so that no combination of wildcards is left out.
func TestNoPatternIsSaidToBeCoveredIfItMatchesAnImageOfItsOwn(t *testing.T) {
	patterns := []Pattern{parsed(t, "**"), parsed(t, "*.r.io/**")}
	var names []string
	for _, repository := range sequences([]string{"a", "b", "*", "a*", "*b", "**"}, 3) {
		patterns, names = append(patterns, parsed(t, "r.io/"+repository)), append(names, "r.io/"+repository)
	}
	var refs []Reference
	for _, repository := range sequences([]string{"a", "b", "ab", "ca"}, 4) {
		ref, err := Parse("r.io/" + repository)
		require.NoError(t, err)
		refs = append(refs, ref)
	}
	matches := make([][]bool, len(patterns))
	for i, p := range patterns {
		matches[i] = make([]bool, len(refs))
		for j, ref := range refs {
			matches[i][j] = p.Match(ref)
		}
	}
	said, missed := 0, 0
	for i, p := range patterns {
		for k, q := range patterns {
			steps, all := 1000, true
			for j := range refs {
				all = all && (matches[i][j] || !matches[k][j])
			}
			switch covers := p.Covers(q, &steps); {
			case covers:
				said++
				require.True(t, all, "%v covers %v", p, q)
			case all && k > 1:
				missed++
			}
		}
	}
	require.Greater(t, said, 2000)
	require.Zero(t, missed, "of %d patterns", len(names))
}

// sequences returns every path of 1 to most of the segments.
func sequences(segments []string, most int) (all []string) {
	last := []string{""}
	for range most {
		var longer []string
		for _, start := range last {
			for _, segment := range segments {
				longer = append(longer, strings.TrimPrefix(start+"/"+segment, "/"))
			}
		}
		all, last = append(all, longer...), longer
	}
	return all
}
