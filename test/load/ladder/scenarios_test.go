//go:build nightly

package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryScenarioRunsWithoutAWrongAnswer(t *testing.T) {
	byName := measured(t, ".")
	require.Len(t, byName, 7+6+1+2+(3*3+3)+1+2+4+3*2+3+2+3+1+2)
	onlyRedis := byName["warm in Redis only"]
	require.Less(t, onlyRedis.RegistryRequests, onlyRedis.Requests, "a read that takes too long is worked out again, but few are")
	for _, n := range []int{2, 4} {
		again := byName[fmt.Sprintf("replicas: %d, asked again", n)]
		require.Less(t, again.RegistryRequests, again.Requests, "replicas find what another one verified")
	}
	require.Len(t, byName["warm, 1000 namespaces, /v1/verify"].OverBare.Throughput.Rounds, 2)
	verified := byName["admission, 10 clients: VerifiedImages, Landwaiter"]
	require.Positive(t, verified.ThroughputOverYardstick.Median)
	require.Len(t, verified.AddedOverYardstick.Rounds, 2)
	require.Zero(t, verified.Undecided)
}
