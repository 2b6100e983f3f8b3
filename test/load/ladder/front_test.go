package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFrontTakesReplicasInTurn(t *testing.T) {
	a, b, f := &server{url: "https://127.0.0.1:1"}, &server{url: "https://127.0.0.1:2"}, &front{}
	_, err := f.pick()
	require.ErrorIs(t, err, errNoReplica)
	f.add(a)
	f.add(b)
	picked := map[string]int{}
	for range 10 {
		address, err := f.pick()
		require.NoError(t, err)
		picked[address]++
	}
	require.Equal(t, map[string]int{"127.0.0.1:1": 5, "127.0.0.1:2": 5}, picked)
	f.remove(a)
	for range 3 {
		address, err := f.pick()
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1:2", address)
	}
}
