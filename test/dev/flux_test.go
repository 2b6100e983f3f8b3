//go:build flux

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDevStartsFluxWithATeamsRepository(t *testing.T) {
	require.NotEmpty(t, os.Getenv("LANDWAITER_FLUX_TOOLS"), "LANDWAITER_FLUX_TOOLS is not set; run make flux")
	last := copyWhatItPrints(t)
	require.Contains(t, last, `User "system:serviceaccount:iris-green:iris-green" cannot patch resource "configmaps" in API group "" in the namespace "team-a"`)
}
