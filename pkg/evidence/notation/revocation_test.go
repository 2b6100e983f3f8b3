package notation_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ocsp"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// failing is a transport without answers.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// responder answers for an authority. how says where its certificates point.
func responder(t testing.TB) *fixture.Responder {
	t.Helper()
	r := fixture.NewResponder()
	t.Cleanup(r.Close)
	return r
}

func TestRevokedCertificatesAreNotTrusted(t *testing.T) {
	for how, options := range map[string]func(*fixture.Responder) fixture.CertificateOptions{
		"by OCSP": func(r *fixture.Responder) fixture.CertificateOptions {
			return fixture.CertificateOptions{Responder: r.OCSP}
		},
		"by a list": func(r *fixture.Responder) fixture.CertificateOptions {
			return fixture.CertificateOptions{Lists: r.List}
		},
		"by both": func(r *fixture.Responder) fixture.CertificateOptions {
			return fixture.CertificateOptions{Responder: r.OCSP, Lists: r.List}
		},
	} {
		t.Run(how, func(t *testing.T) {
			bothEnvelopes(t, func(t *testing.T, made fixture.NotationOptions) {
				r := responder(t)
				root := authority(t, "root", fixture.CertificateOptions{})
				r.For(root)
				leaf := signer(t, root, "release", options(r))
				img := anImage(t, "image")
				e := signed(t, img, leaf, made)
				asked := trusting(root.Chain[0])
				asked.Revocation = http.DefaultTransport
				require.Equal(t, policy.Valid, check(t, asked, img, e).Result())
				require.NotZero(t, r.Asked())

				r.Revoke(leaf.Chain[0])
				requireDenied(t, policy.ReasonRevokedCertificate, check(t, asked, img, e))

				asked.Level = notation.Permissive
				finding := check(t, asked, img, e)
				require.Equal(t, policy.Valid, finding.Result())
				require.Contains(t, finding.Message, "is revoked")
				asked.Overrides.Revocation = notation.Enforce
				requireDenied(t, policy.ReasonRevokedCertificate, check(t, asked, img, e))
				asked.Level, asked.Overrides.Revocation = notation.Strict, notation.Log
				require.Equal(t, policy.Valid, check(t, asked, img, e).Result())

				asked.Overrides.Revocation, asked.Revocation = notation.AsLevel, nil
				require.Equal(t, policy.Valid, check(t, asked, img, e).Result(), "revocation is not asked for")
			})
		})
	}
}

func TestRevokedIntermediatesAreNotTrusted(t *testing.T) {
	r := responder(t)
	root := authority(t, "root", fixture.CertificateOptions{})
	r.For(root)
	issuing, err := root.IssueAuthority("issuing", fixture.CertificateOptions{Lists: r.List})
	require.NoError(t, err)
	leaf := signer(t, issuing, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	asked := trusting(root.Chain[0])
	asked.Revocation = http.DefaultTransport
	require.Equal(t, policy.Valid, check(t, asked, img, e).Result())
	r.Revoke(issuing.Chain[0])
	finding := check(t, asked, img, e)
	requireDenied(t, policy.ReasonRevokedCertificate, finding)
	require.Contains(t, finding.Message, "CN=issuing")
}

func TestWhatIsNotKnownOfRevocationIsNotAPass(t *testing.T) {
	r := responder(t)
	root := authority(t, "root", fixture.CertificateOptions{})
	r.For(root)
	leaf := signer(t, root, "release", fixture.CertificateOptions{Responder: r.OCSP, Lists: r.List})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	asked := trusting(root.Chain[0])
	stranger := responder(t)
	stranger.For(authority(t, "stranger", fixture.CertificateOptions{}))
	for name, c := range map[string]struct {
		transport http.RoundTripper
		answer    http.HandlerFunc
		result    policy.Result
	}{
		"not there yet":         {failing{errors.New("try again")}, nil, policy.Unknown},
		"never to be asked":     {failing{verify.Permanent(policy.ReasonRevocationHostNotAllowed, errors.New("not on the list"))}, nil, policy.Invalid},
		"garbage":               {http.DefaultTransport, text("garbage"), policy.Invalid},
		"nothing":               {http.DefaultTransport, text(""), policy.Invalid},
		"an error":              {http.DefaultTransport, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, policy.Invalid},
		"signed by a stranger":  {http.DefaultTransport, stranger.ServeHTTP, policy.Invalid},
		"the responder says no": {http.DefaultTransport, text("0\x03\n\x01\x06"), policy.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			r.Answer(c.answer)
			asked.Revocation = c.transport
			finding := check(t, asked, img, e)
			require.Equal(t, c.result, finding.Result(), finding.Message)
			require.Equal(t, policy.ReasonRevocationUnknown, finding.Reason)
			require.Contains(t, finding.Message, "CN=release")
		})
	}
}

