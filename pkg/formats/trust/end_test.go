package trust_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const day = 24 * time.Hour

func TestAnEndIsDueInsideItsNoticeAndUntilSomethingTakesItsPlace(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		end trust.End
		due bool
	}{
		"far away":                        {trust.End{At: now.Add(31 * day)}, false},
		"at the notice":                   {trust.End{At: now.Add(30 * day)}, true},
		"tomorrow":                        {trust.End{At: now.Add(day)}, true},
		"passed":                          {trust.End{At: now.Add(-day)}, true},
		"passed years ago":                {trust.End{At: now.Add(-1000 * day)}, true},
		"passed, with a successor":        {trust.End{At: now.Add(-day), Successor: now.Add(day)}, false},
		"passed, and so has its follower": {trust.End{At: now.Add(-2 * day), Successor: now.Add(-day)}, true},
		"soon, with a successor":          {trust.End{At: now.Add(day), Successor: now.Add(100 * day)}, true},
		"outside its own notice":          {trust.End{At: now.Add(20 * day), Notice: 10 * day}, false},
		"inside its own notice":           {trust.End{At: now.Add(9 * day), Notice: 10 * day}, true},
	} {
		require.Equal(t, c.due, c.end.Due(now), name)
	}
}

func certificate(t *testing.T, name string, notAfter time.Time) *x509.Certificate {
	t.Helper()
	authority, err := fixture.NewAuthorityWith(name, fixture.CertificateOptions{NotBefore: notAfter.Add(-1000 * day), NotAfter: notAfter})
	require.NoError(t, err)
	return authority.Chain[0]
}

func TestAPEMTextEndsWithItsCertificates(t *testing.T) {
	at := time.Now().Add(day).UTC().Truncate(time.Second)
	authority, err := fixture.NewAuthorityWith("ca", fixture.CertificateOptions{NotAfter: at})
	require.NoError(t, err)
	ends := trust.PEMEnds(append(append([]byte(nil), authority.KeyPEM...), authority.CertificatePEM...))
	require.Len(t, ends, 1)
	require.Equal(t, at, ends[0].At)
	require.Contains(t, ends[0].Part, "ca")
	require.Empty(t, trust.PEMEnds(authority.KeyPEM))
	require.Empty(t, trust.PEMEnds(nil))
}

// A root keeps the authorities and logs that it has retired, for old signatures. They are
// no reason to warn: the public-good root has had some since 2022.
func TestOnlyTheLastOfEachAuthorityAndKindOfLogEnds(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	far := certificate(t, "far", now.Add(1000*day))
	near := certificate(t, "near", now.Add(20*day))
	authority := func(uri string, certificate *x509.Certificate, end time.Time) root.CertificateAuthority {
		return &root.FulcioCertificateAuthority{URI: uri, Root: certificate, ValidityPeriodEnd: end}
	}
	log := func(end time.Time) *root.TransparencyLog { return &root.TransparencyLog{ValidityPeriodEnd: end} }
	for name, c := range map[string]struct {
		authorities []root.CertificateAuthority
		logs        map[string]*root.TransparencyLog
		due         []string
	}{
		"one authority that lasts": {authorities: []root.CertificateAuthority{authority("a", far, time.Time{})}},
		"a retired authority beside " +
			"its successor": {authorities: []root.CertificateAuthority{authority("a", far, now.Add(-day)), authority("a", far, time.Time{})}},
		"a retired authority with " +
			"another address": {authorities: []root.CertificateAuthority{authority("a", far, now.Add(-day)), authority("b", far, time.Time{})}},
		"only a retired authority":                  {authorities: []root.CertificateAuthority{authority("a", far, now.Add(-day))}, due: []string{`CA "a"`}},
		"a certificate that ends before its period": {authorities: []root.CertificateAuthority{authority("a", near, now.Add(500*day))}, due: []string{`CA "a"`}},
		"one of two parties " +
			"that ends soon": {authorities: []root.CertificateAuthority{authority("a", near, time.Time{}), authority("b", far, time.Time{})}, due: []string{`CA "a"`}},
		"a log that ends soon beside one that goes on": {logs: map[string]*root.TransparencyLog{"1": log(now.Add(day)), "2": log(time.Time{})}},
		"the last log ends soon": {logs: map[string]*root.TransparencyLog{"1": log(now.Add(-day)), "2": log(now.Add(day))},
			due: []string{"last transparency log"}},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, c.authorities, nil, nil, c.logs)
			require.NoError(t, err)
			var due []string
			for _, end := range trust.RootEnds(made) {
				if end.Due(now) {
					due = append(due, end.Part)
				}
			}
			require.Equal(t, c.due, due)
		})
	}
}

func TestTimestampAuthoritiesEndWithTheirLeaf(t *testing.T) {
	now := time.Now()
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, nil, nil, []root.TimestampingAuthority{
		&root.SigstoreTimestampingAuthority{URI: "https://tsa.example.com", Root: certificate(t, "far", now.Add(1000*day)),
			Leaf: certificate(t, "near", now.Add(20*day))},
	}, nil)
	require.NoError(t, err)
	ends := trust.RootEnds(made)
	require.Len(t, ends, 1)
	require.Equal(t, `timestamp authority "https://tsa.example.com"`, ends[0].Part)
	require.True(t, ends[0].Due(now))
}
