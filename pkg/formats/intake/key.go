package intake

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
)

// Certificate parses one certificate in DER whose key is cheap to verify with.
func Certificate(der []byte) (*x509.Certificate, error) {
	if len(der) > maxCertificate {
		return nil, pastLimit("has a certificate of %d bytes, the limit is %d", len(der), maxCertificate)
	}
	if err := scanDER(der, maxCertificateElements); err != nil {
		return nil, within("has a certificate that", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, malformed("has a certificate that is not well-formed")
	}
	return certificate, checkKey(certificate.PublicKey)
}

// Certificates parses a chain of certificates that are all cheap to verify with.
func Certificates(chain [][]byte) ([]*x509.Certificate, error) {
	if len(chain) > maxCertificates {
		return nil, pastLimit("has %d certificates, the limit is %d", len(chain), maxCertificates)
	}
	certificates := make([]*x509.Certificate, 0, len(chain))
	for _, der := range chain {
		certificate, err := Certificate(der)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}

// within adds the subject of a fault.
func within(what string, err error) error {
	return &Fault{limit: IsLimit(err), text: what + " " + err.Error()}
}

// checkKey refuses a key that is slow to verify with, or that no signature uses.
func checkKey(key any) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		switch {
		case key.N.BitLen() > maxRSABits:
			return pastLimit("has an RSA key of %d bits, the limit is %d", key.N.BitLen(), maxRSABits)
		case key.E > maxRSAExponent:
			return pastLimit("has an RSA key with an exponent of more than 31 bits")
		}
		return nil
	case *ecdsa.PublicKey, ed25519.PublicKey: // crypto/x509 knows P-224 to P-521
		return nil
	}
	return malformed("has a key that is neither RSA, ECDSA nor Ed25519")
}

// checkPublicKey refuses a public key in DER that checkKey refuses.
func checkPublicKey(der []byte) error {
	if len(der) > maxKey {
		return pastLimit("has a public key of %d bytes, the limit is %d", len(der), maxKey)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		if key, err = x509.ParsePKCS1PublicKey(der); err != nil {
			return malformed("has a public key that is not well-formed")
		}
	}
	return checkKey(key)
}

// checkPEM refuses text that is not public keys or certificates, all cheap to verify with.
func checkPEM(text []byte) error {
	for count := 0; len(text) > 0; count++ {
		block, rest := pem.Decode(text)
		switch {
		case block == nil && count == 0:
			return malformed("has a key that is not PEM")
		case block == nil:
			return nil
		case count == maxCertificates:
			return pastLimit("has more than %d keys", maxCertificates)
		}
		check := checkPublicKey
		if block.Type == "CERTIFICATE" {
			check = func(der []byte) error { _, err := Certificate(der); return err }
		}
		if err := check(block.Bytes); err != nil {
			return err
		}
		text = rest
	}
	return nil
}
