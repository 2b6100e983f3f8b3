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
