package cache

import (
	"bytes"
	"crypto/cipher"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const sealedName = "landwaiter:team-a:verdict:3f786850e387550fdab836ed7e6dc881de23001b3f786850e387550fdab836ed"

func newSeal(t testing.TB, keys ...[]byte) *Seal {
	t.Helper()
	s, err := ParseSeal(bytes.Join(keys, []byte("\n")))
	require.NoError(t, err)
	return s
}

func TestANamespaceThatIsMadeAgainOpensNothingOfTheFormerOne(t *testing.T) {
	s := newSeal(t, fixture.NewSealKey())
	sealed, err := s.close(scope{"team-a", "uid-1"}, sealedName, []byte("allowed"), time.Unix(4e9, 0))
	require.NoError(t, err)
	_, _, err = s.open(scope{"team-a", "uid-2"}, sealedName, sealed)
	require.ErrorIs(t, err, errForged)
	copy(sealed[uidAt:], "uid-2") // whoever writes to Redis may claim any UID
	_, _, err = s.open(scope{"team-a", "uid-2"}, sealedName, sealed)
	require.ErrorIs(t, err, errForged)
}

// A key that is given away to read values must not make any.
func TestTheKeyThatDecryptsForgesNothing(t *testing.T) {
	s := newSeal(t, fixture.NewSealKey())
	of := scope{"team-a", "uid-1"}
	sealed, err := s.close(of, sealedName, []byte("denied."), time.Unix(4e9, 0))
	require.NoError(t, err)
	pairs, err := s.pairs(of)
	require.NoError(t, err)
	at := uidAt + len(of.uid)
	iv, content := sealed[at:at+ivBytes], sealed[at+ivBytes:len(sealed)-tagBytes]
	read := make([]byte, len(content))
	cipher.NewCTR(pairs[0].encryption, iv).XORKeyStream(read, content)
	require.Equal(t, "denied.", string(read), "it reads")
	cipher.NewCTR(pairs[0].encryption, iv).XORKeyStream(content, []byte("allowed"))
	_, _, err = s.open(of, sealedName, sealed)
	require.ErrorIs(t, err, errForged)
	encryption, err := s.masters[0].expand("encryption", of)
	require.NoError(t, err)
	authentication, err := s.masters[0].expand("authentication", of)
	require.NoError(t, err)
	require.NotEqual(t, encryption, authentication)
}

func TestEachScopeHasKeysOfItsOwn(t *testing.T) {
	s := newSeal(t, fixture.NewSealKey())
	seen := map[string]scope{}
	for _, of := range []scope{{}, {"", "a"}, {"a", ""}, {"a", "b"}, {"a b", ""}, {"a", " b"}, {"ab", ""}, {"b", "a"}, {"1 a", ""}, {"", "1 a"}} {
		for _, purpose := range []string{"encryption", "authentication"} {
			key, err := s.masters[0].expand(purpose, of)
			require.NoError(t, err)
			require.NotContains(t, seen, string(key), "%+v", of)
			seen[string(key)] = of
		}
	}
}

func TestAValueSaysWhyItDoesNotOpen(t *testing.T) {
	of := scope{"team-a", "uid-1"}
	current, former := fixture.NewSealKey(), fixture.NewSealKey()
	sealed, err := newSeal(t, former).close(of, sealedName, []byte("allowed"), time.Unix(4e9, 0))
	require.NoError(t, err)
	s := newSeal(t, current)
	for want, value := range map[error][]byte{errOtherMaster: sealed, errNotOurs: []byte("x")} {
		_, _, err := s.open(of, sealedName, value)
		require.ErrorIs(t, err, want)
	}
	opened, _, err := newSeal(t, current, former).open(of, sealedName, sealed)
	require.NoError(t, err)
	require.Equal(t, "allowed", string(opened))
	_, err = s.close(scope{"team-a", string(make([]byte, maxUID+1))}, sealedName, nil, time.Now())
	require.ErrorContains(t, err, "longer than")
}

// UIDs come from whoever makes namespaces, and from whoever writes to Redis.
func TestUIDsDoNotFillTheMemoryWithKeys(t *testing.T) {
	s := newSeal(t, fixture.NewSealKey())
	for i := range 100 {
		_, err := s.pairs(scope{"team-a", string(rune('a' + i))})
		require.NoError(t, err)
	}
	require.Len(t, s.keys, 1)
	for i := range maxSealKeys + 1 {
		s.keys[verify.Namespace(rune(i))] = scopedKeys{}
	}
	_, err := s.pairs(scope{"team-b", ""})
	require.NoError(t, err)
	require.Len(t, s.keys, 1)
}

// A verdict with one finding takes about a kilobyte.
func BenchmarkSeal(b *testing.B) {
	s := newSeal(b, fixture.NewSealKey())
	of, plain := scope{"team-a", "9a3f6c1e-6a55-4f58-9c53-0c8f4d8e6f21"}, bytes.Repeat([]byte("x"), 1024)
	sealed, err := s.close(of, sealedName, plain, time.Unix(4e9, 0))
	require.NoError(b, err)
	b.Run("close", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := s.close(of, sealedName, plain, time.Unix(4e9, 0))
			require.NoError(b, err)
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, err := s.open(of, sealedName, sealed)
			require.NoError(b, err)
		}
	})
}
