package notation_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

// serving answers each request with the same content, which is in memory as what was fetched before.
type serving struct{ content []byte }

func (s serving) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: inMemory{bytes.NewReader(s.content), s.content}, ContentLength: int64(len(s.content)), Request: r}, nil
}

type inMemory struct {
	*bytes.Reader
	content []byte
}

func (inMemory) Close() error   { return nil }
func (m inMemory) Held() []byte { return m.content }

// largeList is a list of so many entries, and of some certificates: 310,000 take 11.5 MB.
func largeList(t testing.TB, a *fixture.Authority, entries int, revoked ...*x509.Certificate) []byte {
	t.Helper()
	now := time.Now()
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now.Add(-time.Minute), NextUpdate: now.Add(time.Hour)}
	number := new(big.Int).Lsh(big.NewInt(1), 120)
	for range entries {
		number = new(big.Int).Add(number, big.NewInt(1))
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: number, RevocationTime: now})
	}
	for _, c := range revoked {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: now})
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, a.Chain[0], a.Key)
	require.NoError(t, err)
	return der
}

// Each certificate of a chain names its lists, and all of them are asked for at the same time.
func TestALargeListIsNotParsedForEachCertificateOfAChain(t *testing.T) {
	lists := fixture.CertificateOptions{Lists: "http://lists.example.com/all.crl"}
	root := authority(t, "root", fixture.CertificateOptions{})
	at := root
	for i := range 7 {
		next, err := at.IssueAuthority(fmt.Sprintf("issuing %d", i), lists)
		require.NoError(t, err)
		at = next
	}
	leaf := signer(t, at, "release", lists)
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	asked := trusting(root.Chain[0])
	without := check(t, asked, img, e)
	require.Equal(t, policy.Valid, without.Result(), without.Message)
	asked.Revocation = serving{largeList(t, root, 310_000)}
	var finding policy.Finding
	took := memory.Allocated(func() { finding = check(t, asked, img, e) })
	requireDenied(t, policy.ReasonRevocationUnknown, finding)
	require.Less(t, took, 16<<20, "a list takes some 100 MiB once it is parsed")
	require.Contains(t, finding.Message, "have more than 64 MiB together")
}

// The list of an attack with 310,000 entries of one certificate took 11.5 MB for each signature that was checked.
func TestAListThatRepeatsOneEntryIsNotKept(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	content := largeList(t, root, 0, slices.Repeat([]*x509.Certificate{root.Chain[0]}, 310_000)...)
	var err error
	took := memory.Allocated(func() { _, err = notation.ReducedList(content, root.Chain[0].SerialNumber) })
	require.ErrorContains(t, err, "more than 64 KiB beside the entries of other certificates")
	require.Less(t, took, 1<<20)
}

func TestALargeListSaysWhichCertificateIsRevoked(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{Lists: "http://lists.example.com/all.crl"})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	asked := trusting(root.Chain[0])
	asked.Revocation = serving{largeList(t, root, 10_000)}
	require.Equal(t, policy.Valid, check(t, asked, img, e).Result())
	asked.Revocation = serving{largeList(t, root, 10_000, leaf.Chain[0])}
	requireDenied(t, policy.ReasonRevokedCertificate, check(t, asked, img, e))
	tampered := slices.Clone(largeList(t, root, 10_000))
	tampered[len(tampered)/2]++
	asked.Revocation = serving{tampered}
	requireDenied(t, policy.ReasonRevocationUnknown, check(t, asked, img, e))
}

func TestACertificateThatNamesManyPlacesIsNotChecked(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	img := anImage(t, "image")
	for name, options := range map[string]fixture.CertificateOptions{
		"lists":      {Lists: strings.TrimSuffix(strings.Repeat("http://lists.example.com/a.crl ", 5), " ")},
		"responders": {Responder: strings.TrimSuffix(strings.Repeat("http://ocsp.example.com ", 5), " ")},
	} {
		t.Run(name, func(t *testing.T) {
			asked := trusting(root.Chain[0])
			asked.Revocation = silent{t}
			requireDenied(t, policy.ReasonLimitExceeded, check(t, asked, img, signed(t, img, signer(t, root, "release", options), fixture.NotationOptions{})))
		})
	}
}

