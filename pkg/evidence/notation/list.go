package notation

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/notaryproject/notation-core-go/revocation/crl"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
)

// fetchedLists fetches the revocation lists that the certificates of one chain name. The library's own fetcher
// parses each list completely, in parallel for every certificate that names it: a list of 11.5 MB takes 100 MiB
// and a second. This one scans a list for the certificates of the chain, and parses no other entries.
type fetchedLists struct {
	next    http.RoundTripper
	serials [][]byte // of the certificates, as DER integers without their header
	told    *recorder

	mu      sync.Mutex // one list is scanned at a time
	scanned int        // bytes, over all lists
	found   map[string]fetchedList
}

// fetchedList is a list by its address, with the expiry of it or its delta list.
type fetchedList struct {
	*trust.RevocationList
	until time.Time
}

func newFetchedLists(chain []*x509.Certificate, next http.RoundTripper, told *recorder) *fetchedLists {
	f := &fetchedLists{next: next, told: told, found: map[string]fetchedList{}}
	for _, certificate := range chain {
		var b cryptobyte.Builder
		b.AddASN1BigInt(certificate.SerialNumber)
		encoded := cryptobyte.String(b.BytesOrPanic()) // no builder fails for an integer
		var serial cryptobyte.String
		if encoded.ReadASN1(&serial, asn1.INTEGER) {
			f.serials = append(f.serials, serial)
		}
	}
	return f
}

// Fetch implements [crl.Fetcher]. Its lists only have the entries of the chain's certificates, but are signed
// as a whole.
func (f *fetchedLists) Fetch(ctx context.Context, address string) (*crl.Bundle, error) {
	base, err := f.list(ctx, address)
	if err != nil {
		return nil, err
	}
	bundle := &crl.Bundle{BaseCRL: base}
	if bundle.DeltaCRL, err = f.changes(ctx, base); err != nil {
		return nil, err
	}
	about, err := trust.NewRevocationList(base)
	if err != nil {
		return nil, f.told.failed(verify.Permanent(policy.ReasonRevocationUnknown, err))
	}
	until := base.NextUpdate
	if bundle.DeltaCRL != nil {
		if !bytes.Equal(extension(bundle.DeltaCRL, oidDistributionPoint), extension(base, oidDistributionPoint)) {
			// RFC 5280 section 6.3.3 (c) (2)
			return nil,
				f.told.failed(verify.Permanent(policy.ReasonRevocationUnknown,
					errors.New("the list of changes is for another distribution point than its revocation list")))
		}
		until = policy.Sooner(until, bundle.DeltaCRL.NextUpdate)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found[address] = fetchedList{about, until}
	return bundle, nil
}

// changes fetches the delta list that a list names, nil if it names none.
func (f *fetchedLists) changes(ctx context.Context, base *x509.RevocationList) (delta *x509.RevocationList, err error) {
	value := extension(base, oidFreshest)
	if value == nil {
		return nil, nil
	}
	// "The same syntax is used for this extension and the cRLDistributionPoints extension" (RFC 5280 section
	// 4.2.1.15). All addresses lead to the same list.
	addresses, err := distributionPoints(value)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if delta, err = f.list(ctx, address); err == nil {
			return delta, nil
		}
	}
	return nil, err
}

// extension returns the value of an extension of a list, nil if it has none.
func extension(list *x509.RevocationList, id string) []byte {
	i := slices.IndexFunc(list.Extensions, func(e pkix.Extension) bool { return e.Id.String() == id })
	if i < 0 {
		return nil
	}
	return list.Extensions[i].Value
}

// about returns the expiry of the lists that say that a certificate is not revoked. It fails if one of them does
// not cover that certificate: an attacker on the network could send the list of another distribution point, whose
// signature is also valid ("verify that the distribution point name in the IDP matches", RFC 5280 section 6.3.3
// (b) (2) (i)). The library does not check this.
func (f *fetchedLists) about(certificate, issuer *x509.Certificate) (until time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, address := range certificate.CRLDistributionPoints {
		list, there := f.found[address]
		if !there || !list.About(certificate, issuer) {
			return time.Time{},
				fmt.Errorf("the revocation list at %.100q is of another issuer or distribution point, or for other certificates", address)
		}
		until = policy.Sooner(until, list.until)
	}
	return until, nil
}

