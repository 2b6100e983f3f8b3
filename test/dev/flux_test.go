//go:build nightly

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestDevStartsFluxWithATeamsRepository(t *testing.T) {
	suite.MustTool(t, suite.FluxTools)
	last := copyWhatItPrints(t, suite.MustTool(t, suite.CosignV3))
	require.Contains(t, last, `User "system:serviceaccount:iris-green:iris-green" cannot patch resource "configmaps" in API group "" in the namespace "team-a"`)
}
