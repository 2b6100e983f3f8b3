package notation

import (
	"crypto/x509"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestProofWithoutSignerIsNotValid(t *testing.T) {
	permitted, err := verified{}.unless(errors.New("expired"), true)
	require.NoError(t, err)
	for _, p := range []verified{{}, permitted} {
		finding := p.proof().Finding()
		require.Equal(t, policy.Invalid, finding.Result())
		require.NotEmpty(t, finding.Reason)
	}
}

func TestFailedCheckLeavesNoProof(t *testing.T) {
	expired := errors.New("expired")
	proven, err := verified{leaf: &x509.Certificate{}}.unless(expired, false)
	require.ErrorIs(t, err, expired)
	require.Equal(t, policy.Invalid, proven.proof().Finding().Result())
}
