package image

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostile are patterns that cost the most, and repositories that make them do so.
func hostile() (patterns, repositories []string) {
	patterns = []string{
		"r.io/" + strings.Repeat("**/", 31) + "b", "r.io/**/" + strings.Repeat("*a*/", 30) + "b", "r.io/" + strings.Repeat("**/*/", 15) + "**/b",
		"r.io/**/" + strings.Repeat("*a", 240) + "*b/x", "r.io/*" + strings.Repeat("a*", 240) + "b", "r.io/" + strings.Repeat("*/", 31) + "*",
		"r.io/**/" + strings.Repeat("a*a/", 30) + "a*", "r.io/**",
		"r.io/" + strings.Repeat("a/", 31) + "a", "**", "*.r.io/**/a",
	}
	repositories = []string{
		strings.Repeat("a/", 127) + "a", strings.Repeat("a", 255), strings.Repeat("aaaa/", 50) + "aaaa",
		strings.Repeat("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/", 7) + "a", "a",
	}
	return patterns, repositories
}

func TestNoPatternTakesMoreStepsThanItsCost(t *testing.T) {
	patterns, repositories := hostile()
	most := 0
	for _, text := range patterns {
		pattern, err := ParsePattern(text)
		require.NoError(t, err)
		for _, repository := range repositories {
			ref, err := Parse("r.io/" + repository)
			require.NoError(t, err)
			_, steps := pattern.match(ref)
			require.LessOrEqual(t, steps, pattern.Cost(), "%.40s on %.40s", text, repository)
			most = max(most, steps)
		}
	}
	require.Greater(t, most, 3000, "the patterns are hostile")
	for text, cost := range map[string]int{"**": 1, "registry.example.com/team-a/**": 2, "registry.example.com/team-a/app": 3,
		"registry.example.com/team-*/**": 3} {
		pattern, err := ParsePattern(text)
		require.NoError(t, err)
		require.Equal(t, cost, pattern.Cost(), text)
	}
}

// The bound of Cost is for repositories that Parse accepts.
func TestReferencesAreNotLongerThanPatternsCount(t *testing.T) {
	_, err := Parse("r.io/" + strings.Repeat("a", maxRepository+1))
	require.Error(t, err)
	_, err = Parse("r.io/" + strings.Repeat("a/", maxSegments) + "a")
	require.Error(t, err)
}

// FuzzPattern holds the steps to the cost, and the result to a plain recursive matcher.
func FuzzPattern(f *testing.F) {
	patterns, repositories := hostile()
	for _, pattern := range patterns {
		for _, repository := range repositories {
			f.Add(pattern, "r.io/"+repository)
		}
	}
	f.Add("r.io/a*b*c/**/*x/**", "r.io/aabbc/d/yx/z")
	f.Add("docker.io/nginx", "nginx")
	f.Fuzz(func(t *testing.T, text, image string) {
		pattern, err := ParsePattern(text)
		if err != nil {
			return
		}
		ref, err := Parse(image)
		if err != nil {
			return
		}
		matched, steps := pattern.match(ref)
		require.LessOrEqual(t, steps, pattern.Cost())
		if len(pattern.segments) > 6 || len(ref.Repository) > 30 {
			return // the plain matcher is exponential
		}
		want := pattern.everything || pattern.host.Match(ref.Host) && plainly(pattern.segments, strings.Split(ref.Repository, "/"))
		require.Equal(t, want, matched, "%s on %s", text, image)
	})
}

// plainly is the definition of a match, by recursion.
func plainly(pattern, segments []string) bool {
	if len(pattern) == 0 || len(segments) == 0 {
		return len(pattern) == len(segments)
	}
	if pattern[0] == anySegments {
		return plainly(pattern[1:], segments[1:]) || plainly(pattern, segments[1:])
	}
	matched, err := path.Match(pattern[0], segments[0])
	return err == nil && matched && plainly(pattern[1:], segments[1:])
}

// BenchmarkCostliestMatch measures what a step takes.
func BenchmarkCostliestMatch(b *testing.B) {
	patterns, repositories := hostile()
	for _, text := range patterns {
		pattern, err := ParsePattern(text)
		require.NoError(b, err)
		for _, repository := range repositories {
			ref, err := Parse("r.io/" + repository)
			require.NoError(b, err)
			b.Run(text[:min(len(text), 20)]+" on "+repository[:min(len(repository), 8)], func(b *testing.B) {
				steps := 0
				for b.Loop() {
					_, steps = pattern.match(ref)
				}
				b.ReportMetric(float64(steps), "steps")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pattern.Cost()), "ns/cost")
			})
		}
	}
}
