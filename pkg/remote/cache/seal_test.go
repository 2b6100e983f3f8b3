package cache

import (
	"bytes"
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

// A nonce that is used twice with one key gives away what it sealed, and lets anyone forge.
func TestASealUsesNoNonceTwice(t *testing.T) {
	s := newSeal(t, fixture.NewSealKey())
	of := scope{"team-a", "uid-1"}
	seen := map[string]bool{}
	for range 1000 {
		sealed, err := s.close(of, sealedName, []byte("allowed"), time.Unix(4e9, 0))
		require.NoError(t, err)
		nonce := string(sealed[uidAt+len(of.uid):][:12])
		require.NotContains(t, seen, nonce)
		seen[nonce] = true
	}
}

func TestEachScopeHasAKeyOfItsOwn(t *testing.T) {
	s := newSeal(t, fixture.NewSealKey())
	scopes := []scope{{}, {"", "a"}, {"a", ""}, {"a", "b"}, {"a b", ""}, {"a", " b"}, {"ab", ""}, {"b", "a"}, {"1 a", ""}, {"", "1 a"}}
	for _, of := range scopes {
		sealing, err := s.masters[0].sealer(of)
		require.NoError(t, err)
		sealed := sealing.Seal(nil, nil, []byte("allowed"), nil)
		for _, other := range scopes {
			opening, err := s.masters[0].sealer(other)
			require.NoError(t, err)
			_, err = opening.Open(nil, nil, sealed, nil)
			require.Equal(t, of == other, err == nil, "%+v opens what %+v sealed", other, of)
		}
	}
}

func TestAValueSaysWhyItDoesNotOpen(t *testing.T) {
	of := scope{"team-a", "uid-1"}
	current, older := fixture.NewSealKey(), fixture.NewSealKey()
	sealed, err := newSeal(t, older).close(of, sealedName, []byte("allowed"), time.Unix(4e9, 0))
	require.NoError(t, err)
	s := newSeal(t, current)
	former := bytes.Clone(sealed)
	former[0] = sealFormat - 1
	for want, values := range map[error][][]byte{errOtherMaster: {sealed}, errNotOurs: {[]byte("x"), former}} {
		for _, value := range values {
			_, _, err := s.open(of, sealedName, value)
			require.ErrorIs(t, err, want)
		}
	}
	opened, _, err := newSeal(t, current, older).open(of, sealedName, sealed)
	require.NoError(t, err)
	require.Equal(t, "allowed", string(opened))
	_, err = s.close(scope{"team-a", string(make([]byte, maxUID+1))}, sealedName, nil, time.Now())
	require.ErrorContains(t, err, "longer than")
}

// UIDs come from whoever makes namespaces, and from whoever writes to Redis.
func TestUIDsDoNotFillTheMemoryWithKeys(t *testing.T) {
	s := newSeal(t, fixture.NewSealKey())
	for i := range 100 {
		_, err := s.sealers(scope{"team-a", string(rune('a' + i))})
		require.NoError(t, err)
	}
	require.Len(t, s.keys, 1)
	for i := range maxSealKeys + 1 {
		s.keys[verify.Namespace(rune(i))] = scopedKeys{}
	}
	_, err := s.sealers(scope{"team-b", ""})
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
