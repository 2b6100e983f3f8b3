package intake

import "encoding/binary"

// Major types of CBOR (RFC 8949 section 3.1).
const (
	cborBytes = 2 + iota
	cborText
	cborArray
	cborMap
	cborTag
	cborSimple
)

// COSE refuses a COSE_Sign1 message (RFC 9052 section 4.2) that is not CBOR with definite
// lengths, nests too deep or has too many items. It also checks its protected header.
func COSE(data []byte) error {
	s := &cborScanner{left: maxEnvelopeItems}
	rest, err := s.item(data, 0)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return malformed("is not one CBOR item")
	}
	protected, payload, err := coseParts(data)
	if err != nil {
		return err
	}
	if len(protected) > 0 {
		rest, err := s.item(protected, 0)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return malformed("has a protected header that is not one CBOR item")
		}
	}
	return JSON(payload)
}

// coseParts returns the protected header and the payload of a scanned message.
func coseParts(data []byte) (protected, payload []byte, err error) {
	wrong := malformed("is not a COSE_Sign1 message")
	major, length, rest, err := cborHead(data)
	if err == nil && major == cborTag {
		major, length, rest, err = cborHead(rest)
	}
	if err != nil || major != cborArray || length != 4 {
		return nil, nil, wrong
	}
	if protected, rest, err = cborString(rest); err != nil {
		return nil, nil, wrong
	}
	s := &cborScanner{left: maxEnvelopeItems}
	if rest, err = s.item(rest, 0); err != nil {
		return nil, nil, wrong
	}
	if payload, _, err = cborString(rest); err != nil {
		return nil, nil, wrong
	}
	return protected, payload, nil
}

// cborString returns the byte string at the start of data, and the rest.
func cborString(data []byte) (content, rest []byte, err error) {
	major, length, rest, err := cborHead(data)
	if err != nil || major != cborBytes || length > uint64(len(rest)) {
		return nil, nil, malformed("is not CBOR")
	}
	return rest[:length], rest[length:], nil
}

// cborHead reads the head of an item: its major type and argument.
func cborHead(data []byte) (major byte, argument uint64, rest []byte, err error) {
	if len(data) == 0 {
		return 0, 0, nil, malformed("is cut off")
	}
	major, info := data[0]>>5, data[0]&0x1f
	data = data[1:]
	if info < 24 {
		return major, uint64(info), data, nil
	}
	if info > 27 {
		return 0, 0, nil, malformed("has an indefinite length, or is not CBOR")
	}
	size := 1 << (info - 24)
	if len(data) < size {
		return 0, 0, nil, malformed("is cut off")
	}
	var wide [8]byte
	copy(wide[8-size:], data[:size])
	return major, binary.BigEndian.Uint64(wide[:]), data[size:], nil
}

type cborScanner struct{ left int }

// item skips one item and returns the rest.
func (s *cborScanner) item(data []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, pastLimit("nests deeper than %d", maxDepth)
	}
	if s.left--; s.left < 0 {
		return nil, pastLimit("has more than %d items", maxEnvelopeItems)
	}
	major, argument, rest, err := cborHead(data)
	if err != nil {
		return nil, err
	}
	var items uint64
	switch major {
	case cborBytes, cborText:
		if argument > uint64(len(rest)) {
			return nil, malformed("is cut off")
		}
		return rest[argument:], nil
	case cborArray:
		items = argument
	case cborMap:
		items = 2 * min(argument, maxEnvelopeItems)
	case cborTag:
		items = 1
	default:
		return rest, nil
	}
	for range items {
		if rest, err = s.item(rest, depth+1); err != nil {
			return nil, err
		}
	}
	return rest, nil
}