// list fetches one list.
func (f *fetchedLists) list(ctx context.Context, address string) (*x509.RevocationList, error) {
	if parsed, err := url.Parse(address); err != nil || parsed.Scheme != "http" {
		return nil,
			f.told.failed(verify.Permanent(policy.ReasonRevocationUnknown, fmt.Errorf("the revocation list %.100q has no http address", address)))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for a revocation list: %w", err)
	}
	response, err := f.next.RoundTrip(request)
	if err != nil {
		return nil, f.told.failed(err)
	}
	defer func() { _ = response.Body.Close() }() // it is in memory
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer for a revocation list has the status %d", response.StatusCode)
	}
	content, err := contentOf(response.Body, maxList)
	if err != nil {
		return nil, fmt.Errorf("read a revocation list: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scanned += len(content); f.scanned > maxListsScanned {
		return nil,
			f.told.failed(verify.Permanent(policy.ReasonLimitExceeded,
				fmt.Errorf("the revocation lists of its chain have more than %d MiB together", maxListsScanned>>20)))
	}
	short, err := reduced(content, f.serials, func() error { return verify.Step(ctx) })
	if ctx.Err() != nil {
		return nil, f.told.failed(ctx.Err())
	}
	return short, err
}

// contentOf reads a body. It does not copy a body that is already in memory.
func contentOf(body io.Reader, most int) ([]byte, error) {
	if held, ok := body.(interface{ Held() []byte }); ok {
		if len(held.Held()) > most {
			return nil, fmt.Errorf("it is larger than %d bytes", most)
		}
		return held.Held(), nil
	}
	content, err := io.ReadAll(io.LimitReader(body, int64(most)+1))
	if err == nil && len(content) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return content, err
}

// Extensions of lists (RFC 5280 sections 5.2.5 and 5.2.6): the distribution point of a list, and the location of its
// delta list.
const (
	oidDistributionPoint = "2.5.29.28"
	oidFreshest          = "2.5.29.46"
)

var errDamagedList = errors.New("the revocation list is damaged")

// reduced parses a list (RFC 5280 section 5.1) with only the entries of some serial numbers. Its signature
// covers the whole list. Between entries, it yields to others.
func reduced(content []byte, serials [][]byte, step func() error) (*x509.RevocationList, error) {
	input := cryptobyte.String(content)
	var list, signed, algorithm, signature cryptobyte.String
	// As the standard library does, it ignores what comes after a list.
	if !input.ReadASN1(&list, asn1.SEQUENCE) || !list.ReadASN1Element(&signed, asn1.SEQUENCE) ||
		!list.ReadASN1Element(&algorithm, asn1.SEQUENCE) || !list.ReadASN1Element(&signature, asn1.BIT_STRING) {
		return nil, errDamagedList
	}
	before, entries, after, there, err := entriesOf(signed)
	if err != nil {
		return nil, err
	}
	kept, err := matching(entries, serials, step)
	if err != nil {
		return nil, err
	}
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddBytes(before)
			if there {
				b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddBytes(kept) })
			}
			b.AddBytes(after)
		})
		b.AddBytes(algorithm)
		b.AddBytes(signature)
	})
	short, err := b.Bytes()
	if err != nil {
		return nil, errDamagedList
	}
	if len(short) > maxListRest {
		return nil, largeRest()
	}
	parsed, err := x509.ParseRevocationList(short)
	if err != nil {
		return nil, errDamagedList
	}
	parsed.Raw, parsed.RawTBSRevocationList = content, signed
	return parsed, nil
}

