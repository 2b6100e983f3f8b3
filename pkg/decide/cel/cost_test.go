package cel_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
)

// BenchmarkCostliestExpression measures the most that one expression can cost before the
// limit ends it.
func BenchmarkCostliestExpression(b *testing.B) {
	compiled, err := cel.Compile("predicate.l.all(a, predicate.l.all(b, predicate.l.all(c, a * b * c >= 0)))", variables)
	require.NoError(b, err)
	large := values(b, `{"l":[`+strings.Repeat("1,", 999)+`1]}`)
	for b.Loop() {
		_, err := compiled.Match(b.Context(), large)
		require.Error(b, err)
	}
}
