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
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	authorityName         = "landwaiter-ca"
	authorityOrganization = "landwaiter"
	maxCommonName         = 64 // RFC 5280, appendix A.1, ub-common-name
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	signer      crypto.Signer
}

// renewed returns the data of a Secret for names: ca.crt, ca.key, tls.crt and tls.key.
// changed is false if data needs no renewal. The CA stays as long as possible: if it is still
// usable, only the certificate is issued.
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

// pace slows down issuing if somebody else changes the Secret each time.
type pace struct {
	last  time.Time
	count int
}

// next returns when a certificate may be issued again.
func (p *pace) next(now time.Time) time.Time {
	if now.Sub(p.last) >= paceMemory {
		p.count = 0
	}
	if p.count < promptly {
		return now
	}
	return p.last.Add(min(pacing<<min(p.count-promptly, 10), maxPacing))
}

func (p *pace) issued(now time.Time) { p.count, p.last = p.count+1, now }

// certificateNames returns distinct DNS names (RFC 1123, also with a wildcard as first label) and IP addresses as a
// certificate contains them. Its error names one that is neither.
func certificateNames(wanted []string) (names []string, err error) {
	for _, name := range wanted {
		canonical := strings.ToLower(strings.TrimSuffix(name, "."))
		if address, err := netip.ParseAddr(name); err == nil && address.Zone() == "" {
			canonical = address.Unmap().String()
		} else if problems := validation.IsDNS1123Subdomain(strings.TrimPrefix(canonical, "*.")); len(problems) > 0 || numeric(canonical) {
			return nil, fmt.Errorf("%q is neither a DNS name nor an IP address", name)
		}
		if !slices.Contains(names, canonical) {
			names = append(names, canonical)
		}
	}
	if len(names) > maxNames {
		return nil, fmt.Errorf("the certificate would have %d names, the limit is %d", len(names), maxNames)
	}
	return names, nil
}

// numeric reports whether clients interpret a name as an IP address (WHATWG URL, section 3.5): its last label is a
// number.
func numeric(name string) bool {
	_, err := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 10, 64)
	return err == nil
}

// parseAuthority returns the CA of a Secret and when to replace it. An error says why it
// cannot be used, or must be replaced now.
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

// checkCertificate returns when to renew the certificate of a Secret, or why it must be
// renewed now.
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

// newAuthority creates a CA and puts it into data.
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

// issue issues a certificate for the names and puts it into data. It never outlives the CA.
func (a authority) issue(data map[string][]byte, names []string, now time.Time) error {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: names[0][:min(len(names[0]), maxCommonName)]},
		NotBefore: now.Add(-backdate), NotAfter: earlier(now.Add(certificateLife), a.certificate.NotAfter),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range names {
		if address := net.ParseIP(name); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	if _, err := a.sign(template, data, certificateKey, keyKey); err != nil {
		return fmt.Errorf("make the certificate: %w", err)
	}
	if _, err := checkCertificate(data, a, names, now); err != nil { // otherwise it would be issued again immediately
		return fmt.Errorf("make the certificate: %w", err)
	}
	return nil
}

// sign creates a key and a certificate and puts both into data. The zero authority makes the
// certificate self-signed. The library draws a random serial number.
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
