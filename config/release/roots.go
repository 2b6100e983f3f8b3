package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"iter"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootsPath is where crypto/x509 looks for roots on Linux first.
const rootsPath = "etc/ssl/certs/ca-certificates.crt"

// publicRoots returns the public CAs as PEM: Mozilla's list, in the
// version that go.mod names. The bundle of the machine that builds would be another on
// each machine. Roots that Mozilla trusts for old certificates only are left out, because
// a PEM file cannot say so.
func publicRoots() ([]byte, error) { return encodeRoots(bundle.Roots()) }

func encodeRoots(roots iter.Seq[bundle.Root]) ([]byte, error) {
	var out bytes.Buffer
	for root := range roots {
		if root.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read a public root: %w", err)
		}
		fmt.Fprintf(&out, "# %s\n", certificate.Subject)
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("write a public root: %w", err)
		}
	}
	return out.Bytes(), nil
}
