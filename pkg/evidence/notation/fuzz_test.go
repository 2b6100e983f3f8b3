package notation_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// FuzzCheck checks envelopes that start as signatures of another image: the checker must
// not panic, and must find none of them Valid.
func FuzzCheck(f *testing.F) {
	root := authority(f, "root", fixture.CertificateOptions{})
	leaf := signer(f, root, "release", fixture.CertificateOptions{})
	other, img := anImage(f, "other"), anImage(f, "image")
	for _, options := range []fixture.NotationOptions{
		{}, {COSE: true}, {Expiry: time.Now().Add(time.Hour)}, {COSE: true, Plugin: "p"}, {Critical: map[string]string{"a": "b"}}, {SigningAuthority: true},
	} {
		envelope, err := fixture.NotationEnvelope(other, leaf, options)
		require.NoError(f, err)
		f.Add(envelope, options.COSE)
	}
	f.Add([]byte(`{"payload":"e30","protected":"e30","header":{"x5c":[""]},"signature":""}`), false)
	f.Add([]byte{0xd2, 0x84, 0x40, 0xa0, 0x40, 0x40}, true)
	options := trusting(root.Chain[0])
	options.TrustedIdentities, options.Level = []string{"*"}, notation.Permissive
	c := checker(f, options)
	aws := checker(f, trustingAWS(root))
	for _, cose := range []bool{false, true} {
		f.Add(rawEnvelope(f, other, leaf, awsHeaders(), cose), cose)
	}
	f.Fuzz(func(t *testing.T, envelope []byte, cose bool) {
		e := evidenceOf(fixture.NotationOptions{COSE: cose}.MediaType(), envelope)
		for _, c := range []*notation.Checker{c, aws} {
			finding := verify.Found(c.Check(context.Background(), subjectOf(img), e.signature, e.fetch, time.Now()))
			if finding.Result() != policy.Invalid || finding.Reason == "" || finding.Message == "" {
				t.Fatalf("got %+v", finding)
			}
		}
	})
}

// BenchmarkCheck compares with BenchmarkBareVerify: a chain of two needs three ECDSA
// verifications (envelope, leaf, root), and the library repeats some.
func BenchmarkCheck(b *testing.B) {
	root := authority(b, "root", fixture.CertificateOptions{})
	leaf := signer(b, root, "release", fixture.CertificateOptions{})
	stranger := authority(b, "stranger", fixture.CertificateOptions{})
	img := anImage(b, "image")
	for name, cose := range map[string]bool{"JWS": false, "COSE": true} {
		e := signed(b, img, leaf, fixture.NotationOptions{COSE: cose})
		b.Run(name, func(b *testing.B) {
			c := checker(b, trusting(root.Chain[0]))
			b.ReportAllocs()
			for b.Loop() {
				if verify.Found(c.Check(b.Context(), subjectOf(img), e.signature, e.fetch, time.Now())).Result() != policy.Valid {
					b.Fatal("not valid")
				}
			}
		})
		b.Run(name+" of a stranger", func(b *testing.B) {
			c := checker(b, trusting(stranger.Chain[0]))
			b.ReportAllocs()
			for b.Loop() {
				if verify.Found(c.Check(b.Context(), subjectOf(img), e.signature, e.fetch, time.Now())).Result() != policy.Invalid {
					b.Fatal("not invalid")
				}
			}
		})
	}
}

func BenchmarkBareVerify(b *testing.B) {
	leaf, err := fixture.NewSigner("release", fixture.CertificateOptions{})
	require.NoError(b, err)
	sum := sha256.Sum256([]byte("message"))
	signature, err := leaf.Key.Sign(rand.Reader, sum[:], nil)
	require.NoError(b, err)
	public := leaf.Key.Public().(*ecdsa.PublicKey)
	b.ReportAllocs()
	for b.Loop() {
		if !ecdsa.VerifyASN1(public, sum[:], signature) {
			b.Fatal("not valid")
		}
	}
}
