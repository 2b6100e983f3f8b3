package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func certificates(t *testing.T, text []byte) []*x509.Certificate {
	t.Helper()
	var found []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		found = append(found, certificate)
	}
	return found
}

func TestPublicRootsAreAuthoritiesThatRegistriesUse(t *testing.T) {
	text, err := publicRoots()
	require.NoError(t, err)
	var names []string
	for _, root := range certificates(t, text) {
		require.True(t, root.IsCA, root.Subject)
		names = append(names, root.Subject.CommonName)
	}
	require.Greater(t, len(names), 50)
	for _, name := range []string{"ISRG Root X1", "DigiCert Global Root G2", "Amazon Root CA 1", "GTS Root R1"} {
		require.Contains(t, names, name)
	}
	require.True(t, x509.NewCertPool().AppendCertsFromPEM(text))
	again, err := publicRoots()
	require.NoError(t, err)
	require.Equal(t, text, again)
}

func TestLeavesOutRootsThatAreTrustedForOldCertificatesOnly(t *testing.T) {
	roots := slices.Collect(bundle.Roots())
	require.Greater(t, len(roots), 2)
	for i := range roots {
		roots[i].Constraint = nil
	}
	roots = roots[:3]
	roots[1].Constraint = func([]*x509.Certificate) error { return errors.New("too new") }
	text, err := encodeRoots(slices.Values(roots))
	require.NoError(t, err)
	var kept [][]byte
	for _, certificate := range certificates(t, text) {
		kept = append(kept, certificate.Raw)
	}
	require.Equal(t, [][]byte{roots[0].Certificate, roots[2].Certificate}, kept)
}

func TestRefusesARootThatIsNoCertificate(t *testing.T) {
	_, err := encodeRoots(slices.Values([]bundle.Root{{Certificate: []byte("x")}}))
	require.Error(t, err)
}
