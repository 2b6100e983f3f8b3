package notation_test

import (
	"crypto/x509"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// silent is a transport that nobody may use.
type silent struct{ t testing.TB }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.t.Errorf("%s is asked for", r.URL)
	return nil, errors.New("no")
}

func lists(t testing.TB, texts ...[]byte) []notation.RevocationList {
	t.Helper()
	var all []notation.RevocationList
	for _, text := range texts {
		parsed, err := trust.ParseRevocationLists(text)
		require.NoError(t, err)
		for _, list := range parsed {
			all = append(all, list)
		}
	}
	return all
}

func listOf(t testing.TB, a *fixture.Authority, options fixture.ListOptions) []byte {
	t.Helper()
	text, err := a.RevocationListPEM(options)
	require.NoError(t, err)
	return text
}

// A site without a network carries lists in. They are judged as fetched ones are.
func TestAListOfTheVerifierReplacesTheNetwork(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	twin := authority(t, "root", fixture.CertificateOptions{}) // another key under the same name
	stranger := authority(t, "stranger", fixture.CertificateOptions{})
	now := time.Now()
	for how, options := range map[string]fixture.CertificateOptions{
		"a certificate with a responder":    {Responder: "http://ocsp.example.com"},
		"a certificate with a list":         {Lists: "http://crl.example.com/x.crl"},
		"a certificate that names an entry": {Lists: "landwaiter-list:0"},
		"a certificate that names nothing":  {},
	} {
		t.Run(how, func(t *testing.T) {
			leaf := signer(t, root, "release", options)
			img := anImage(t, "image")
			e := signed(t, img, leaf, fixture.NotationOptions{})
			revoked := []*x509.Certificate{leaf.Chain[0]}
			good, bad := listOf(t, root, fixture.ListOptions{}), listOf(t, root, fixture.ListOptions{Revoked: revoked})
			older := listOf(t, root, fixture.ListOptions{ThisUpdate: now.Add(-time.Hour)})
			newer := listOf(t, root, fixture.ListOptions{ThisUpdate: now.Add(-time.Second), Revoked: revoked})
			ended := listOf(t, root, fixture.ListOptions{ThisUpdate: now.Add(-time.Hour), NextUpdate: now.Add(-time.Minute)})
			for name, c := range map[string]struct {
				lists  [][]byte
				reason policy.Reason // "" is valid
			}{
				"not revoked":              {[][]byte{good}, ""},
				"revoked":                  {[][]byte{bad}, policy.ReasonRevokedCertificate},
				"revoked since":            {[][]byte{older, newer}, policy.ReasonRevokedCertificate},
				"revoked since, reordered": {[][]byte{newer, older}, policy.ReasonRevokedCertificate},
				"an ended list":            {[][]byte{ended}, policy.ReasonRevocationUnknown},
				"an ended list and a new":  {[][]byte{ended, good}, ""},
				"a stranger's beside it":   {[][]byte{listOf(t, stranger, fixture.ListOptions{}), good}, ""},
				"another key's beside it":  {[][]byte{listOf(t, twin, fixture.ListOptions{ThisUpdate: now, Revoked: revoked}), good}, ""},
			} {
				t.Run(name, func(t *testing.T) {
					asked := trusting(root.Chain[0])
					asked.Revocation, asked.RevocationLists = silent{t}, lists(t, c.lists...)
					finding := check(t, asked, img, e)
					if c.reason == "" {
						require.Equal(t, policy.Valid, finding.Result(), finding.Message)
						return
					}
					requireDenied(t, c.reason, finding)
				})
			}
		})
	}
}

func TestAListThatIsNotAboutACertificateSaysNothingOfIt(t *testing.T) {
	r := responder(t)
	root := authority(t, "root", fixture.CertificateOptions{})
	r.For(root)
	leaf := signer(t, root, "release", fixture.CertificateOptions{Lists: r.List})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	asked := trusting(root.Chain[0])
	asked.Revocation = http.DefaultTransport
	asked.RevocationLists = lists(t, listOf(t, authority(t, "stranger", fixture.CertificateOptions{}), fixture.ListOptions{}))
	r.Revoke(leaf.Chain[0])
	requireDenied(t, policy.ReasonRevokedCertificate, check(t, asked, img, e))
	require.NotZero(t, r.Asked(), "the network answers what no list does")
}

// Whoever names the list in a certificate could have it judged by another certificate's.
func TestEvidenceCannotNameAListItself(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	issuing, err := root.IssueAuthority("issuing", fixture.CertificateOptions{})
	require.NoError(t, err)
	leaf := signer(t, issuing, "release", fixture.CertificateOptions{Lists: "landwaiter-list:1"})
	img := anImage(t, "image")
	asked := trusting(root.Chain[0])
	asked.Revocation, asked.RevocationLists = silent{t}, lists(t, listOf(t, root, fixture.ListOptions{}))
	finding := check(t, asked, img, signed(t, img, leaf, fixture.NotationOptions{}))
	requireDenied(t, policy.ReasonRevocationUnknown, finding)
	require.NotEqual(t, notation.Permissive, asked.Level)
}