// entriesOf splits the signed part of a list into the fields before its entries, the entries, and the fields after
// them. There says whether there are any.
func entriesOf(signed cryptobyte.String) (before, entries, after cryptobyte.String, there bool, err error) {
	var body cryptobyte.String
	if !signed.ReadASN1(&body, asn1.SEQUENCE) || !signed.Empty() {
		return nil, nil, nil, false, errDamagedList
	}
	rest := body
	// version, signature, issuer, thisUpdate, nextUpdate; the first and the last are optional.
	rest.SkipOptionalASN1(asn1.INTEGER)
	times := 0
	for range 2 {
		if !rest.SkipASN1(asn1.SEQUENCE) {
			return nil, nil, nil, false, errDamagedList
		}
	}
	for rest.PeekASN1Tag(asn1.UTCTime) || rest.PeekASN1Tag(asn1.GeneralizedTime) {
		var tag asn1.Tag
		var value cryptobyte.String
		if times++; times > 2 || !rest.ReadAnyASN1(&value, &tag) {
			return nil, nil, nil, false, errDamagedList
		}
	}
	before = body[:len(body)-len(rest)]
	if there = rest.PeekASN1Tag(asn1.SEQUENCE); there && !rest.ReadASN1(&entries, asn1.SEQUENCE) {
		return nil, nil, nil, false, errDamagedList
	}
	return before, entries, rest, there, nil
}

// matching returns the entries of serial numbers. Every entry must have a serial number in DER: it would not
// find another encoding.
func matching(entries cryptobyte.String, serials [][]byte, step func() error) (kept []byte, err error) {
	for n := 0; !entries.Empty(); n++ {
		if n%entriesAtOnce == 0 {
			if err := step(); err != nil {
				return nil, err
			}
		}
		var element, entry, serial cryptobyte.String
		if !entries.ReadASN1Element(&element, asn1.SEQUENCE) {
			return nil, errDamagedList
		}
		whole := element
		if !element.ReadASN1(&entry, asn1.SEQUENCE) || !entry.ReadASN1(&serial, asn1.INTEGER) || !shortest(serial) {
			return nil, errDamagedList
		}
		if slices.ContainsFunc(serials, func(s []byte) bool { return bytes.Equal(s, serial) }) {
			// Entries may repeat a serial number, all of a list of 12 MiB.
			if kept = append(kept, whole...); len(kept) > maxListRest {
				return nil, largeRest()
			}
		}
	}
	return kept, nil
}

func largeRest() error {
	return fmt.Errorf("the revocation list has more than %d KiB beside the entries of other certificates", maxListRest>>10)
}

// shortest reports whether an integer has the shortest encoding that DER allows (X.690 section
// 8.3.2).
func shortest(integer []byte) bool {
	switch {
	case len(integer) == 0:
		return false
	case len(integer) == 1:
		return true
	}
	return (integer[0] != 0 || integer[1]&0x80 != 0) && (integer[0] != 0xff || integer[1]&0x80 == 0)
}

// distributionPoints returns the addresses of distribution points (RFC 5280 section 4.2.1.13).
func distributionPoints(value []byte) (addresses []string, err error) {
	damaged := errors.New("the distribution points of the revocation list are damaged")
	input := cryptobyte.String(value)
	if !input.ReadASN1(&input, asn1.SEQUENCE) {
		return nil, damaged
	}
	for !input.Empty() {
		var point, names cryptobyte.String
		var named bool
		if !input.ReadASN1(&point, asn1.SEQUENCE) || !point.ReadOptionalASN1(&names, &named, asn1.Tag(0).ContextSpecific().Constructed()) {
			return nil, damaged
		}
		if !named {
			continue
		}
		if !names.ReadASN1(&names, asn1.Tag(0).ContextSpecific().Constructed()) {
			return nil, damaged
		}
		for !names.Empty() {
			var name cryptobyte.String
			var tag asn1.Tag
			if !names.ReadAnyASN1(&name, &tag) {
				return nil, damaged
			}
			if tag == asn1.Tag(6).ContextSpecific() {
				addresses = append(addresses, string(name))
			}
			if len(addresses) > maxDistributionPoints {
				return nil, tooManyPoints()
			}
		}
	}
	return addresses, nil
}
