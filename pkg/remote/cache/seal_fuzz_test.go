package cache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Anyone who can write to Redis chooses every byte of a value, and which key it stands under.
func FuzzSealOpensOnlyWhatWasSealedForTheKey(f *testing.F) {
	seal, err := ParseSeal(fixture.NewSealKey())
	require.NoError(f, err)
	strange, err := ParseSeal(fixture.NewSealKey())
	require.NoError(f, err)
	f.Add("team-a", "verdict:x", "team-b", "verdict:x", []byte("allowed"), int64(4e12), []byte{sealFormat}, uint16(0), byte(1), "uid-1", "uid-2")
	f.Add("", "", "", "x", []byte{}, int64(0), []byte{}, uint16(9), byte(0x80), "", "x")
	f.Add("a", "bc", "ab", "c", []byte{0}, int64(-1), make([]byte, leastBytes), uint16(1), byte(255), "b 1", "1")
	f.Fuzz(func(t *testing.T, namespace, key, otherNamespace, otherKey string, plain []byte, expires int64, forged []byte, at uint16, flip byte, uid,
		otherUID string) {
		of := scope{verify.Namespace(namespace), uid}
		sealed, err := seal.close(of, key, plain, time.UnixMilli(expires))
		if len(uid) > maxUID {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		opened, until, err := seal.open(of, key, sealed)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(opened))
		require.Equal(t, expires, until.UnixMilli())

		refused := func(s *Seal, of scope, key string, value []byte, why string) {
			got, until, err := s.open(of, key, value)
			require.Error(t, err, why)
			require.Empty(t, got, why)
			require.Zero(t, until, why)
		}
		refused(seal, of, key, forged, "bytes of somebody without the key")
		refused(seal, of, key, append([]byte{sealFormat}, forged...), "the same with our format")
		refused(seal, of, key, append(sealed[:uidAt+len(uid):uidAt+len(uid)], forged...), "the same with our header")
		refused(strange, of, key, sealed, "another master key")
		if namespace != otherNamespace {
			refused(seal, scope{verify.Namespace(otherNamespace), uid}, key, sealed, "another namespace")
		}
		if uid != otherUID {
			refused(seal, scope{of.namespace, otherUID}, key, sealed, "another namespace of this name")
		}
		if key != otherKey {
			refused(seal, of, otherKey, sealed, "another key")
		}
		if flip != 0 { // format, version, expiry, UID, nonce, content and tag alike
			sealed[int(at)%len(sealed)] ^= flip
			refused(seal, of, key, sealed, "a changed byte")
		}
		refused(seal, of, key, sealed[:int(at)%len(sealed)], "a cut value")
	})
}
