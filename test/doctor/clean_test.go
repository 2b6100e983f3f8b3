//go:build e2e

package doctor

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

func encoded(content []byte) string { return base64.StdEncoding.EncodeToString(content) }

func TestAnInstallationAsTheGuideSaysHasNoFindings(t *testing.T) {
	found := until(t, func(d diagnosis) bool { return len(d.Findings) == 0 })
	require.Zero(t, found.code, "%+v", found.Unchecked)
	for _, u := range found.Unchecked {
		require.Empty(t, u.MissingRight)
	}
}
