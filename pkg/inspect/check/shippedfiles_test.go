package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEmbeddedFilesAreRead(t *testing.T) {
	require.Contains(t, libraryRego(), "package verifiedimages")
	shipped, err := ShippedGuardrails(ShippedNamespace)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(shipped), 9)
	require.Len(t, knownConditions(false), 1)
	require.Equal(t, knownConditions(false), knownConditions(true)[:1])
	require.Len(t, knownConditions(true), 2)
}
