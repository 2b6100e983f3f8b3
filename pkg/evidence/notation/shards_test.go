package notation_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/cryptobyte"
	der "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// beingAsked is the error of a responder that has not answered yet.
type beingAsked struct{ error }

func (beingAsked) Pending() bool { return true }

// addresses answers for each address what it has, or its error.
type addresses map[string]any

func (a addresses) RoundTrip(r *http.Request) (*http.Response, error) {
	switch answer := a[r.URL.String()].(type) {
	case []byte:
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer)), Request: r}, nil
	case error:
		return nil, answer
	}
	if of, ok := a["OCSP"].(error); ok {
		return nil, of
	}
	return http.DefaultTransport.RoundTrip(r)
}

// point is an issuing distribution point (RFC 5280 section 5.2.5) with an address, or none, and flags by their tags.
func point(t *testing.T, address string, flags ...uint8) pkix.Extension {
	t.Helper()
	var b cryptobyte.Builder
	b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
		if address != "" {
			b.AddASN1(der.Tag(0).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) {
				b.AddASN1(der.Tag(0).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) {
					b.AddASN1(der.Tag(6).ContextSpecific(), func(b *cryptobyte.Builder) { b.AddBytes([]byte(address)) })
				})
			})
		}
		for _, tag := range flags {
			b.AddASN1(der.Tag(tag).ContextSpecific(), func(b *cryptobyte.Builder) { b.AddBytes([]byte{0xff}) })
		}
	})
	value, err := b.Bytes()
	require.NoError(t, err)
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: value}
}

// shard is a list with extensions.
func shard(t *testing.T, a *fixture.Authority, until time.Time, revoked []*x509.Certificate, extensions ...pkix.Extension) []byte {
	t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(time.Now().UnixNano()), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: until,
		ExtraExtensions: extensions}
	for _, c := range revoked {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: time.Now()})
	}
	text, err := x509.CreateRevocationList(rand.Reader, template, a.Chain[0], a.Key)
	require.NoError(t, err)
	return text
}

// Issuers split their lists. All parts have the same signer, and travel over plain HTTP: whoever stands between can send
// the one in which a revoked certificate cannot be.
func TestAListOfAnotherDistributionPointSaysNothing(t *testing.T) {
	const at = "http://lists.example.com/a.crl"
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{Lists: at})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	hour := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		list   []byte
		result policy.Result
		says   string
	}{
		"for all of its issuer":    {shard(t, root, hour, nil), policy.Valid, ""},
		"for this point":           {shard(t, root, hour, nil, point(t, at)), policy.Valid, ""},
		"for users":                {shard(t, root, hour, nil, point(t, "", 1)), policy.Valid, ""},
		"for this point and users": {shard(t, root, hour, nil, point(t, at, 1)), policy.Valid, ""},
		"it is revoked there":      {shard(t, root, hour, []*x509.Certificate{leaf.Chain[0]}, point(t, at)), policy.Invalid, "is revoked"},
		"for another point": {shard(t, root, hour, nil, point(t, "http://lists.example.com/b.crl")), policy.Invalid,
			"is of another issuer or distribution point"},
		"for authorities": {shard(t, root, hour, nil, point(t, "", 2)), policy.Invalid, "or for other certificates"},
		"for some reasons": {
			shard(t, root, hour, nil, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: []byte{0x30, 4, 0x83, 2, 7, 0x80}}), policy.Invalid,
			"is for some reasons, other issuers or attribute certificates only"},
		"for other issuers": {shard(t, root, hour, nil, point(t, "", 4)), policy.Invalid, "it is not known whether"},
		"for attributes":    {shard(t, root, hour, nil, point(t, "", 5)), policy.Invalid, "it is not known whether"},
		"a point that is damaged": {shard(t, root, hour, nil, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: []byte{0x30, 9}}),
			policy.Invalid, "it is not known whether"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := trusting(root.Chain[0])
			asked.Revocation = addresses{at: c.list}
			finding := check(t, asked, img, e)
			require.Equal(t, c.result, finding.Result(), finding.Message)
			require.Contains(t, finding.Message, c.says)
		})
	}
}