// madeList makes a list with entries and extensions.
func madeList(t testing.TB, a *fixture.Authority, number int64, extensions []pkix.Extension, entries ...x509.RevocationListEntry) []byte {
	t.Helper()
	now := time.Now()
	der, err := x509.CreateRevocationList(rand.Reader,
		&x509.RevocationList{Number: big.NewInt(number), ThisUpdate: now.Add(-time.Minute), NextUpdate: now.Add(time.Hour),
			ExtraExtensions: extensions, RevokedCertificateEntries: entries}, a.Chain[0], a.Key)
	require.NoError(t, err)
	return der
}

// byPath answers with the list of a path.
type byPath map[string][]byte

func (b byPath) RoundTrip(r *http.Request) (*http.Response, error) {
	content, ok := b[r.URL.Path]
	if !ok {
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(content)), Request: r}, nil
}

func TestListsAreJudgedWithTheirChangesAndReasons(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{Lists: "http://lists.example.com/base"})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	now := time.Now()
	entry := func(reason int, ago time.Duration) x509.RevocationListEntry {
		return x509.RevocationListEntry{SerialNumber: leaf.Chain[0].SerialNumber, RevocationTime: now.Add(-ago), ReasonCode: reason}
	}
	const hold, removed = 6, 8
	points := func(addresses ...string) []pkix.Extension {
		var all []asn1.RawValue
		for _, address := range addresses {
			all = append(all, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(address)})
		}
		type name struct {
			Full []asn1.RawValue `asn1:"tag:0,optional"`
		}
		type point struct {
			Name name `asn1:"tag:0,optional"`
		}
		value, err := asn1.Marshal([]point{{name{all}}})
		require.NoError(t, err)
		return []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 46}, Value: value}}
	}
	changes := func(base int64) []pkix.Extension {
		value, err := asn1.Marshal(big.NewInt(base))
		require.NoError(t, err)
		return []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: value}}
	}
	fresh := points("http://lists.example.com/none", "http://lists.example.com/changes")
	for name, c := range map[string]struct {
		lists  byPath
		reason policy.Reason
	}{
		"not on it":                 {byPath{"/base": madeList(t, root, 1, nil)}, ""},
		"on hold":                   {byPath{"/base": madeList(t, root, 1, nil, entry(hold, time.Hour))}, policy.ReasonRevokedCertificate},
		"on hold, and then no more": {byPath{"/base": madeList(t, root, 1, nil, entry(hold, time.Hour), entry(removed, time.Minute))}, ""},
		"revoked by a change": {byPath{"/base": madeList(t, root, 1, fresh), "/changes": madeList(t, root, 2, changes(1), entry(1, time.Minute))},
			policy.ReasonRevokedCertificate},
		"a change takes it " +
			"from the list": {byPath{"/base": madeList(t, root, 1, fresh, entry(hold, time.Hour)),
			"/changes": madeList(t, root, 2, changes(1), entry(removed, time.Minute))}, ""},
		"no change":                  {byPath{"/base": madeList(t, root, 1, fresh), "/changes": madeList(t, root, 2, changes(1))}, ""},
		"changes that are not there": {byPath{"/base": madeList(t, root, 1, fresh)}, policy.ReasonRevocationUnknown},
		"changes of a later list": {byPath{"/base": madeList(t, root, 1, fresh), "/changes": madeList(t, root, 3, changes(2))},
			policy.ReasonRevocationUnknown},
		"too many places of changes": {byPath{"/base": madeList(t, root, 1, points(strings.Split(strings.Repeat("http://lists.example.com/none ", 6), " ")...))},
			policy.ReasonRevocationUnknown},
		"a critical extension": {
			byPath{"/base": madeList(t, root, 1, []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}}})},
			policy.ReasonRevocationUnknown},
		"much beside " +
			"the entries": {byPath{"/base": madeList(t, root, 1, []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: make([]byte, 70<<10)}})},
			policy.ReasonRevocationUnknown},
		"not there": {byPath{}, policy.ReasonRevocationUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			asked := trusting(root.Chain[0])
			asked.Revocation = c.lists
			finding := check(t, asked, img, e)
			if c.reason == "" {
				require.Equal(t, policy.Valid, finding.Result(), finding.Message)
				return
			}
			requireDenied(t, c.reason, finding)
		})
	}
}

