package serving

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"time"
)

const (
	authorityName         = "landwaiter-ca"
	authorityOrganization = "landwaiter"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	signer      crypto.Signer
}

// renewed returns data as a Secret for the DNS names should have it: ca.crt,
// ca.key, tls.crt and tls.key. changed is false if data is fine until renewal. The
// authority stays as long as it can: without it, only the certificate is made.
func renewed(data map[string][]byte, names []string, now time.Time) (next map[string][]byte, changed bool, renewal time.Time, err error) {
	a, renewal, unusable := parseAuthority(data, now)
	if unusable == nil {
		if until, err := checkCertificate(data, a, names, now); err == nil {
			return data, false, earlier(renewal, until), nil
		}
	}
	next = maps.Clone(data)
	if next == nil {
		next = map[string][]byte{}
	}
	if unusable != nil {
		if a, err = newAuthority(next, now); err != nil {
			return nil, false, time.Time{}, err
		}
	}
	if err := a.issue(next, names, now); err != nil {
		return nil, false, time.Time{}, err
	}
	return next, true, time.Time{}, nil
}

// remember returns data with the CA that counted before, for the overlap.
func remember(data map[string][]byte, before []byte, now time.Time) map[string][]byte {
	next := maps.Clone(data)
	next[previousKey], next[previousUntilKey] = before, []byte(now.Add(authorityOverlap).UTC().Format(time.RFC3339))
	return next
}

// withPrevious returns the CA of a Secret, with the one before it while they overlap, and when that ends; zero if they
// do not overlap.
func withPrevious(data map[string][]byte, now time.Time) ([]byte, time.Time) {
	until, err := time.Parse(time.RFC3339, string(data[previousUntilKey]))
	until = earlier(until, now.Add(authorityOverlap)) // whoever wrote it may have another clock
	if err != nil || !now.Before(until) || len(data[previousKey]) > maxFileBytes || !x509.NewCertPool().AppendCertsFromPEM(data[previousKey]) {
		return data[authorityKey], time.Time{}
	}
	return both(data[authorityKey], data[previousKey]), until
}

// parseAuthority returns the CA of a Secret and when to replace it. An
// error says why it cannot be used, or that it has to be replaced now.
func parseAuthority(data map[string][]byte, now time.Time) (authority, time.Time, error) {
	p, err := tls.X509KeyPair(data[authorityKey], data[authorityKeyKey])
	if err != nil {
		return authority{}, time.Time{}, fmt.Errorf("load the CA: %w", err)
	}
	signer, ok := p.PrivateKey.(crypto.Signer)
	if !ok {
		return authority{}, time.Time{}, errors.New("the CA's key cannot sign")
	}
	renewal := p.Leaf.NotAfter.Add(-renewBefore)
	switch {
	case !p.Leaf.IsCA:
		return authority{}, time.Time{}, errors.New("the certificate is not that of a CA: RFC 5280, section 4.2.1.9, cA is not asserted")
	case now.Before(p.Leaf.NotBefore) || !now.Before(renewal):
		return authority{}, time.Time{}, errors.New("the CA is due for renewal")
	}
	return authority{p.Leaf, signer}, renewal, nil
}

// checkCertificate returns when to renew the certificate of a Secret, or why that
// has to be done now.
func checkCertificate(data map[string][]byte, a authority, names []string, now time.Time) (renewal time.Time, err error) {
	p, err := tls.X509KeyPair(data[certificateKey], data[keyKey])
	if err != nil {
		return time.Time{}, fmt.Errorf("load the certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	for _, name := range names {
		if _, err := p.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return time.Time{}, fmt.Errorf("verify the certificate: %w", err)
		}
	}
	if renewal = p.Leaf.NotAfter.Add(-renewBefore); !now.Before(renewal) {
		return time.Time{}, errors.New("the certificate is due for renewal")
	}
	return renewal, nil
}

// newAuthority makes a CA and puts it into data.
func newAuthority(data map[string][]byte, now time.Time) (authority, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: authorityName, Organization: []string{authorityOrganization}},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	made, err := authority{}.sign(template, data, authorityKey, authorityKeyKey)
	if err != nil {
		return authority{}, fmt.Errorf("make the CA: %w", err)
	}
	return made, nil
}

// issue makes a certificate for the names and puts it into data. It never
// outlives the CA.
func (a authority) issue(data map[string][]byte, names []string, now time.Time) error {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-backdate), NotAfter: earlier(now.Add(certificateLife), a.certificate.NotAfter),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if _, err := a.sign(template, data, certificateKey, keyKey); err != nil {
		return fmt.Errorf("make the certificate: %w", err)
	}
	return nil
}

// sign makes a certificate with a key of its own and puts both into data. The zero authority
// lets it sign itself. The serial number is left to the library, which draws a random one.
func (a authority) sign(template *x509.Certificate, data map[string][]byte, certificateName, keyName string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("make the key: %w", err)
	}
	if a.certificate == nil {
		a = authority{template, key}
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.signer)
	if err != nil {
		return authority{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return authority{}, fmt.Errorf("encode the key: %w", err)
	}
	data[certificateName] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	data[keyName] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	parsed, err := x509.ParseCertificate(certificate)
	return authority{parsed, key}, err
}
