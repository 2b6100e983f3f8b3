package notation

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	notationgo "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/notaryproject/tspclient-go"
	"github.com/veraison/go-cose"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// anchors are trusted certificates.
type anchors []*x509.Certificate

// GetCertificates returns the certificates of the stores in the library's policy.
func (c *Checker) GetCertificates(_ context.Context, kind truststore.Type, name string) ([]*x509.Certificate, error) {
	switch {
	case kind == truststore.TypeCA && name == storeName:
		return c.anchors, nil
	case kind == truststore.TypeSigningAuthority && name == signingStore:
		return c.signing, nil
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

// presented returns the unverified certificates of an envelope and its timestamp. It refuses
// an envelope without certificates, and one that would cost too much to parse or to verify:
// the library verifies the whole chain before it looks for a trust anchor.
func presented(mediaType string, envelope []byte) (chain []*x509.Certificate, timestamp []byte, err error) {
	raw, timestamp, err := rawHeaders(mediaType, envelope)
	switch {
	case intake.IsLimit(err):
		return nil, nil, pastLimit("the signature envelope " + err.Error())
	case err != nil:
		return nil, nil, malformed(fmt.Sprintf("the signature envelope is not well-formed %s", mediaType))
	case len(raw) == 0:
		return nil, nil, malformed("the signature envelope has no certificates")
	}
	chain, err = intake.Certificates(raw)
	switch {
	case intake.IsLimit(err):
		return nil, nil, pastLimit("the signature envelope " + err.Error())
	case err != nil:
		return nil, nil, malformed("the signature envelope " + err.Error())
	}
	return chain, timestamp, nil
}

// checkToken refuses a timestamp that would cost too much to parse or to verify.
func checkToken(timestamp []byte) error {
	if len(timestamp) == 0 {
		return nil // the library says that it is missing
	}
	err := intake.TimestampToken(timestamp)
	switch {
	case intake.IsLimit(err):
		return pastLimit("the timestamp of the signature " + err.Error())
	case err != nil:
		return invalidTimestamp("the timestamp of the signature " + err.Error())
	}
	return nil
}

// rawHeaders returns the certificates of an envelope and its timestamp, which may be empty.
func rawHeaders(mediaType string, envelope []byte) (chain [][]byte, timestamp []byte, err error) {
	switch mediaType {
	case MediaTypeJWS:
		if err := intake.JWS(envelope); err != nil {
			return nil, nil, err
		}
		return rawHeadersJWS(envelope)
	case MediaTypeCOSE:
		if err := intake.COSE(envelope); err != nil {
			return nil, nil, err
		}
		return rawHeadersCOSE(envelope)
	}
	return nil, nil, fmt.Errorf("unknown envelope type %q", mediaType)
}

// timestampHeader is the unsigned attribute with the RFC 3161 countersignature
// (signature specification, "Unsigned Attributes").
const timestampHeader = "io.cncf.notary.timestampSignature"

// rawHeadersJWS reads the "x5c" header. It decodes into the same names and types as the
// library, so that both read a repeated key in the same way.
func rawHeadersJWS(envelope []byte) ([][]byte, []byte, error) {
	var jws struct {
		Header struct {
			TimestampSignature []byte   `json:"io.cncf.notary.timestampSignature"`
			CertChain          [][]byte `json:"x5c"`
		} `json:"header"`
	}
	if err := json.Unmarshal(envelope, &jws); err != nil {
		return nil, nil, fmt.Errorf("decode JWS: %w", err)
	}
	return jws.Header.CertChain, jws.Header.TimestampSignature, nil
}

// rawHeadersCOSE reads the "x5chain" header (RFC 9360 section 2).
func rawHeadersCOSE(envelope []byte) ([][]byte, []byte, error) {
	var message cose.Sign1Message
	if err := message.UnmarshalCBOR(envelope); err != nil {
		return nil, nil, fmt.Errorf("decode COSE: %w", err)
	}
	values, ok := message.Headers.Unprotected[cose.HeaderLabelX5Chain].([]any)
	if !ok {
		return nil, nil, errors.New("x5chain is not a list")
	}
	chain := make([][]byte, 0, len(values))
	for _, value := range values {
		der, ok := value.([]byte)
		if !ok {
			return nil, nil, errors.New("x5chain is not a list of byte strings")
		}
		chain = append(chain, der)
	}
	timestamp, _ := message.Headers.Unprotected[timestampHeader].([]byte)
	return chain, timestamp, nil
}

// checkTimestamp explains in our words why the library did not accept the timestamp. It
// returns nil if the library accepted it.
func checkTimestamp(outcome *notationgo.VerificationOutcome) error {
	var failure error
	checked := false
	for _, result := range outcome.VerificationResults {
		if result.Type == trustpolicy.TypeAuthenticTimestamp {
			failure, checked = result.Error, true
		}
	}
	var revoked revocationError
	signer := outcome.EnvelopeContent.SignerInfo
	switch {
	case checked && failure == nil:
		return nil
	case errors.As(failure, &revoked):
		return revoked.error
	case len(signer.UnsignedAttributes.TimestampSignature) == 0:
		return verify.Refuse(policy.ReasonNoTimestamp, "the signature has no timestamp, and one is required",
			"sign the image again with a timestamp (notation sign --timestamp-url)")
	}
	at, err := timestampOf(signer.UnsignedAttributes.TimestampSignature, signer.Signature)
	if err != nil {
		return invalidTimestamp("the timestamp is not for this signature")
	}
	// "Validate that the time range from `timeStampLowerLimit` to `timeStampUpperLimit`
	// timestamp is entirely within the signing certificate and certificate chain's
	// validity period" (trust store and trust policy specification, "Steps").
	for _, certificate := range signer.CertificateChain {
		if !at.BoundedAfter(certificate.NotBefore) || !at.BoundedBefore(certificate.NotAfter) {
			return timeOutside(at.Value, certificate)
		}
	}
	return invalidTimestamp("the timestamp is by no trusted timestamp authority")
}

func invalidTimestamp(message string) error {
	return verify.Refuse(policy.ReasonInvalidTimestamp, message,
		"sign the image again with a timestamp from a trusted authority, or have the authority's root added to the trust store")
}

// timestampOf reads the time from a token (RFC 3161 section 2.4.2) for signature. It does
// not verify the authority.
func timestampOf(token, signature []byte) (*tspclient.Timestamp, error) {
	signed, err := tspclient.ParseSignedToken(token)
	if err != nil {
		return nil, fmt.Errorf("parse timestamp: %w", err)
	}
	info, err := signed.Info()
	if err != nil {
		return nil, fmt.Errorf("read timestamp: %w", err)
	}
	at, err := info.Validate(signature)
	if err != nil {
		return nil, fmt.Errorf("compare timestamp and signature: %w", err)
	}
	return at, nil
}
