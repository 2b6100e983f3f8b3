package program_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

func TestAMissingPermissionLeavesItUndecided(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "tenants"}, "", nil)
	for _, c := range []struct {
		err  error
		code int
	}{{fmt.Errorf("list Tenants: %w", forbidden), program.ExitUndecided}, {apierrors.NewServiceUnavailable("x"), program.ExitUnavailable},
		{io.ErrClosedPipe, program.ExitUnavailable}} {
		var exit *program.Exit
		require.ErrorAs(t, program.Failed(c.err), &exit)
		require.Equal(t, c.code, exit.Code)
		require.ErrorIs(t, exit, c.err)
	}
	require.NoError(t, program.Failed(nil))
}

func TestANoIsTheAnswerWhateverElseCouldNotBeDecided(t *testing.T) {
	for name, c := range map[string]struct {
		no, undecided bool
		code          int
	}{
		"yes": {code: program.ExitOK}, "no": {no: true, code: program.ExitDenied}, "undecided": {undecided: true, code: program.ExitUndecided},
		"no, and more is undecided": {no: true, undecided: true, code: program.ExitDenied},
	} {
		err := program.Answered(c.no, c.undecided, "an image is undecided")
		var exit *program.Exit
		require.Equal(t, c.code != program.ExitOK, errors.As(err, &exit), name)
		if exit != nil {
			require.Equal(t, c.code, exit.Code, name)
			require.Equal(t, map[int]string{program.ExitUndecided: "an image is undecided"}[c.code], exit.Error(), name)
		}
	}
}
