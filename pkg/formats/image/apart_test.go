package image_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestPatternsAreApartIfNoImageMatchesBoth(t *testing.T) {
	for _, c := range []struct {
		p, q  string
		apart bool
	}{
		{"**", "r.example.com/a", false},
		{"r.example.com/**", "s.example.com/**", true},
		{"*.example.com/**", "s.example.com/**", false},
		{"*.example.com/**", "a.s.example.com/**", true},
		{"*.example.com/**", "*.example.org/**", true},
		{"r.example.com/a/**", "r.example.com/b/**", true},
		{"r.example.com/a/**", "r.example.com/*/b", false},
		{"r.example.com/a*/**", "r.example.com/b/**", true},
		{"r.example.com/a*", "r.example.com/*a", false},
		{"r.example.com/a", "r.example.com/a/b", true},
		{"r.example.com/**", "r.example.com/a/b", false},
		{"r.example.com/**/a", "r.example.com/**/b", false},
	} {
		p, err := image.ParsePattern(c.p)
		require.NoError(t, err)
		q, err := image.ParsePattern(c.q)
		require.NoError(t, err)
		require.Equal(t, c.apart, p.Apart(q), "%s and %s", c.p, c.q)
		require.Equal(t, c.apart, q.Apart(p), "%s and %s", c.q, c.p)
	}
	require.False(t, image.Pattern{}.Apart(image.Pattern{}))
}
