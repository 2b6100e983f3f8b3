package cel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Functions returns the names of all functions that an expression over variables can call.
func Functions(t testing.TB, variables Variables) (names []string) {
	t.Helper()
	environment, err := newEnvironment(variables)
	require.NoError(t, err)
	for name := range environment.Functions() {
		names = append(names, name)
	}
	return names
}

// Costs returns a function that evaluates an expression without the limit on its values, and returns what that costs.
// An evaluation that fails costs what it did until then.
func Costs(t testing.TB, text string, variables Variables, values map[string]any) func() uint64 {
	t.Helper()
	compiled, err := Compile(text, variables, Fields{})
	require.NoError(t, err, text)
	all, known := map[string]any{}, facts{}
	for name, value := range values {
		all[name], err = known.native(value)
		require.NoError(t, err)
	}
	return func() uint64 {
		_, details, _ := compiled.program.Eval(all)
		return *details.ActualCost()
	}
}
