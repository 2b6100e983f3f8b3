package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

const (
	listBlock   = "X509 CRL"
	wantedLists = `"X509 CRL" PEM blocks`
)

// ParseRevocationLists reads certificate revocation lists (RFC 5280 section 5) from PEM text
// of at most 256 KiB ("X509 CRL" blocks, RFC 7468 section 6) and keeps their order. It
// refuses the whole text if one block is not a list. It checks neither signatures nor dates:
// verifiers do.
func ParseRevocationLists(text []byte) ([]*x509.RevocationList, error) {
	blocks, err := decode(text, wantedLists, maxListsInput, MaxLists)
	if err != nil {
		return nil, fmt.Errorf("parse revocation lists: %w", err)
	}
	lists := make([]*x509.RevocationList, 0, len(blocks))
	for _, b := range blocks {
		if b.Type != listBlock {
			return nil, fmt.Errorf("parse revocation lists: PEM block %d: found a %.40q block, want %s", b.number, b.Type, wantedLists)
		}
		list, err := parseRevocationList(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse revocation lists: PEM block %d: %w", b.number, err)
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// ListEnds returns when revocation lists end: when the next one was due. A list says nothing
// after that, so what it is needed for is denied.
func ListEnds(lists []*x509.RevocationList) []End {
	var ends []End
	for _, list := range lists {
		end := End{Part: fmt.Sprintf("revocation list of %.100q", list.Issuer.String()), At: list.NextUpdate.UTC()}
		if total := list.NextUpdate.Sub(list.ThisUpdate) / 4; total < Notice {
			end.Notice = max(total, minListNotice)
		}
		ends = append(ends, end)
	}
	return ends
}

// parseRevocationList reads one list. A list without an end would count for ever, and is
// refused: "Conforming CRL issuers MUST include the nextUpdate field in all CRLs" (RFC 5280
// section 5.1.2.5).
func parseRevocationList(der []byte) (*x509.RevocationList, error) {
	list, err := x509.ParseRevocationList(der)
	switch {
	case err != nil:
		return nil, errors.New("found a damaged revocation list")
	case list.NextUpdate.IsZero():
		return nil, fmt.Errorf("the revocation list of %.100q does not say when the next one is due", list.Issuer.String())
	}
	return list, nil
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
			return nil, fmt.Errorf("the revocation list of %.100q ended at %s", list.Issuer.String(), list.NextUpdate.UTC().Format(time.RFC3339))
		}
		if err := pem.Encode(&text, &pem.Block{Type: listBlock, Bytes: list.Raw}); err != nil {
			return nil, fmt.Errorf("write a revocation list: %w", err)
		}
	}
	return text.Bytes(), nil
}
