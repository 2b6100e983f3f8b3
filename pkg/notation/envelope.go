package notation

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/veraison/go-cose"

	"github.com/landwaiter/landwaiter/pkg/trust"
)

// anchors are trusted certificates.
type anchors []*x509.Certificate

// GetCertificates returns the certificates of the two stores in the library's policy.
func (c *Checker) GetCertificates(_ context.Context, kind truststore.Type, name string) ([]*x509.Certificate, error) {
	switch {
	case kind == truststore.TypeCA && name == storeName:
		return c.anchors, nil
	case kind == truststore.TypeTSA && name == tsaStoreName:
		return c.authorities, nil
	}
	return nil, fmt.Errorf("there is no trust store %s:%s", kind, name)
}

func (a anchors) contain(chain []*x509.Certificate) bool {
	return slices.ContainsFunc(chain, func(presented *x509.Certificate) bool {
		return slices.ContainsFunc(a, presented.Equal)
	})
}

// presented returns the certificates of an envelope, unverified. It refuses an envelope
// without certificates, and one whose certificates would cost too much to check: the
// library verifies the whole chain before it looks for a trust anchor.
func presented(mediaType string, envelope []byte) ([]*x509.Certificate, error) {
	raw, timestamp, err := rawHeaders(mediaType, envelope)
	switch {
	case err != nil:
		return nil, malformed(fmt.Sprintf("the signature envelope is not well-formed %s", mediaType))
	case timestamp > maxTimestamp:
		return nil, limitExceeded(fmt.Sprintf("the timestamp of the signature has %d bytes", timestamp), maxTimestamp)
	case len(raw) == 0:
		return nil, malformed("the signature envelope has no certificates")
	case len(raw) > maxChain:
		return nil, limitExceeded(fmt.Sprintf("the signature envelope has %d certificates", len(raw)), maxChain)
	}
	chain := make([]*x509.Certificate, 0, len(raw))
	for _, der := range raw {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, malformed("the signature envelope has a certificate that is not well-formed")
		}
		// Strangers choose these keys, and a long one is slow to verify with.
		if key, ok := certificate.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > trust.MaxRSABits {
			return nil, limitExceeded(fmt.Sprintf("the signature envelope has an RSA key of %d bits", key.N.BitLen()), trust.MaxRSABits)
		}
		chain = append(chain, certificate)
	}
	return chain, nil
}

// rawHeaders returns the certificates of an envelope and the size of its
// timestamp in bytes.
func rawHeaders(mediaType string, envelope []byte) (chain [][]byte, timestamp int, err error) {
	switch mediaType {
	case MediaTypeJWS:
		return rawHeadersJWS(envelope)
	case MediaTypeCOSE:
		return rawHeadersCOSE(envelope)
	}
	return nil, 0, fmt.Errorf("unknown envelope type %q", mediaType)
}

// timestampHeader is the unsigned attribute with the RFC 3161 countersignature
// (signature specification, "Unsigned Attributes").
const timestampHeader = "io.cncf.notary.timestampSignature"

// rawHeadersJWS reads the "x5c" header. It decodes into the same names and types as the
// library, so that both read a repeated key the same way.
func rawHeadersJWS(envelope []byte) ([][]byte, int, error) {
	var jws struct {
		Header struct {
			TimestampSignature []byte   `json:"io.cncf.notary.timestampSignature"`
			CertChain          [][]byte `json:"x5c"`
		} `json:"header"`
	}
	if err := json.Unmarshal(envelope, &jws); err != nil {
		return nil, 0, fmt.Errorf("decode JWS: %w", err)
	}
	return jws.Header.CertChain, len(jws.Header.TimestampSignature), nil
}

// rawHeadersCOSE reads the "x5chain" header (RFC 9360 section 2).
func rawHeadersCOSE(envelope []byte) ([][]byte, int, error) {
	var message cose.Sign1Message
	if err := message.UnmarshalCBOR(envelope); err != nil {
		return nil, 0, fmt.Errorf("decode COSE: %w", err)
	}
	values, ok := message.Headers.Unprotected[cose.HeaderLabelX5Chain].([]any)
	if !ok {
		return nil, 0, errors.New("x5chain is not a list")
	}
	chain := make([][]byte, 0, len(values))
	for _, value := range values {
		der, ok := value.([]byte)
		if !ok {
			return nil, 0, errors.New("x5chain is not a list of byte strings")
		}
		chain = append(chain, der)
	}
	timestamp, _ := message.Headers.Unprotected[timestampHeader].([]byte)
	return chain, len(timestamp), nil
}