// replayed answers every question to a responder with one response, and asks for lists.
type replayed struct {
	responder string
	response  []byte
}

func (p replayed) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.String(), p.responder) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(p.response)), Request: r}, nil
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Responses travel over plain HTTP: whoever stands between has one from before the revocation.
func TestAResponseThatHasEndedCountsForNothing(t *testing.T) {
	r := responder(t)
	root := authority(t, "root", fixture.CertificateOptions{})
	r.For(root)
	img := anImage(t, "image")
	asked := trusting(root.Chain[0])
	for name, lists := range map[string]string{"with a list": r.List, "without one": ""} {
		leaf := signer(t, root, "release", fixture.CertificateOptions{Responder: r.OCSP, Lists: lists})
		e := signed(t, img, leaf, fixture.NotationOptions{})
		stale, err := ocsp.CreateResponse(root.Chain[0], root.Chain[0], ocsp.Response{Status: ocsp.Good, SerialNumber: leaf.Chain[0].SerialNumber,
			ThisUpdate: time.Now().Add(-48 * time.Hour), NextUpdate: time.Now().Add(-24 * time.Hour)}, root.Key)
		require.NoError(t, err)
		asked.Revocation = replayed{r.OCSP, stale}
		if lists == "" {
			finding := check(t, asked, img, e)
			requireDenied(t, policy.ReasonRevocationUnknown, finding)
			continue
		}
		require.Equal(t, policy.Valid, check(t, asked, img, e).Result(), name)
		r.Revoke(leaf.Chain[0])
		requireDenied(t, policy.ReasonRevokedCertificate, check(t, asked, img, e))
	}
}

func text(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }
}

// A certificate of a timestamp authority can be revoked as well.
func TestRevokedTimestampAuthoritiesAreNotTrusted(t *testing.T) {
	r := responder(t)
	now := time.Now()
	root := authority(t, "root", fixture.CertificateOptions{NotBefore: now.AddDate(-2, 0, 0)})
	then := now.AddDate(-1, 0, 0)
	expired := signer(t, root, "release", fixture.CertificateOptions{NotBefore: then.Add(-time.Hour), NotAfter: then.Add(time.Hour)})
	stamps := timestamps(t, "stamps", fixture.CertificateOptions{Lists: r.List, Responder: r.OCSP, NotAfter: now.AddDate(1, 0, 0)})
	stamps.Time = then
	r.For(stamps.Root)
	img := anImage(t, "image")
	e := signed(t, img, expired, fixture.NotationOptions{Timestamps: stamps})
	asked := trusting(root.Chain[0])
	asked.TimestampAuthorities = []*x509.Certificate{stamps.Root.Chain[0]}
	asked.Revocation = http.DefaultTransport
	require.Equal(t, policy.Valid, check(t, asked, img, e).Result())

	asked.Revocation = failing{errors.New("try again")}
	finding := check(t, asked, img, e)
	require.Equal(t, policy.Unknown, finding.Result())
	require.Equal(t, policy.ReasonRevocationUnknown, finding.Reason)

	r.Revoke(stamps.Signer().Chain[0])
	asked.Revocation = http.DefaultTransport
	requireDenied(t, policy.ReasonRevokedCertificate, check(t, asked, img, e))
	asked.Overrides.Revocation = notation.Log
	require.Equal(t, policy.Valid, check(t, asked, img, e).Result())
	asked.Overrides.Revocation, asked.Revocation = notation.AsLevel, nil
	require.Equal(t, policy.Valid, check(t, asked, img, e).Result())
}

// The owner of an untrusted chain chooses the addresses in it.
func TestStrangersCertificatesCauseNoRequest(t *testing.T) {
	r := responder(t)
	root, stranger := authority(t, "root", fixture.CertificateOptions{}), authority(t, "stranger", fixture.CertificateOptions{})
	leaf := signer(t, stranger, "release", fixture.CertificateOptions{Responder: r.OCSP, Lists: r.List})
	img := anImage(t, "image")
	for _, level := range []notation.Level{notation.Strict, notation.Permissive} {
		asked := trusting(root.Chain[0])
		asked.Revocation, asked.Level = http.DefaultTransport, level
		requireDenied(t, policy.ReasonUntrustedCertificate, check(t, asked, img, signed(t, img, leaf, fixture.NotationOptions{})))
	}
	require.Zero(t, r.Asked())
}
