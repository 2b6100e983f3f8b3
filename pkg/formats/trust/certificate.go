package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
)

const wantedCertificates = `"CERTIFICATE" PEM blocks`

// ParseCertificates reads 1 to 256 X.509 certificates from PEM text of at most 1 MiB
// ("CERTIFICATE" blocks, RFC 7468 section 5) and keeps their order. It refuses the whole
// text if one block is not a certificate. It checks neither validity times nor whether a
// certificate may sign others: verifiers do.
func ParseCertificates(pem []byte) ([]*x509.Certificate, error) {
	blocks, err := decode(pem, wantedCertificates, maxCertificatesInput, MaxCertificates)
	if err != nil {
		return nil, fmt.Errorf("parse certificates: %w", err)
	}
	certificates := make([]*x509.Certificate, 0, len(blocks))
	for _, b := range blocks {
		certificate, err := parseCertificate(b)
		if err != nil {
			return nil, fmt.Errorf("parse certificates: PEM block %d: %w", b.number, err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}

func parseCertificate(b block) (*x509.Certificate, error) {
	switch b.Type {
	case "CERTIFICATE":
	case "PUBLIC KEY", "RSA PUBLIC KEY":
		return nil, errors.New("found a public key, want " + wantedCertificates)
	default:
		return nil, fmt.Errorf("found a %.40q block, want %s", b.Type, wantedCertificates)
	}
	certificate, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return nil, fmt.Errorf("found a damaged certificate: %w", err)
	}
	return certificate, nil
}