// A list of changes is for the same certificates as the list that it changes (RFC 5280 section 6.3.3).
func TestChangesOfAnotherListSayNothing(t *testing.T) {
	const at, changes, other = "http://lists.example.com/a.crl", "http://lists.example.com/a-changes.crl", "http://lists.example.com/b.crl"
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{Lists: at})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	hour := time.Now().Add(time.Hour)
	base := shard(t, root, hour, nil, point(t, at), freshest(t, changes))
	parsed, err := x509.ParseRevocationList(base)
	require.NoError(t, err)
	number, err := asn1.Marshal(parsed.Number)
	require.NoError(t, err)
	indicator := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: number}
	soon := time.Now().Add(time.Minute).Truncate(time.Second)
	for name, c := range map[string]struct {
		delta  []byte
		result policy.Result
	}{
		"of the same point": {shard(t, root, soon, nil, indicator, point(t, at)), policy.Valid},
		"of another point":  {shard(t, root, soon, nil, indicator, point(t, other)), policy.Invalid},
		"of no point":       {shard(t, root, soon, nil, indicator), policy.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			asked := trusting(root.Chain[0])
			asked.Revocation = addresses{at: base, changes: c.delta}
			finding := check(t, asked, img, e)
			require.Equal(t, c.result, finding.Result(), finding.Message)
			if c.result == policy.Valid {
				require.Equal(t, soon.UTC(), finding.Until.UTC())
			}
		})
	}
}

// freshest names a list of changes (RFC 5280 section 5.2.6).
func freshest(t *testing.T, address string) pkix.Extension {
	t.Helper()
	var b cryptobyte.Builder
	b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(der.Tag(0).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) {
				b.AddASN1(der.Tag(0).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) {
					b.AddASN1(der.Tag(6).ContextSpecific(), func(b *cryptobyte.Builder) { b.AddBytes([]byte(address)) })
				})
			})
		})
	})
	value, err := b.Bytes()
	require.NoError(t, err)
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 46}, Value: value}
}

// A list is what counts if a responder fails, not while it is being asked: the list is kept for all certificates of an
// issuer, so the first signature of each new one would be judged by it alone.
func TestAListDoesNotCountWhileTheResponderIsBeingAsked(t *testing.T) {
	r := responder(t)
	root := authority(t, "root", fixture.CertificateOptions{})
	r.For(root)
	leaf := signer(t, root, "release", fixture.CertificateOptions{Responder: r.OCSP, Lists: r.List})
	published := shard(t, root, time.Now().Add(time.Hour), nil)
	r.Revoke(leaf.Chain[0])
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	for name, c := range map[string]struct {
		ocsp   any
		result policy.Result
		reason policy.Reason
	}{
		"it is being asked": {fmt.Errorf("responder: %w", beingAsked{errors.New("try again")}), policy.Unknown, policy.ReasonRevocationUnknown},
		"it has answered":   {nil, policy.Invalid, policy.ReasonRevokedCertificate},
		"it fails":          {errors.New("it answered with status 500"), policy.Valid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := trusting(root.Chain[0])
			asked.Revocation = addresses{r.List: published, "OCSP": c.ocsp}
			finding := check(t, asked, img, e)
			require.Equal(t, c.result, finding.Result(), finding.Message)
			require.Equal(t, c.reason, finding.Reason)
		})
	}
}

func TestAProofHoldsUntilWhatSaysThatNothingIsRevokedEnds(t *testing.T) {
	const at = "http://lists.example.com/a.crl"
	r := responder(t)
	root := authority(t, "root", fixture.CertificateOptions{})
	r.For(root)
	img := anImage(t, "image")
	soon := time.Now().Add(2 * time.Minute).Truncate(time.Second)
	listed, answered := signer(t, root, "listed", fixture.CertificateOptions{Lists: at}),
		signer(t, root, "answered", fixture.CertificateOptions{Responder: r.OCSP})
	asked := trusting(root.Chain[0])
	asked.Revocation = addresses{at: shard(t, root, soon, nil)}

	finding := check(t, asked, img, signed(t, img, listed, fixture.NotationOptions{}))
	require.Equal(t, policy.Valid, finding.Result(), finding.Message)
	require.Equal(t, soon.UTC(), finding.Until.UTC(), "of a list")

	finding = check(t, asked, img, signed(t, img, answered, fixture.NotationOptions{}))
	require.Equal(t, policy.Valid, finding.Result(), finding.Message)
	require.WithinDuration(t, time.Now().Add(time.Hour), finding.Until, time.Minute, "of a responder")

	now := time.Now()
	stamps := timestamps(t, "stamps", fixture.CertificateOptions{Lists: at, NotAfter: now.AddDate(1, 0, 0)})
	plain := signer(t, root, "plain", fixture.CertificateOptions{})
	asked.TimestampAuthorities = stamps.Root.Chain[:1]
	asked.Revocation = addresses{at: shard(t, stamps.Root, soon, nil)}
	finding = check(t, asked, img, signed(t, img, plain, fixture.NotationOptions{Timestamps: stamps}))
	require.Equal(t, policy.Valid, finding.Result(), finding.Message)
	require.Equal(t, soon.UTC(), finding.Until.UTC(), "of a timestamp authority's list")
}
