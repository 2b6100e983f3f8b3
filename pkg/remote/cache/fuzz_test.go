package cache

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

// Of all values in Redis, only the one that was sealed opens.
func FuzzSealedValues(f *testing.F) {
	// Each process has a key of its own: what another sealed must not open either.
	seal, err := ParseSeal(fixture.NewSealKey())
	require.NoError(f, err)
	r := &Redis{seal: seal}
	of, name := scope{"team-a", "uid-1"}, "landwaiter:team-a:verdict:x"
	plain, err := encode(verify.Entry{Verdict: judged.As(policy.Allowed, policy.Verdict{Reason: "signed"})}, origin{Image: "r/a@sha256:1"})
	require.NoError(f, err)
	genuine, err := seal.close(of, name, plain, time.Unix(4e9, 0))
	require.NoError(f, err)
	f.Add(genuine)
	f.Add([]byte{})
	f.Add([]byte{sealFormat, 2, 3})
	f.Fuzz(func(t *testing.T, value []byte) {
		_, entry, _, err := open(r.seal, of, name, value)
		require.Equal(t, bytes.Equal(value, genuine), err == nil)
		require.Equal(t, err == nil, entry.Verdict.Outcome() == policy.Allowed)
		_, _, _, err = open(r.seal, scope{"team-b", "uid-1"}, name, value)
		require.Error(t, err, "another namespace has another key")
		_, _, _, err = open(r.seal, scope{"team-a", "uid-2"}, name, value)
		require.Error(t, err, "so has a namespace that is made again")
	})
}
