package breadth

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

func TestNamesOfOurPagesArePlaceholders(t *testing.T) {
	for subject, want := range map[string]string{
		"https://github.com/OWNER/app/.github/workflows/release.yml@refs/heads/main":    "OWNER",
		"https://github.com/acme/REPOSITORY/.github/workflows/release.yml@refs/heads/x": "REPOSITORY",
		"https://github.com/example/app/.github/workflows/build.yml@refs/heads/main":    "https://github.com/example/",
		"release@example.com":                                 "example.com",
		"release@ci.example.com":                              "example.com",
		"spiffe://trust-domain.example/ns/build/sa/x":         "trust-domain.example",
		"https://github.com/owner/repository/.github/x":       "",
		"https://github.com/acme/example/.github/x":           "",
		"alice@acme.example":                                  "",
		"alice@myexample.com":                                 "",
		"https://github.com/acme/NAMES/.github/workflows/x@y": "",
	} {
		require.Equal(t, want, Placeholder(cosign.Identity{Issuer: github, Subject: subject}, ""), subject)
	}
	require.Equal(t, "https://github.com/example/", Placeholder(cosign.Identity{Issuer: github, SubjectRegExp: `https://github\.com/example/(shop|web)/.*`}, ""))
	require.Equal(t, "OWNER", Placeholder(cosign.Identity{Issuer: github, Subject: "x"}, calledFrom))
	require.Equal(t, "example.com", Placeholder(cosign.Identity{Issuer: "https://accounts.example.com", Subject: "x"}, ""))
}

// Whoever pastes a suggestion has to replace what it does not know.
func TestWhatASuggestionLeavesOpenIsAPlaceholder(t *testing.T) {
	for _, f := range append(forms(), own("https://idp.acme.example")...) {
		for _, p := range f.parts {
			for _, word := range strings.Split(p.given, "/") {
				if p.given != "" && p.given != p.usual && word != "ns" && word != "sa" {
					require.NotEmpty(t, Placeholder(cosign.Identity{Subject: word}, ""), "%s: %s", f.name, p.given)
				}
			}
		}
	}
}
