package notation_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// anImage returns an image that exists in no registry.
func anImage(t testing.TB, content string) fixture.Image {
	t.Helper()
	d := digest.FromString(content)
	ref, err := image.Parse("registry.example.com/team-a/app@" + d.String())
	require.NoError(t, err)
	return fixture.Image{Reference: ref, Descriptor: ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, Digest: d, Size: int64(len(content)),
	}}
}

func subjectOf(img fixture.Image) verify.Subject {
	return verify.Subject{Reference: img.Reference, Descriptor: img.Descriptor}
}

// evidence is a signature manifest with its blobs.
type evidence struct {
	signature verify.Signature
	blobs     map[digest.Digest][]byte
	err       error // of every fetch
}

func evidenceOf(mediaType string, envelopes ...[]byte) *evidence {
	e := &evidence{blobs: map[digest.Digest][]byte{}}
	e.signature.Manifest.Config.MediaType = notation.ArtifactType
	for _, envelope := range envelopes {
		layer := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(envelope), Size: int64(len(envelope))}
		e.blobs[layer.Digest] = envelope
		e.signature.Manifest.Layers = append(e.signature.Manifest.Layers, layer)
		e.signature.Layer = layer
	}
	return e
}

func (e *evidence) fetch(_ context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	content, ok := e.blobs[desc.Digest]
	switch {
	case e.err != nil:
		return nil, e.err
	case !ok:
		return nil, verify.Permanent(policy.ReasonNotFound, fmt.Errorf("blob %s is not there", desc.Digest))
	case desc.Size > limit:
		return nil, verify.Permanent(policy.ReasonLimitExceeded, errors.New("too large"))
	}
	return content, nil
}

func signed(t testing.TB, img fixture.Image, signer *fixture.Certificate, options fixture.NotationOptions) *evidence {
	t.Helper()
	envelope, err := fixture.NotationEnvelope(img, signer, options)
	require.NoError(t, err)
	return evidenceOf(options.MediaType(), envelope)
}

func authority(t testing.TB, name string, options fixture.CertificateOptions) *fixture.Authority {
	t.Helper()
	a, err := fixture.NewAuthorityWith(name, options)
	require.NoError(t, err)
	return a
}

func signer(t testing.TB, a *fixture.Authority, name string, options fixture.CertificateOptions) *fixture.Certificate {
	t.Helper()
	s, err := a.IssueSigner(name, options)
	require.NoError(t, err)
	return s
}

func trusting(anchors ...*x509.Certificate) notation.Options {
	return notation.Options{
		Name: "Verifier team-a/release", Certificates: anchors,
		TrustedIdentities: []string{"x509.subject: C=US, ST=WA, O=Landwaiter Fixtures"},
	}
}

func checker(t testing.TB, options notation.Options) *notation.Checker {
	t.Helper()
	c, err := notation.New(options)
	require.NoError(t, err)
	return c
}

func check(t testing.TB, options notation.Options, img fixture.Image, e *evidence) policy.Finding {
	t.Helper()
	return verify.Found(checker(t, options).Check(t.Context(), subjectOf(img), e.signature, e.fetch, time.Now()))
}

func requireDenied(t testing.TB, reason policy.Reason, finding policy.Finding) {
	t.Helper()
	require.Equal(t, policy.Invalid, finding.Result(), finding.Message)
	require.Equal(t, reason, finding.Reason, finding.Message)
	require.NotEmpty(t, finding.Message)
	require.Empty(t, finding.Signer())
}

// stapled returns envelope with the timestamp of donor. Both are JWS.
func stapled(t testing.TB, envelope, donor []byte) []byte {
	t.Helper()
	var from struct {
		Header struct {
			Timestamp []byte `json:"io.cncf.notary.timestampSignature"`
		} `json:"header"`
	}
	require.NoError(t, json.Unmarshal(donor, &from))
	require.NotEmpty(t, from.Header.Timestamp)
	return withTimestamp(t, envelope, from.Header.Timestamp)
}

// withTimestamp returns a JWS envelope with another timestamp, which its signature does
// not cover.
func withTimestamp(t testing.TB, envelope, timestamp []byte) []byte {
	t.Helper()
	var whole map[string]any
	require.NoError(t, json.Unmarshal(envelope, &whole))
	header, ok := whole["header"].(map[string]any)
	require.True(t, ok)
	header["io.cncf.notary.timestampSignature"] = base64.StdEncoding.EncodeToString(timestamp)
	text, err := json.Marshal(whole)
	require.NoError(t, err)
	return text
}