// A signature that was made before the key was lost stays valid, if somebody vouches for its time.
func TestACertificateThatBecameInvalidAfterTheSigningIsNotRevokedForIt(t *testing.T) {
	now := time.Now()
	root := authority(t, "root", fixture.CertificateOptions{NotBefore: now.AddDate(-1, 0, 0)})
	leaf := signer(t, root, "release",
		fixture.CertificateOptions{NotBefore: now.AddDate(0, -6, 0), NotAfter: now.AddDate(0, 6, 0), Lists: "http://lists.example.com/base"})
	invalidSince := func(at time.Time) byPath {
		value, err := asn1.MarshalWithParams(at.UTC(), "generalized")
		require.NoError(t, err)
		return byPath{
			"/base": madeList(t, root, 1, nil, x509.RevocationListEntry{SerialNumber: leaf.Chain[0].SerialNumber, RevocationTime: now.Add(-time.Minute), ReasonCode: 1,
				ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 24}, Value: value}}})}
	}
	img := anImage(t, "image")
	signedAt := now.AddDate(0, -3, 0).Truncate(time.Second)
	stamps := timestamps(t, "stamps", fixture.CertificateOptions{NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0)})
	stamps.Time = signedAt
	before, after := invalidSince(signedAt.AddDate(0, -1, 0)), invalidSince(signedAt.AddDate(0, 1, 0))
	authority := notation.Options{Name: "Verifier team-a/release", SigningAuthorities: root.Chain, TrustedIdentities: []string{"*"}}
	stamped := trusting(root.Chain[0])
	stamped.TimestampAuthorities = []*x509.Certificate{stamps.Root.Chain[0]}
	for name, c := range map[string]struct {
		trusts  notation.Options
		made    fixture.NotationOptions
		lists   byPath
		revoked bool
	}{
		"an authority signed before":        {authority, fixture.NotationOptions{SigningAuthority: true, SigningTime: signedAt}, after, false},
		"an authority signed after":         {authority, fixture.NotationOptions{SigningAuthority: true, SigningTime: signedAt}, before, true},
		"a timestamp from before":           {stamped, fixture.NotationOptions{Timestamps: stamps, SigningTime: signedAt}, after, false},
		"a timestamp from after":            {stamped, fixture.NotationOptions{Timestamps: stamps, SigningTime: signedAt}, before, true},
		"only the signer says that it was":  {trusting(root.Chain[0]), fixture.NotationOptions{SigningTime: signedAt}, after, true},
		"a timestamp that nobody asked for": {trusting(root.Chain[0]), fixture.NotationOptions{Timestamps: stamps, SigningTime: signedAt}, after, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.trusts.Revocation = c.lists
			finding := check(t, c.trusts, img, signed(t, img, leaf, c.made))
			if c.revoked {
				requireDenied(t, policy.ReasonRevokedCertificate, finding)
				return
			}
			require.Equal(t, policy.Valid, finding.Result(), finding.Message)
		})
	}
}

