package verify

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// However many namespaces take all that they can get, one that comes anew finds a
// place.
func TestANewNamespaceAlwaysFindsAPlace(t *testing.T) {
	for _, flooding := range []int{1, 2, 4, 16, 100} {
		l := newLimiter(512, 128)
		held := map[Namespace]int{}
		for range 512 {
			for i := range flooding {
				if namespace := Namespace(fmt.Sprint(i)); l.acquire(namespace) == nil {
					held[namespace]++
				}
			}
		}
		for namespace, n := range held {
			require.LessOrEqual(t, n, 128, namespace)
		}
		require.Len(t, held, flooding)
		require.NoError(t, l.acquire("new"), "%d flood", flooding)
		l.release("new")
		for namespace, n := range held {
			for range n {
				l.release(namespace)
			}
		}
		require.Zero(t, l.inFlight)
		require.Empty(t, l.inFlightEvery)
	}
	full := newLimiter(2, 2)
	require.NoError(t, full.acquire("a"))
	require.ErrorIs(t, full.acquire("a"), errOverloaded, "the last place is for another")
	require.NoError(t, full.acquire("b"))
	require.ErrorIs(t, full.acquire("c"), errOverloaded)
}
