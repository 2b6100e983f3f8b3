package intake

// derLimits bound a DER document.
type derLimits struct{ elements int }

// Parts of an ASN.1 tag (X.690 section 8.1.2), and the universal tags that occur here.
const (
	derConstructed, derNumber       = 0x20, 0x1f
	derInteger, derOctets, derOID   = 0x02, 0x04, 0x06
	derSequence, derSet             = 0x30, 0x31
	derContext0, derContext1        = 0xa0, 0xa1
	derIndefinite, derLongestLength = 0x80, 4
)

// element is one ASN.1 element.
type element struct {
	tag     byte
	content []byte
	whole   []byte
}

// nextDER returns the first element of data and the rest. Lengths must be definite: with
// indefinite ones, the extent of an element is only known after all it contains.
func nextDER(data []byte) (e element, rest []byte, err error) {
	if len(data) < 2 || data[0]&derNumber == derNumber {
		return element{}, nil, malformed("is not DER")
	}
	length, header := int(data[1]), 2
	switch {
	case length == derIndefinite:
		return element{}, nil, malformed("has an indefinite length, and is not DER")
	case length > derIndefinite:
		bytes := length - derIndefinite
		if bytes > derLongestLength || len(data) < header+bytes {
			return element{}, nil, malformed("is not DER")
		}
		length = 0
		for _, b := range data[header : header+bytes] {
			length = length<<8 | int(b)
		}
		header += bytes
	}
	if length > len(data)-header {
		return element{}, nil, malformed("is cut off")
	}
	end := header + length
	return element{tag: data[0], content: data[header:end], whole: data[:end]}, data[end:], nil
}

// oneDER returns the single element of data, which must have the given tag.
func oneDER(data []byte, tag byte) (element, error) {
	e, rest, err := nextDER(data)
	switch {
	case err != nil:
		return element{}, err
	case len(rest) > 0 || e.tag != tag:
		return element{}, malformed("has an element where another one belongs")
	}
	return e, nil
}

// scanDER refuses a document that is not one DER element, nests too deep, or has too many
// elements. It also counts those inside octet strings, where extensions are.
func scanDER(data []byte, limits derLimits) error {
	s := &derScanner{left: limits.elements, copies: maxDERCopies*len(data) + 1<<10}
	if e, rest, err := nextDER(data); err != nil {
		return err
	} else if len(rest) > 0 || e.tag&derConstructed == 0 {
		return malformed("is not one DER element")
	}
	return s.all(data, 0)
}

type derScanner struct{ left, copies int }

func (s *derScanner) all(data []byte, depth int) error {
	if depth > maxDERDepth {
		return pastLimit("nests deeper than %d", maxDERDepth)
	}
	if s.copies -= len(data); s.copies < 0 {
		return pastLimit("nests too much of its content")
	}
	for len(data) > 0 {
		e, rest, err := nextDER(data)
		if err != nil {
			return err
		}
		if s.left--; s.left < 0 {
			return pastLimit("has too many elements")
		}
		if e.tag&derConstructed != 0 {
			if err := s.all(e.content, depth+1); err != nil {
				return err
			}
		} else if e.tag == derOctets {
			// Most octet strings hold no DER: then they count as one element.
			inner := *s
			if err := inner.all(e.content, depth+1); err == nil || IsLimit(err) {
				if err != nil {
					return err
				}
				*s = inner
			}
		}
		data = rest
	}
	return nil
}
