package attest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/attest"
)

// BenchmarkCostliestExpression is what one expression can cost before its limit
// ends it.
func BenchmarkCostliestExpression(b *testing.B) {
	compiled, err := attest.Compile("predicate.l.all(a, predicate.l.all(b, predicate.l.all(c, a * b * c >= 0)))")
	require.NoError(b, err)
	s, err := attest.ParseStatement([]byte(statement(`{"l":[` + strings.Repeat("1,", 999) + `1]}`)))
	require.NoError(b, err)
	for b.Loop() {
		_, err := compiled.Match(b.Context(), s, time.Now())
		require.Error(b, err)
	}
}
