//go:build nightly

package controller_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const teams, tenants = 1000, 500

// crowded returns an API server of its own: nothing else adds to the figures.
func crowded(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := start(t.Context(), suite.ForTest(t))
	require.NoError(t, err)
	return c
}
