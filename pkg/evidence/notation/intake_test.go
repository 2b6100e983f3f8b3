package notation_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

func TestTwoCertificatesOfOneIdentityAreOneSigner(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	img := anImage(t, "image")
	signerOf := func(name string, options fixture.CertificateOptions) string {
		finding := check(t, trusting(root.Chain[0]), img, signed(t, img, signer(t, root, name, options), fixture.NotationOptions{}))
		require.Equal(t, policy.Valid, finding.Result(), finding.Message)
		require.NotEmpty(t, finding.Extensions["keyFingerprint"])
		return finding.Signer()
	}
	first, renewed := signerOf("release", fixture.CertificateOptions{}), signerOf("release", fixture.CertificateOptions{Algorithm: fixture.RSA2048})
	require.Equal(t, first, renewed)
	require.NotEqual(t, first, signerOf("other", fixture.CertificateOptions{}))
}

// The envelopes with which a reader takes far more memory than their bytes, or that two
// readers read differently.
func TestRefusesEnvelopesThatAreNotReadInMemoryOfTheirSize(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	c := checker(t, trusting(root.Chain[0]))
	good, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
	require.NoError(t, err)
	jws := func(member string) []byte { return []byte(`{` + member + `,` + string(good[1:])) }
	for name, e := range map[string]struct {
		evidence *evidence
		reason   policy.Reason
	}{
		"JWS of many values": {evidenceOf(notation.MediaTypeJWS, jws(`"x":[`+strings.TrimSuffix(strings.Repeat("{},", 300_000), ",")+`]`)),
			policy.ReasonLimitExceeded},
		"deep JWS":              {evidenceOf(notation.MediaTypeJWS, jws(`"x":`+strings.Repeat("[", 400_000))), policy.ReasonLimitExceeded},
		"JWS with a name twice": {evidenceOf(notation.MediaTypeJWS, jws(`"Payload":"e30"`)), policy.ReasonMalformed},
		"COSE of many items":    {evidenceOf(notation.MediaTypeCOSE, append([]byte{0x9a, 0, 8, 0, 0}, make([]byte, 8<<16)...)), policy.ReasonLimitExceeded},
		"deep COSE":             {evidenceOf(notation.MediaTypeCOSE, []byte(strings.Repeat("\x81", 1<<20))), policy.ReasonLimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			var finding policy.Finding
			took := memory.Allocated(func() {
				finding = verify.Found(c.Check(t.Context(), subjectOf(img), e.evidence.signature, e.evidence.fetch, time.Now()))
			})
			requireDenied(t, e.reason, finding)
			require.LessOrEqual(t, took, 1<<20)
		})
	}
}

func TestAnEnvelopeTakesMemoryInProportionToItsSize(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{Algorithm: fixture.RSA3072})
	leaf := signer(t, root, "release", fixture.CertificateOptions{Algorithm: fixture.RSA3072})
	trusted := timestamps(t, "trusted", fixture.CertificateOptions{})
	img := anImage(t, "image")
	for name, options := range map[string]fixture.NotationOptions{
		"JWS": {}, "COSE": {COSE: true}, "JWS with a timestamp": {Timestamps: trusted},
		"JWS with a large payload":  {Payload: large(t)},
		"COSE with a large payload": {COSE: true, Payload: large(t)},
	} {
		t.Run(name, func(t *testing.T) {
			asked := trusting(root.Chain[0])
			if options.Timestamps != nil {
				asked.TimestampAuthorities = trusted.Root.Chain
			}
			e, c := signed(t, img, leaf, options), checker(t, asked)
			one := func() policy.Finding {
				return verify.Found(c.Check(t.Context(), subjectOf(img), e.signature, e.fetch, time.Now()))
			}
			one() // what libraries prepare once
			var finding policy.Finding
			n, took := len(e.blobs[e.signature.Layer.Digest]), memory.Allocated(func() { finding = one() })
			t.Logf("%d bytes took %d, %.1f times: %s %s", n, took, float64(took)/float64(n), finding.Result(), finding.Reason)
			require.LessOrEqual(t, took, 16*n+1<<20)
		})
	}
}

// large is a payload of some 500 KiB.
func large(t testing.TB) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"targetArtifact": map[string]any{}, "x": strings.Repeat("x", 500<<10)})
	require.NoError(t, err)
	return text
}

func TestATimestampThatIsNotDERIsNeverParsed(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	envelope, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
	require.NoError(t, err)
	asked := trusting(root.Chain[0])
	asked.TimestampAuthorities = timestamps(t, "trusted", fixture.CertificateOptions{}).Root.Chain
	deep := strings.Repeat("\x30\x80", 2<<10) + strings.Repeat("\x00", 4<<10)
	finding := check(t, asked, img, evidenceOf(notation.MediaTypeJWS, withTimestamp(t, envelope, []byte(deep))))
	requireDenied(t, policy.ReasonInvalidTimestamp, finding)
	require.Contains(t, finding.Message, "indefinite length")
	asked.Overrides.AuthenticTimestamp = notation.Log
	finding = check(t, asked, img, evidenceOf(notation.MediaTypeJWS, withTimestamp(t, envelope, []byte(deep))))
	require.Equal(t, policy.Valid, finding.Result(), finding.Message)
	require.Contains(t, finding.Message, "indefinite length", "a check that only logs still does not read it")
}

func TestACheckEndsWithItsContext(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	ended, end := context.WithCancel(t.Context())
	end()
	e := signed(t, img, leaf, fixture.NotationOptions{})
	require.Equal(t, policy.Unknown, verify.Found(checker(t, trusting(root.Chain[0])).Check(ended, subjectOf(img), e.signature, e.fetch, time.Now())).Result())
}
