package cosign_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"math/rand/v2"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// TestAgreesWithPlainCryptography changes single bytes of payloads and signatures, and
// compares every finding with the standard library's answer.
func TestAgreesWithPlainCryptography(t *testing.T) {
	for _, algorithm := range []fixture.Algorithm{fixture.ECDSAP256, fixture.Ed25519, fixture.RSA2048} {
		t.Run(string(algorithm), func(t *testing.T) {
			key := newKey(t, algorithm)
			img := newImage(t, "registry.example.com/team-a/app")
			checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
			random := rand.New(rand.NewPCG(1, 2))
			payload, err := fixture.CosignPayload(img.Reference, map[string]string{"note": "abcdefghijklmnopqrstuvwxyz"})
			require.NoError(t, err)
			signature, err := key.Sign(payload)
			require.NoError(t, err)
			valid := 0
			for i := range 400 {
				p, s := append([]byte(nil), payload...), append([]byte(nil), signature...)
				switch i % 4 {
				case 1:
					s[random.IntN(len(s))] ^= byte(1 << random.IntN(8))
				case 2: // within the annotation: the claims stay as they are
					p[len(p)-5-random.IntN(20)] = byte('A' + random.IntN(26))
				case 3:
					s = s[:random.IntN(len(s))]
				}
				if len(s) == 0 {
					continue
				}
				finding := check(checker, img, legacy(t, img, key, fixture.CosignOptions{Payload: p, Signature: s}))
				require.Equal(t, plainlyVerifies(key, p, s), finding.Result() == policy.Valid, "%q %x", p, s)
				if finding.Result() == policy.Valid {
					valid++
				}
			}
			require.GreaterOrEqual(t, valid, 100)
		})
	}
}

func plainlyVerifies(key *fixture.CosignKey, message, signature []byte) bool {
	sum := sha256.Sum256(message)
	switch k := key.Private.Public().(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(k, sum[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], signature) == nil
	case ed25519.PublicKey:
		prehashed := sha512.Sum512(message)
		return ed25519.VerifyWithOptions(k, prehashed[:], signature, &ed25519.Options{Hash: crypto.SHA512}) == nil
	}
	return false
}

func BenchmarkBareECDSA(b *testing.B) {
	key := newKey(b, fixture.ECDSAP256)
	public, ok := key.Private.Public().(*ecdsa.PublicKey)
	require.True(b, ok)
	payload := []byte(digest.FromString("payload"))
	signature, err := key.Sign(payload)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		sum := sha256.Sum256(payload)
		if !ecdsa.VerifyASN1(public, sum[:], signature) {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkCheckLegacy(b *testing.B) { benchmarkCheck(b, legacy) }

func BenchmarkCheckBundle(b *testing.B) { benchmarkCheck(b, bundled) }

func benchmarkCheck(b *testing.B, sign func(testing.TB, fixture.Image, *fixture.CosignKey, fixture.CosignOptions) *evidence) {
	key := newKey(b, fixture.ECDSAP256)
	img := newImage(b, "registry.example.com/team-a/app")
	e := sign(b, img, key, fixture.CosignOptions{})
	checker := newChecker(b, cosign.Options{Signers: signedBy(key)})
	b.ReportAllocs()
	for b.Loop() {
		if check(checker, img, e).Result() != policy.Valid {
			b.Fatal("not valid")
		}
	}
}
