package notation

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/result"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/veraison/go-cose"

	"github.com/landwaiter/landwaiter/pkg/policy"
)

// anchors is the trust store that the library asks.
type anchors []*x509.Certificate

// GetCertificates returns the anchors, for the one store that is in the policy.
func (a anchors) GetCertificates(_ context.Context, kind truststore.Type, name string) ([]*x509.Certificate, error) {
	if kind != truststore.TypeCA || name != storeName {
		return nil, fmt.Errorf("there is no trust store %s:%s", kind, name)
	}
	return a, nil
}

func (a anchors) contain(chain []*x509.Certificate) bool {
	return slices.ContainsFunc(chain, func(presented *x509.Certificate) bool {
		return slices.ContainsFunc(a, presented.Equal)
	})
}

// offline stands where the library would ask OCSP responders and fetch lists
// from addresses in the certificates. The policy skips revocation, so that it is
// never called; should it be, it fails.
type offline struct{}

// ValidateContext fails.
func (offline) ValidateContext(context.Context, revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	return nil, errors.New("revocation is not checked here")
}

// presented returns the certificates that an envelope comes with, unverified.
// The finding has a reason if it has none or they would cost too much to check:
// the library verifies the whole chain before it asks whom to trust.
func presented(mediaType string, envelope []byte) ([]*x509.Certificate, policy.Finding) {
	raw, err := rawChain(mediaType, envelope)
	switch {
	case err != nil:
		return nil, malformed(fmt.Sprintf("the signature envelope is not well-formed %s", mediaType))
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
		if key, ok := certificate.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
			return nil, limitExceeded(fmt.Sprintf("the signature envelope has an RSA key of %d bits", key.N.BitLen()), maxRSABits)
		}
		chain = append(chain, certificate)
	}
	return chain, policy.Finding{}
}

func rawChain(mediaType string, envelope []byte) ([][]byte, error) {
	switch mediaType {
	case MediaTypeJWS:
		return rawChainJWS(envelope)
	case MediaTypeCOSE:
		return rawChainCOSE(envelope)
	}
	return nil, fmt.Errorf("unknown envelope type %q", mediaType)
}

// rawChainJWS reads the "x5c" header. The names and types are those that the
// library decodes into, so that a repeated key means the same to both.
func rawChainJWS(envelope []byte) ([][]byte, error) {
	var jws struct {
		Header struct {
			CertChain [][]byte `json:"x5c"`
		} `json:"header"`
	}
	if err := json.Unmarshal(envelope, &jws); err != nil {
		return nil, fmt.Errorf("decode JWS: %w", err)
	}
	return jws.Header.CertChain, nil
}

// rawChainCOSE reads the "x5chain" header (RFC 9360 section 2).
func rawChainCOSE(envelope []byte) ([][]byte, error) {
	var message cose.Sign1Message
	if err := message.UnmarshalCBOR(envelope); err != nil {
		return nil, fmt.Errorf("decode COSE: %w", err)
	}
	values, ok := message.Headers.Unprotected[cose.HeaderLabelX5Chain].([]any)
	if !ok {
		return nil, errors.New("x5chain is not a list")
	}
	chain := make([][]byte, 0, len(values))
	for _, value := range values {
		der, ok := value.([]byte)
		if !ok {
			return nil, errors.New("x5chain is not a list of byte strings")
		}
		chain = append(chain, der)
	}
	return chain, nil
}
