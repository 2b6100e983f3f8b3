package trust_test

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// point is an issuing distribution point (RFC 5280 section 5.2.5).
type point struct {
	Point         asn1.RawValue  `asn1:"optional"`
	UserOnly      bool           `asn1:"optional,tag:1"`
	AuthorityOnly bool           `asn1:"optional,tag:2"`
	Reasons       asn1.BitString `asn1:"optional,tag:3"`
	Indirect      bool           `asn1:"optional,tag:4"`
	AttributeOnly bool           `asn1:"optional,tag:5"`
}

// address is the name of a distribution point: a full name with one address.
func address(text string) asn1.RawValue {
	name, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(text)})
	if err != nil {
		panic(err)
	}
	full, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: name})
	if err != nil {
		panic(err)
	}
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: full}
}

func extension(t *testing.T, p point) []pkix.Extension {
	t.Helper()
	value, err := asn1.Marshal(p)
	require.NoError(t, err)
	return []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: value}}
}

func TestAListIsAboutTheCertificatesOfItsIssuerAndScope(t *testing.T) {
	ca, err := fixture.NewAuthority("ca")
	require.NoError(t, err)
	twin, err := fixture.NewAuthority("ca") // the same name, another key
	require.NoError(t, err)
	inner, err := ca.IssueAuthority("inner", fixture.CertificateOptions{Lists: "http://crl.example.com/b"})
	require.NoError(t, err)
	leaf, err := ca.IssueServer("example.com")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		by          *fixture.Authority
		extensions  []pkix.Extension
		leaf, inner bool
	}{
		"a complete list":                  {ca, nil, true, true},
		"another key's":                    {twin, nil, false, false},
		"an issuer's below":                {inner, nil, false, false},
		"of users":                         {ca, extension(t, point{UserOnly: true}), true, false},
		"of authorities":                   {ca, extension(t, point{AuthorityOnly: true}), false, true},
		"of an address that it names":      {ca, extension(t, point{Point: address("http://crl.example.com/b")}), false, true},
		"of an address that nobody names":  {ca, extension(t, point{Point: address("http://crl.example.com/c")}), false, false},
		"of an address, and of users only": {ca, extension(t, point{Point: address("http://crl.example.com/b"), UserOnly: true}), false, false},
	} {
		text, err := c.by.RevocationListPEM(fixture.ListOptions{Extensions: c.extensions})
		require.NoError(t, err, name)
		parsed, err := trust.ParseRevocationLists(text)
		require.NoError(t, err, name)
		require.Equal(t, c.leaf, parsed[0].About(leaf.Chain[0], ca.Chain[0]), "%s: leaf", name)
		require.Equal(t, c.inner, parsed[0].About(inner.Chain[0], ca.Chain[0]), "%s: inner", name)
	}
}

func TestListsThatAreNotCompleteAreRefused(t *testing.T) {
	ca, err := fixture.NewAuthority("ca")
	require.NoError(t, err)
	list := func(options fixture.ListOptions) string {
		text, err := ca.RevocationListPEM(options)
		require.NoError(t, err)
		return string(text)
	}
	good := list(fixture.ListOptions{})
	_, err = trust.ParseRevocationLists([]byte("# of the CA\n" + good + good))
	require.NoError(t, err)
	for name, c := range map[string]struct{ text, says string }{
		"nothing":       {"", "found nothing"},
		"a certificate": {string(ca.CertificatePEM), "found a \"CERTIFICATE\" block"},
		"a private key": {string(ca.KeyPEM), "private key"},
		"rubbish":       {"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "damaged"},
		"changes only": {
			list(fixture.ListOptions{Extensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}}), "delta list"},
		"some reasons": {list(fixture.ListOptions{Extensions: extension(t, point{Reasons: asn1.BitString{Bytes: []byte{0x40}, BitLength: 2}})}),
			"some reasons"},
		"other issuers": {list(fixture.ListOptions{Extensions: extension(t, point{Indirect: true})}), "other issuers"},
		"attributes":    {list(fixture.ListOptions{Extensions: extension(t, point{AttributeOnly: true})}), "attribute certificates"},
		"a point of no name": {
			list(fixture.ListOptions{Extensions: extension(t, point{Point: asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true}})}),
			"use the complete one"},
		"a damaged extension": {list(fixture.ListOptions{Extensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Value: []byte{1}}}}),
			"use the complete one"},
		"too many": {strings.Repeat(good, trust.MaxLists+1), "more than 16"},
	} {
		_, err := trust.ParseRevocationLists([]byte(c.text))
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestListsAreCarriedAsPEMAndNotAfterTheirEnd(t *testing.T) {
	ca, err := fixture.NewAuthority("ca")
	require.NoError(t, err)
	now := time.Now()
	text, err := ca.RevocationListPEM(fixture.ListOptions{ThisUpdate: now.Add(-time.Hour), NextUpdate: now.Add(time.Hour)})
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	for name, content := range map[string][]byte{"PEM": text, "DER": block.Bytes, "with a comment": append([]byte("# list\n"), text...)} {
		encoded, err := trust.EncodeRevocationLists(content, now)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(text, encoded), name)
	}
	_, err = trust.EncodeRevocationLists(text, now.Add(2*time.Hour))
	require.ErrorContains(t, err, "expired at")
	_, err = trust.EncodeRevocationLists([]byte("x"), now)
	require.ErrorContains(t, err, "damaged")
	parsed, err := trust.ParseRevocationLists(text)
	require.NoError(t, err)
	end := trust.ListEnds(parsed)[0]
	require.Equal(t, time.Hour, end.Notice, "a quarter of two hours is too short")
	require.True(t, end.Due(now.Add(time.Minute)))
}

func FuzzParseRevocationLists(f *testing.F) {
	ca, err := fixture.NewAuthority("ca")
	require.NoError(f, err)
	for _, p := range []point{{}, {UserOnly: true}, {Point: address("http://x")}} {
		value, err := asn1.Marshal(p)
		require.NoError(f, err)
		text, err := ca.RevocationListPEM(fixture.ListOptions{Extensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Value: value}}})
		require.NoError(f, err)
		block, _ := pem.Decode(text)
		f.Add(block.Bytes)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		lists, err := trust.ParseRevocationLists(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
		require.Equal(t, err != nil, len(lists) == 0)
		for _, list := range lists {
			require.False(t, list.NextUpdate.IsZero())
			list.About(ca.Chain[0], ca.Chain[0])
		}
	})
}