// What counts by the time of the caller ends with it.
func TestAProofHoldsUntilItsCertificatesOrItsSignatureEnd(t *testing.T) {
	now := time.Now()
	ends, expires := now.AddDate(0, 1, 0).Truncate(time.Second).UTC(), now.AddDate(0, 0, 7).Truncate(time.Second).UTC()
	root := authority(t, "root", fixture.CertificateOptions{NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(2, 0, 0)})
	leaf := signer(t, root, "release", fixture.CertificateOptions{NotBefore: now.AddDate(0, -6, 0), NotAfter: ends})
	stamps := timestamps(t, "stamps", fixture.CertificateOptions{NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0)})
	stamps.Time = now.Add(-time.Hour)
	img := anImage(t, "image")
	authority := notation.Options{Name: "Verifier team-a/release", SigningAuthorities: root.Chain, TrustedIdentities: []string{"*"}}
	stamped, permissive := trusting(root.Chain[0]), trusting(root.Chain[0])
	stamped.TimestampAuthorities, permissive.Level = []*x509.Certificate{stamps.Root.Chain[0]}, notation.Permissive
	for name, c := range map[string]struct {
		trusts notation.Options
		made   fixture.NotationOptions
		want   time.Time
	}{
		"a certificate":                      {trusting(root.Chain[0]), fixture.NotationOptions{}, ends},
		"a signature that expires":           {trusting(root.Chain[0]), fixture.NotationOptions{Expiry: expires}, expires},
		"a signature that expires later":     {trusting(root.Chain[0]), fixture.NotationOptions{Expiry: ends.AddDate(1, 0, 0)}, ends},
		"a timestamp":                        {stamped, fixture.NotationOptions{Timestamps: stamps}, time.Time{}},
		"a timestamp on one that expires":    {stamped, fixture.NotationOptions{Timestamps: stamps, Expiry: expires}, expires},
		"a signing authority":                {authority, fixture.NotationOptions{SigningAuthority: true}, time.Time{}},
		"a signing authority, which expires": {authority, fixture.NotationOptions{SigningAuthority: true, Expiry: expires}, expires},
		"nothing of it is enforced":          {permissive, fixture.NotationOptions{Expiry: expires}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			finding := check(t, c.trusts, img, signed(t, img, leaf, c.made))
			require.Equal(t, policy.Valid, finding.Result(), finding.Message)
			require.Equal(t, c.want.UTC(), finding.Until.UTC())
		})
	}
}

// FuzzReducedList holds what is read of a list against the standard library, which reads all of it, wherever both
// read it.
func FuzzReducedList(f *testing.F) {
	root := authority(f, "root", fixture.CertificateOptions{})
	for _, n := range []int64{0, 1, 5, 200, -1} {
		number := big.NewInt(n)
		f.Add(madeList(f, root, 1, nil, x509.RevocationListEntry{SerialNumber: big.NewInt(7), RevocationTime: time.Now()},
			x509.RevocationListEntry{SerialNumber: number, RevocationTime: time.Now(), ReasonCode: 1}), n)
	}
	f.Add(madeList(f, root, 1, nil), int64(1))
	f.Add([]byte{0x30, 0x80}, int64(1))
	f.Fuzz(func(t *testing.T, content []byte, serial int64) {
		short, err := notation.ReducedList(content, big.NewInt(serial))
		whole, wholeErr := x509.ParseRevocationList(content)
		if err != nil || wholeErr != nil {
			return // the standard library ignores what it does not expect in what is signed
		}
		require.Equal(t, whole.RawTBSRevocationList, short.RawTBSRevocationList)
		require.Equal(t, whole.Signature, short.Signature)
		require.Equal(t, whole.SignatureAlgorithm, short.SignatureAlgorithm)
		require.Equal(t, whole.RawIssuer, short.RawIssuer)
		require.Equal(t, [2]time.Time{whole.ThisUpdate, whole.NextUpdate}, [2]time.Time{short.ThisUpdate, short.NextUpdate})
		require.Equal(t, whole.Extensions, short.Extensions)
		want := slices.DeleteFunc(slices.Clone(whole.RevokedCertificateEntries), func(e x509.RevocationListEntry) bool {
			return e.SerialNumber.Cmp(big.NewInt(serial)) != 0
		})
		require.Equal(t, len(want), len(short.RevokedCertificateEntries))
		for i := range want {
			require.Equal(t, want[i].Raw, short.RevokedCertificateEntries[i].Raw)
		}
	})
}
