package intake

import (
	"bytes"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// oidSignedData is 1.2.840.113549.1.7.2 (RFC 5652 section 5.1).
const oidSignedData = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"

// TimestampResponse refuses a TimeStampResp (RFC 3161 section 2.4.2) without a token that
// [TimestampToken] accepts.
func TimestampResponse(data []byte) error {
	if err := scanTimestamp(data); err != nil {
		return err
	}
	whole := cryptobyte.String(data)
	var response cryptobyte.String
	if !whole.ReadASN1(&response, asn1.SEQUENCE) || !response.SkipASN1(asn1.SEQUENCE) { // its status
		return notDER()
	}
	if response.Empty() {
		return malformed("has no token")
	}
	return checkToken(response)
}

// TimestampToken refuses a TimeStampToken (RFC 3161 section 2.4.2) that is not DER, has more
// than one signature, or contains certificates that make building a chain slow.
func TimestampToken(data []byte) error {
	if err := scanTimestamp(data); err != nil {
		return err
	}
	return checkToken(data)
}

func scanTimestamp(data []byte) error {
	if len(data) > maxTimestamp {
		return pastLimit("has %d bytes, the limit is %d", len(data), maxTimestamp)
	}
	return scanDER(data, maxTimestampElements)
}

// checkToken reads a ContentInfo with SignedData (RFC 5652 sections 3 and 5.1).
func checkToken(token cryptobyte.String) error {
	var info, kind, explicit, signed cryptobyte.String
	if !token.ReadASN1(&info, asn1.SEQUENCE) || !token.Empty() {
		return notDER()
	}
	if !info.ReadASN1(&kind, asn1.OBJECT_IDENTIFIER) || string(kind) != oidSignedData {
		return malformed("has no signed data")
	}
	if !info.ReadASN1(&explicit, context(0)) || !info.Empty() || !explicit.ReadASN1(&signed, asn1.SEQUENCE) || !explicit.Empty() ||
		!signed.SkipASN1(asn1.INTEGER) || !signed.SkipASN1(asn1.SET) || !signed.SkipASN1(asn1.SEQUENCE) { // version, algorithms, content
		return malformed("has signed data that is not well-formed")
	}
	return checkSigners(signed)
}

func context(tag asn1.Tag) asn1.Tag { return tag.ContextSpecific().Constructed() }

// checkSigners reads the end of SignedData: certificates, revocation lists, signerInfos.
func checkSigners(data cryptobyte.String) error {
	var certificates, signers cryptobyte.String
	if !data.ReadOptionalASN1(&certificates, nil, context(0)) {
		return notDER()
	}
	if err := checkEmbedded(certificates); err != nil {
		return err
	}
	if data.PeekASN1Tag(context(1)) {
		return malformed("has revocation lists")
	}
	// "The time-stamp token MUST NOT contain any signatures other than the signature of the TSA."
	if !data.ReadASN1(&signers, asn1.SET) || !data.Empty() || !signers.SkipASN1(asn1.SEQUENCE) || !signers.Empty() {
		return malformed("does not have one signer at its end")
	}
	return nil
}

// checkEmbedded reads a token's certificates. Each must have a subject of its own: for
// certificates that share a subject, a search for chains tries every combination.
func checkEmbedded(data cryptobyte.String) error {
	var chain [][]byte
	for !data.Empty() {
		var certificate cryptobyte.String
		if !data.ReadASN1Element(&certificate, asn1.SEQUENCE) {
			return malformed("has a certificate that is not one")
		}
		chain = append(chain, certificate)
	}
	certificates, err := Certificates(chain)
	if err != nil {
		return err
	}
	var subjects [][]byte
	for _, certificate := range certificates {
		subject := certificate.RawSubject
		if slices.ContainsFunc(subjects, func(other []byte) bool { return bytes.Equal(other, subject) }) {
			return pastLimit("has two certificates of one subject")
		}
		subjects = append(subjects, subject)
	}
	return nil
}

// derConstructed is the bit of an ASN.1 tag that says that elements follow (X.690 section
// 8.1.2).
const derConstructed = 0x20

// notDER is the fault of a document that is truncated or not DER. With indefinite lengths, the
// extent of an element is only known after all of its content.
func notDER() error {
	return malformed("is not DER: an element is cut off, in another place, or of indefinite length")
}

// scanDER refuses a document that is not one DER element, nests too deep, or has more than
// limit elements. It also counts elements inside octet strings, where extensions are.
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
