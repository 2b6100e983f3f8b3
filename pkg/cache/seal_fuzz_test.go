package cache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Whoever can write to Redis chooses every byte of a value, and which key it stands under.
func FuzzSealOpensOnlyWhatWasSealedForTheKey(f *testing.F) {
	seal, err := ParseSeal(fixture.NewSealKey())
	require.NoError(f, err)
	strange, err := ParseSeal(fixture.NewSealKey())
	require.NoError(f, err)
	f.Add("team-a", "verdict:x", "team-b", "verdict:x", []byte("allowed"), int64(4e12), []byte{sealFormat}, uint16(0), byte(1))
	f.Add("", "", "", "x", []byte{}, int64(0), []byte{}, uint16(9), byte(0x80))
	f.Add("a", "bc", "ab", "c", []byte{0}, int64(-1), make([]byte, sealHeader+28), uint16(1), byte(255))
	f.Fuzz(func(t *testing.T, namespace, key, otherNamespace, otherKey string, plain []byte, expires int64, forged []byte, at uint16, flip byte) {
		ns, other := verify.Namespace(namespace), verify.Namespace(otherNamespace)
		sealed, err := seal.close(ns, key, plain, time.UnixMilli(expires))
		require.NoError(t, err)
		opened, until, err := seal.open(ns, key, sealed)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(opened))
		require.Equal(t, expires, until.UnixMilli())

		refused := func(s *Seal, namespace verify.Namespace, key string, value []byte, why string) {
			got, until, err := s.open(namespace, key, value)
			require.Error(t, err, why)
			require.Empty(t, got, why)
			require.Zero(t, until, why)
		}
		refused(seal, ns, key, forged, "bytes of somebody without the key")
		refused(seal, ns, key, append([]byte{sealFormat}, forged...), "the same with our format")
		refused(strange, ns, key, sealed, "another master key")
		if namespace != otherNamespace {
			refused(seal, other, key, sealed, "another namespace")
		}
		if key != otherKey {
			refused(seal, ns, otherKey, sealed, "another key")
		}
		if flip != 0 { // format, expiry, nonce, content and tag alike
			sealed[int(at)%len(sealed)] ^= flip
			refused(seal, ns, key, sealed, "a changed byte")
		}
		refused(seal, ns, key, sealed[:int(at)%len(sealed)], "a cut value")
	})
}
