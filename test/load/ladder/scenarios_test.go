//go:build nightly

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryScenarioRunsWithoutAWrongAnswer(t *testing.T) {
	byName := measured(t, ".")
	require.Len(t, byName, 8+6+1+2+1+2+4+3*2+2+3)
	onlyRedis := byName["warm in Redis only"]
	require.Less(t, onlyRedis.RegistryRequests, onlyRedis.Requests, "a read that takes too long is worked out again, but few are")
	require.Positive(t, byName["warm, 1000 namespaces"].ThroughputOverBare)
	verified := byName["admission, 10 clients: VerifiedImages, Landwaiter"]
	require.Positive(t, verified.ThroughputOverYardstick.Median)
	require.Len(t, verified.AddedOverYardstick.Rounds, 2)
	require.Zero(t, verified.Undecided)
}
