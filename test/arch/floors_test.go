package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Some incidents were mended in Go or in a library, and nowhere else can they be.
func TestVersionsAreNotOlderThanTheMendedOnes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	for module, floor := range map[string]string{
		"go":                                      "1.26.6",  // CVE-2026-32280, -32283, -33818, -39821, -56860, -56862
		"oras.land/oras-go/v2":                    "v2.6.2",  // CVE-2026-48978, -50151, -50162, -50163
		"github.com/sigstore/sigstore-go":         "v1.2.1",  // CVE-2026-49834, -54787
		"github.com/sigstore/sigstore":            "v1.10.4", // CVE-2026-24137
		"github.com/notaryproject/notation-go":    "v1.3.2",  // CVE-2024-51491, -56138
		"github.com/theupdateframework/go-tuf/v2": "v2.3.1",  // CVE-2026-23991, -23992
		"github.com/redis/go-redis/v9":            "v9.7.3",  // CVE-2025-29923
	} {
		found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (\S+)`).FindStringSubmatch(string(text))
		require.NotNil(t, found, module)
		require.False(t, older(t, found[1], floor), "%s is %s, and %s has known faults that are on our path", module, found[1], floor)
	}
	require.NotContains(t, string(text), "\nreplace ", "a replacement may bring an old version back")
}

// older reports whether version is older than floor. A pre-release counts as older than its release.
func older(t *testing.T, version, floor string) bool {
	t.Helper()
	release, _, early := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	a, b := strings.Split(release, "."), strings.Split(strings.TrimPrefix(floor, "v"), ".")
	for i := range b {
		if i >= len(a) {
			return true
		}
		x, err := strconv.Atoi(a[i])
		require.NoError(t, err, version)
		y, err := strconv.Atoi(b[i])
		require.NoError(t, err, floor)
		if x != y {
			return x < y
		}
	}
	return early
}
