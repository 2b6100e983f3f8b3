package docs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
)

// expressions are the CEL blocks of a document by the heading above them.
func expressions(t *testing.T, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	_, examples, there := strings.Cut(read(t, name), "\n## Example expressions\n")
	require.True(t, there, name)
	examples, _, _ = strings.Cut(examples, "\n## ")
	for _, section := range strings.Split(examples, "\n### ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		_, block, there := strings.Cut(body, "```cel\n")
		require.True(t, there, heading)
		text, _, closed := strings.Cut(block, "```")
		require.True(t, closed, heading)
		title, _, _ := strings.Cut(heading, ":")
		found[title] = text
	}
	return found
}

// Each documented expression has predicates that it takes and others that it
// refuses; a heading without them fails.
func TestDocumentedExpressionsDoWhatTheySay(t *testing.T) {
	const builder = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_container_slsa3.yml@refs/tags/v2.1.0"
	slsa := func(builder, repository string) string {
		return `{"runDetails":{"builder":{"id":"` + builder + `"}},"buildDefinition":{"externalParameters":{"workflow":{"repository":"` + repository + `"}}}}`
	}
	vulnerabilities := func(at, severity, id string) string {
		return `{"metadata":{"scanFinishedOn":"` + at + `"},"scanner":{"result":{"matches":[{"vulnerability":{"severity":"` + severity + `","id":"` + id + `"}}]}}}`
	}
	cases := map[string]struct{ taken, refused []string }{
		"SLSA provenance v1": {[]string{slsa(builder, "https://github.com/example/app")},
			[]string{slsa("https://evil.example.com", "https://github.com/example/app"), slsa(builder, "https://github.com/example/other"), "{}"}},
		"SPDX": {[]string{`{"packages":[{"name":"a","licenseConcluded":"MIT"},{"name":"b"}]}`},
			[]string{`{"packages":[{"name":"a","licenseConcluded":"AGPL-3.0-only"}]}`, `{"packages":[{"name":"log4j-core"}]}`, "{}"}},
		"CycloneDX": {[]string{`{"components":[{"licenses":[{"license":{"id":"MIT"}}]},{},{"licenses":[{"license":{"name":"own"}}]}]}`},
			[]string{`{"components":[{"licenses":[{"license":{"id":"MIT"}},{"license":{"id":"AGPL-3.0-only"}}]}]}`, "{}"}},
		"Vulnerability " +
			"report (cosign)": {[]string{vulnerabilities("2026-01-01T00:00:00Z", "High", "CVE-1"), vulnerabilities("2026-01-01T00:00:00Z", "Critical", "CVE-2024-0001")},
			[]string{vulnerabilities("2025-12-01T00:00:00Z", "High", "CVE-1"), vulnerabilities("2026-01-01T00:00:00Z", "Critical", "CVE-1"), "{}"}},
		"SARIF report": {[]string{`{"runs":[{"results":[{"level":"note","ruleId":"x"},{"level":"error","ruleId":"CVE-2024-0001"}]}]}`},
			[]string{`{"runs":[{"results":[{"level":"error","ruleId":"x"}]}]}`, "{}"}},
		"OpenVEX": {[]string{`{"statements":[{"status":"fixed"},{"status":"not_affected"}]}`},
			[]string{`{"statements":[{"status":"affected"}]}`, `{"statements":[{"status":"under_investigation"}]}`, "{}"}},
	}
	documented := expressions(t, "docs/howto/attestations.md")
	for title, text := range documented {
		c, ok := cases[title]
		require.True(t, ok, "no cases for %s", title)
		compiled, err := cel.Compile(text, cel.Variables{"predicate": cel.Any, "predicateType": cel.Text, "now": cel.Time}, cel.Fields{})
		require.NoError(t, err, title)
		match := func(predicate string) bool {
			var value any
			require.NoError(t, json.Unmarshal([]byte(predicate), &value), predicate)
			matched, err := compiled.Match(nil, map[string]any{"predicateType": "t", "predicate": value, "now": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)})
			return matched && err == nil
		}
		for _, predicate := range c.taken {
			require.True(t, match(predicate), "%s: %s", title, predicate)
		}
		for _, predicate := range c.refused {
			require.False(t, match(predicate), "%s: %s", title, predicate)
		}
	}
	require.Len(t, documented, len(cases))
}
