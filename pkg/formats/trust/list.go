package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

const (
	listBlock   = "X509 CRL"
	wantedLists = `"X509 CRL" PEM blocks`
	// Extensions of lists (RFC 5280 sections 5.2.4 and 5.2.5).
	oidDeltaIndicator    = "2.5.29.27"
	oidDistributionPoint = "2.5.29.28"
)

// RevocationList is a complete certificate revocation list (RFC 5280 section 5), with the set
// of certificates that it covers. It is not trusted yet: callers check its signature and
// dates.
type RevocationList struct {
	*x509.RevocationList
	// addresses are the addresses of the list's distribution point. Without any, the list covers
	// all certificates of its issuer.
	addresses []string
	// userOnly and authorityOnly limit the list to end-entity certificates or to CA
	// certificates.
	userOnly, authorityOnly bool
}

// About reports whether the list would contain certificate if issuer, identified by name and
// key identifier, had revoked it. A list that does not cover a certificate proves nothing
// about it.
func (l *RevocationList) About(certificate, issuer *x509.Certificate) bool {
	switch {
	case !bytes.Equal(l.RawIssuer, issuer.RawSubject), !bytes.Equal(certificate.RawIssuer, issuer.RawSubject):
		return false
	case len(l.AuthorityKeyId) > 0 && len(issuer.SubjectKeyId) > 0 && !bytes.Equal(l.AuthorityKeyId, issuer.SubjectKeyId):
		return false
	case l.userOnly && certificate.IsCA, l.authorityOnly && !certificate.IsCA:
		return false
	}
	return len(l.addresses) == 0 ||
		slices.ContainsFunc(l.addresses, func(address string) bool { return slices.Contains(certificate.CRLDistributionPoints, address) })
}

// Parsed returns the parsed list.
func (l *RevocationList) Parsed() *x509.RevocationList { return l.RevocationList }

// ParseRevocationLists reads certificate revocation lists from PEM text of at most 256 KiB
// ("X509 CRL" blocks, RFC 7468 section 6) and keeps their order. It refuses the whole text
// if one block is not a complete list with an end. It checks neither signatures nor dates.
func ParseRevocationLists(text []byte) ([]*RevocationList, error) {
	return parseAll("revocation lists", text, wantedLists, maxListsInput, MaxLists, parseRevocationList)
}

// parseRevocationList reads one list. A list without an end would count for ever, and is
// refused: "Conforming CRL issuers MUST include the nextUpdate field in all CRLs" (RFC 5280
// section 5.1.2.5). So is one that is complete only together with another.
func parseRevocationList(b *pem.Block) (*RevocationList, error) {
	if b.Type != listBlock {
		return nil, fmt.Errorf("found a %.40q block, want %s", b.Type, wantedLists)
	}
	parsed, err := x509.ParseRevocationList(b.Bytes)
	if err != nil {
		return nil, errors.New("found a damaged revocation list")
	}
	return NewRevocationList(parsed)
}

// NewRevocationList returns a list that was parsed. It refuses one without an end, and one that is not complete for
// the certificates that it is about: a delta list, or one for some reasons, other issuers or attribute certificates.
func NewRevocationList(parsed *x509.RevocationList) (*RevocationList, error) {
	issuer := parsed.Issuer.String()
	if parsed.NextUpdate.IsZero() {
		return nil, fmt.Errorf("the revocation list of %.100q does not say when the next one is due", issuer)
	}
	list := &RevocationList{RevocationList: parsed}
	for _, extension := range parsed.Extensions {
		switch extension.Id.String() {
		case oidDeltaIndicator:
			return nil, fmt.Errorf("the revocation list of %.100q only has changes (a delta list); use the complete one", issuer)
		case oidDistributionPoint:
			if !list.narrow(extension.Value) {
				return nil,
					fmt.Errorf("the revocation list of %.100q is for some reasons, other issuers or attribute certificates only; use the complete one",
						issuer)
			}
		}
	}
	return list, nil
}

// narrow reads the issuing distribution point (RFC 5280 section 5.2.5). It returns false
// unless the list is complete for the certificates that it is about.
func (l *RevocationList) narrow(value []byte) bool {
	input := cryptobyte.String(value)
	var point, names cryptobyte.String
	var named bool
	if !input.ReadASN1(&input, asn1.SEQUENCE) || !input.ReadOptionalASN1(&point, &named, asn1.Tag(0).ContextSpecific().Constructed()) {
		return false
	}
	if named {
		if !point.ReadASN1(&names, asn1.Tag(0).ContextSpecific().Constructed()) || !point.Empty() {
			return false // a name relative to the issuer
		}
		for !names.Empty() {
			var name cryptobyte.String
			var tag asn1.Tag
			if !names.ReadAnyASN1(&name, &tag) {
				return false
			}
			if tag == asn1.Tag(6).ContextSpecific() {
				l.addresses = append(l.addresses, string(name))
			}
		}
		if len(l.addresses) == 0 {
			return false
		}
	}
	for _, flag := range []struct {
		tag uint8
		to  *bool
	}{{1, &l.userOnly}, {2, &l.authorityOnly}} {
		var set cryptobyte.String
		var there bool
		if !input.ReadOptionalASN1(&set, &there, asn1.Tag(flag.tag).ContextSpecific()) || there && len(set) != 1 {
			return false
		}
		*flag.to = there && set[0] != 0
	}
	return input.Empty() // reasons, indirect lists and attribute certificates
}

// EncodeRevocationLists writes lists, which are PEM text or one list in DER, as PEM text
// without anything else. It refuses a list that has ended by now.
func EncodeRevocationLists(content []byte, now time.Time) ([]byte, error) {
	if !bytes.Contains(content, []byte("-----BEGIN ")) {
		content = pem.EncodeToMemory(&pem.Block{Type: listBlock, Bytes: content})
	}
	lists, err := ParseRevocationLists(content)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, list := range lists {
		if !list.NextUpdate.After(now) {
			return nil, fmt.Errorf("the revocation list of %.100q expired at %s", list.Issuer.String(), list.NextUpdate.UTC().Format(time.RFC3339))
		}
		if err := pem.Encode(&text, &pem.Block{Type: listBlock, Bytes: list.Raw}); err != nil {
			return nil, fmt.Errorf("write a revocation list: %w", err)
		}
	}
	return text.Bytes(), nil
}

// ListEnds returns when revocation lists end: when the next one was due. After that, a list
// says nothing. Lists live for days or weeks, so the notice is the last quarter of their
// time, and at most [Notice].
func ListEnds(lists []*RevocationList) []End {
	ends := make([]End, 0, len(lists))
	for _, list := range lists {
		quarter := list.NextUpdate.Sub(list.ThisUpdate) / 4
		ends = append(ends,
			End{Part: fmt.Sprintf("revocation list of %.100q", list.Issuer.String()), At: list.NextUpdate.UTC(),
				Notice: min(max(quarter, minListNotice), Notice)})
	}
	return ends
}
