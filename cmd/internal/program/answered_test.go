package program_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

func TestANoIsTheAnswerWhateverElseCouldNotBeDecided(t *testing.T) {
	for name, c := range map[string]struct {
		no, undecided bool
		code          int
	}{
		"yes": {code: program.ExitOK}, "no": {no: true, code: program.ExitDenied}, "undecided": {undecided: true, code: program.ExitUndecided},
		"no, and more is undecided": {no: true, undecided: true, code: program.ExitDenied},
	} {
		err := program.Answered(c.no, c.undecided)
		var exit *program.Exit
		require.Equal(t, c.code != program.ExitOK, errors.As(err, &exit), name)
		if exit != nil {
			require.Equal(t, c.code, exit.Code, name)
		}
	}
}
