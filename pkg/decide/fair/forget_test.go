package fair

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAccountsThatOweNothingAreForgotten(t *testing.T) {
	turns := NewTurns[string](1, func() time.Time { return time.Time{} })
	for i := range 3 * maxIdle {
		turns.Try(fmt.Sprint(i)).Leave()
		require.LessOrEqual(t, len(turns.users), maxIdle)
	}
}

// All may owe time, or wait: whoever comes next must not pay for a look at each of them.
func TestAccountsThatOweAreLookedAtOnceInAsManyNewOnes(t *testing.T) {
	var now time.Time
	turns := NewTurns[string](1, func() time.Time { now = now.Add(time.Millisecond); return now })
	looks, before := 0, turns.full
	for i := range 8 * maxIdle {
		turns.Try(fmt.Sprint(i)).Leave()
		if turns.full != before {
			looks, before = looks+1, turns.full
		}
	}
	require.Len(t, turns.users, 8*maxIdle)
	require.LessOrEqual(t, looks, 3)

	turns.floor = time.Hour
	for i := range 16 * maxIdle {
		turns.Try(fmt.Sprint("later ", i)).Leave()
	}
	require.LessOrEqual(t, len(turns.users), 16*maxIdle, "those that owe nothing any more are forgotten")
}
