package policy_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// FuzzShown checks that what strangers write stays on its line, within its limit, and is left
// alone if it is harmless.
func FuzzShown(f *testing.F) {
	for _, seed := range []string{"", "image app:v1 is denied", "a\nb\x1b[2Jc\x7f", "\u202eright to left\u2028", "\xff\xfe", strings.Repeat("ä", 40)} {
		f.Add(seed, uint8(32))
	}
	f.Fuzz(func(t *testing.T, text string, limit uint8) {
		most := int(limit) + len("…")
		shown := policy.Shown(text, most)
		require.True(t, utf8.ValidString(shown))
		require.LessOrEqual(t, len(shown), most)
		require.False(t, strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", shown)
		require.Equal(t, shown, policy.Shown(shown, most))
		if utf8.ValidString(text) && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			require.Equal(t, text, shown)
		}
	})
}
