package intake_test

import (
	"crypto/x509"
	"encoding/json"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/stretchr/testify/require"
	"github.com/veraison/go-cose"

	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// FuzzBundle checks that bundles are read within their bounds, and as the library reads
// them.
func FuzzBundle(f *testing.F) {
	leaf := certificate(f, "leaf", nil, nil)
	f.Add(bundleWith(""))
	f.Add(bundleWith(`,"tlogEntries":[` + entryWith(hashedrekord(publicPEM(f, rsaKey(2048, 3)))) + `]`))
	f.Add(bundleWith(`,"timestampVerificationData":{"rfc3161Timestamps":[` + timestampWith(response(token(f, 1, leaf))) + `]}`))
	f.Add(repeated("[", "{}", 2000, "]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, needs := range []intake.Vouchers{{}, {Log: true}, {Time: true}, {Log: true, Time: true}} {
			err := cheap(t, len(data), func() error {
				read, err := intake.Bundle(data, needs)
				if err == nil && !needs.Log {
					require.Empty(t, read.GetVerificationMaterial().GetTlogEntries())
				}
				return err
			})
			if err != nil || !needs.Log || !needs.Time {
				continue
			}
			var theirs bundle.Bundle
			read, _ := intake.Bundle(data, needs)
			if theirs.UnmarshalJSON(data) == nil {
				require.Equal(t, theirs.GetMediaType(), read.GetMediaType())
				require.Equal(t, theirs.GetDsseEnvelope().GetPayload(), read.GetDsseEnvelope().GetPayload())
				require.Equal(t, theirs.GetMessageSignature().GetMessageDigest().GetDigest(), read.GetMessageSignature().GetMessageDigest().GetDigest())
			}
		}
	})
}

// FuzzJSON checks that what encoding/json refuses, or reads with a name twice, is not
// accepted as another document.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{"{}", `{"a":[1,true,null,"x"]}`, `{"a":1,"A":2}`, `{"\u0061":1,"a":2}`, strings.Repeat("[", 20), `"\"`, "1e5", "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if json.Valid(data) && len(data) < 64 && intake.Payload(data) != nil {
			require.Contains(t, intake.Payload(data).Error(), "UTF-8")
		}
		if cheap(t, len(data), func() error { return intake.JSON(data) }) != nil {
			return
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(data, &members) != nil {
			return
		}
		for name := range members {
			for other := range members {
				require.True(t, name == other || !strings.EqualFold(name, other))
			}
		}
	})
}

// FuzzTimestamp checks that timestamps are scanned within their bounds.
func FuzzTimestamp(f *testing.F) {
	leaf := certificate(f, "leaf", nil, nil)
	f.Add(token(f, 1, leaf))
	f.Add(response(token(f, 2, leaf, leaf)))
	f.Add(nested(30, nil))
	f.Add([]byte{0x30, 0x80, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = cheap(t, len(data), func() error { return intake.TimestampToken(data) })
		_ = cheap(t, len(data), func() error { return intake.TimestampResponse(data) })
	})
}

// FuzzCertificate checks that a certificate that is accepted is the one that crypto/x509
// reads.
func FuzzCertificate(f *testing.F) {
	f.Add(certificate(f, "leaf", nil, nil))
	f.Add(certificate(f, "leaf", rsaKey(8200, 3), nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		var mine *x509.Certificate
		if cheap(t, len(data), func() (err error) { mine, err = intake.Certificate(data); return err }) != nil {
			return
		}
		theirs, err := x509.ParseCertificate(data)
		require.NoError(t, err)
		require.True(t, mine.Equal(theirs))
	})
}

// FuzzCOSE checks that what is accepted costs the library little to parse.
func FuzzCOSE(f *testing.F) {
	f.Add([]byte{0xd2, 0x84, 0x40, 0xa0, 0x42, '{', '}', 0x40})
	f.Add([]byte{0x84, 0x43, 0xa1, 1, 0x26, 0xa1, 0x18, 33, 0x81, 0x40, 0x42, '{', '}', 0x40})
	f.Add([]byte(strings.Repeat("\x81", 40)))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = cheap(t, len(data), func() error {
			if err := intake.COSE(data); err != nil {
				return err
			}
			var message cose.Sign1Message
			return message.UnmarshalCBOR(data)
		})
	})
}

// FuzzJWS does the same for JWS.
func FuzzJWS(f *testing.F) {
	f.Add([]byte(`{"payload":"e30","protected":"e30","header":{"x5c":["AAAA"]},"signature":"AA"}`))
	f.Add([]byte(`{"payload":"e30","Payload":"e30","protected":"e30"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = cheap(t, len(data), func() error {
			if err := intake.JWS(data); err != nil {
				return err
			}
			var header struct {
				Header struct {
					Chain [][]byte `json:"x5c"`
				} `json:"header"`
			}
			return json.Unmarshal(data, &header)
		})
	})
}

// FuzzManifest checks that no document is both a manifest and an index, and that manifests
// have the layers that encoding/json reads.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifestWith("")))
	f.Add([]byte(indexWith("")))
	f.Add([]byte(manifestWith(`,"manifests":[]`)))
	f.Add([]byte(indexWith(`,"mediaType":"` + ocispec.MediaTypeImageIndex + `"`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var manifest ocispec.Manifest
		var manifests []ocispec.Descriptor
		isManifest := cheap(t, len(data), func() (err error) { manifest, err = intake.Manifest(data, ""); return err }) == nil
		isIndex := cheap(t, len(data), func() (err error) { manifests, err = intake.Index(data, ocispec.MediaTypeImageIndex, 32); return err }) == nil
		require.False(t, isManifest && isIndex)
		var theirs struct{ Layers, Manifests []ocispec.Descriptor }
		if isManifest || isIndex {
			require.NoError(t, json.Unmarshal(data, &theirs))
			require.Equal(t, theirs.Layers, manifest.Layers)
			require.Equal(t, theirs.Manifests, manifests)
		}
	})
}
