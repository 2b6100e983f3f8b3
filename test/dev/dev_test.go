//go:build e2e

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cosign"
)

func TestWhatItPrintsCanBeCopiedAndCtrlCLeavesNothing(t *testing.T) {
	t.Setenv("LANDWAITER_FLUX_TOOLS", "")
	folder := t.TempDir()
	require.NoError(t, cosign.Link(folder))
	copyWhatItPrints(t, filepath.Join(folder, cosign.V3))
}
