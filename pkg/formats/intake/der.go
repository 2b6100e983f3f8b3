package intake

import (
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// derConstructed is the bit of an ASN.1 tag that says that elements follow (X.690 section
// 8.1.2).
const derConstructed = 0x20

// notDER is for whatever is cut off or not encoded as DER. With indefinite lengths, the extent
// of an element is only known after all it contains.
func notDER() error {
	return malformed("is not DER: an element is cut off, in another place, or of indefinite length")
}

// scanDER refuses a document that is not one DER element, nests too deep, or has more than
// limit elements. It also counts those inside octet strings, where extensions are.
func scanDER(data []byte, limit int) error {
	s := &derScanner{left: limit, copies: maxDERCopies*len(data) + 1<<10}
	one := cryptobyte.String(data)
	var tag asn1.Tag
	if !one.ReadAnyASN1(&cryptobyte.String{}, &tag) || !one.Empty() || tag&derConstructed == 0 {
		return notDER()
	}
	return s.all(data, 0)
}

type derScanner struct{ left, copies int }

func (s *derScanner) all(data cryptobyte.String, depth int) error {
	if depth > maxDERDepth {
		return pastLimit("nests deeper than %d", maxDERDepth)
	}
	if s.copies -= len(data); s.copies < 0 {
		return pastLimit("nests too much of its content")
	}
	for !data.Empty() {
		var content cryptobyte.String
		var tag asn1.Tag
		if !data.ReadAnyASN1(&content, &tag) {
			return notDER()
		}
		if s.left--; s.left < 0 {
			return pastLimit("has too many elements")
		}
		if tag&derConstructed != 0 {
			if err := s.all(content, depth+1); err != nil {
				return err
			}
		} else if tag == asn1.OCTET_STRING {
			// Most octet strings hold no DER: then they count as one element.
			inner := *s
			if err := inner.all(content, depth+1); err == nil || IsLimit(err) {
				if err != nil {
					return err
				}
				*s = inner
			}
		}
	}
	return nil
}
