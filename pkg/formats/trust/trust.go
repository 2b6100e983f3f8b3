// Package trust parses the keys, certificates and Sigstore roots that signatures are verified with. It
// accepts a source as a whole or not at all: it refuses private keys, weak or unknown keys, and anything else
// that looks like a key or a PEM block. So a mistake in trust material shows when it is made, and not when an
// image is denied. It does no I/O.
package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// parseAll parses each PEM block of a source. It refuses the whole source if one block is not
// of the wanted type.
func parseAll[T any](what string, text []byte, wanted string, maxBytes, maxBlocks int, parse func(*pem.Block) (T, error)) ([]T, error) {
	blocks, err := decode(text, wanted, maxBytes, maxBlocks)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", what, err)
	}
	all := make([]T, len(blocks))
	for i, b := range blocks {
		if all[i], err = parse(b); err != nil {
			return nil, fmt.Errorf("parse %s: PEM block %d: %w", what, i+1, err)
		}
	}
	return all, nil
}

// SigstoreRoot is a trusted root for keyless signatures: CAs,
// transparency logs and timestamp authorities. It is immutable.
type SigstoreRoot = root.TrustedRoot

// ParseSigstoreRoot parses a trusted_root.json (sigstore_trustroot.proto, media
// type application/vnd.dev.sigstore.trustedroot+json;version=0.1 and later) of at
// most 256 KiB. It refuses a root with neither a CA nor a log, which
// could not vouch for any signature.
func ParseSigstoreRoot(text []byte) (parsed *SigstoreRoot, err error) {
	if len(text) > maxRootInput {
		return nil, fmt.Errorf("the trusted root is %d bytes large, the limit is %d", len(text), maxRootInput)
	}
	defer func() {
		if recover() != nil { // the library does not check every index
			parsed, err = nil, errors.New("the trusted root is malformed")
		}
	}()
	parsed, err = root.NewTrustedRootFromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the trusted root cannot be read (trusted_root.json, as cosign trusted-root create writes it): %w", err)
	}
	if len(parsed.FulcioCertificateAuthorities())+len(parsed.RekorLogs()) == 0 {
		return nil, errors.New("the trusted root has neither a CA nor a log, so it could vouch for nothing")
	}
	return parsed, nil
}

// TimestampRoots returns the distinct root certificates of a root's timestamp authorities as
// PEM text, nil if there are none.
func TimestampRoots(r *SigstoreRoot) []byte {
	var text []byte
	for _, authority := range r.TimestampingAuthorities() {
		a, ok := authority.(*root.SigstoreTimestampingAuthority)
		if !ok || a.Root == nil {
			continue
		}
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Root.Raw})
		if !bytes.Contains(text, block) {
			text = append(text, block...)
		}
	}
	return text
}

const wantedCertificates = `"CERTIFICATE" PEM blocks`

// ParseCertificates reads 1 to 256 X.509 certificates from PEM text of at most 1 MiB
// ("CERTIFICATE" blocks, RFC 7468 section 5) and keeps their order. It refuses the whole
// text if one block is not a certificate. It checks neither validity times nor whether a
// certificate may sign others: verifiers do.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	return parseAll("certificates", text, wantedCertificates, maxCertificatesInput, MaxCertificates, parseCertificate)
}

func parseCertificate(b *pem.Block) (*x509.Certificate, error) {
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
