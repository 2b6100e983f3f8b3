package program

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestFlagsSayHowLongExceptionsLastAndBreakGlassIsOffUnlessAskedFor(t *testing.T) {
	for name, row := range map[string]struct {
		flags Exceptions
		want  resource.ExceptionLimits
		says  string
	}{
		"without break-glass": {Exceptions{Longest: time.Hour, LongestDelegation: time.Hour},
			resource.ExceptionLimits{Max: time.Hour, Delegation: time.Hour}, ""},
		"with it": {Exceptions{Longest: time.Hour, LongestDelegation: time.Hour, BreakGlass: time.Minute},
			resource.ExceptionLimits{Max: time.Hour, Delegation: time.Hour, BreakGlass: time.Minute}, ""},
		"no exceptions":  {Exceptions{LongestDelegation: time.Hour, BreakGlass: time.Hour}, resource.ExceptionLimits{}, "--max-exception is 0s"},
		"no delegations": {Exceptions{Longest: time.Hour, BreakGlass: time.Hour}, resource.ExceptionLimits{}, "--max-delegation is 0s"},
		"break-glass of no time": {Exceptions{Longest: time.Hour, LongestDelegation: time.Hour, BreakGlass: -1}, resource.ExceptionLimits{},
			"--break-glass is -1ns, it must be more than 0; leave it out to have none"},
		"exceptions of less time": {Exceptions{Longest: -1, LongestDelegation: time.Hour, BreakGlass: time.Hour}, resource.ExceptionLimits{},
			"--max-exception is -1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := row.flags.Limits()
			if row.says != "" {
				require.ErrorContains(t, err, row.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}
