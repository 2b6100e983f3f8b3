package intake

import (
	"bytes"
	"slices"
)

// oidSignedData is 1.2.840.113549.1.7.2 (RFC 5652 section 5.1).
const oidSignedData = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"

// TimestampResponse refuses a TimeStampResp (RFC 3161 section 2.4.2) without a token that
// [TimestampToken] accepts.
func TimestampResponse(data []byte) error {
	if err := scanTimestamp(data); err != nil {
		return err
	}
	response, err := oneDER(data, derSequence)
	if err != nil {
		return err
	}
	_, token, err := nextDER(response.content) // after the status
	if err != nil {
		return err
	}
	if len(token) == 0 {
		return malformed("has no token")
	}
	return checkToken(token)
}

// TimestampToken refuses a TimeStampToken (RFC 3161 section 2.4.2) that is not DER, has more
// than the one signature that it may have, or brings certificates that would be slow to
// build a chain of.
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
	return scanDER(data, derLimits{elements: maxTimestampElements})
}

// checkToken reads a ContentInfo with SignedData (RFC 5652 sections 3 and 5.1).
func checkToken(data []byte) error {
	info, err := oneDER(data, derSequence)
	if err != nil {
		return err
	}
	kind, rest, err := nextDER(info.content)
	if err != nil {
		return err
	}
	if kind.tag != derOID || string(kind.content) != oidSignedData {
		return malformed("has no signed data")
	}
	explicit, err := oneDER(rest, derContext0)
	if err != nil {
		return err
	}
	signed, err := oneDER(explicit.content, derSequence)
	if err != nil {
		return err
	}
	rest = signed.content
	for _, tag := range []byte{derInteger, derSet, derSequence} { // version, algorithms, content
		var e element
		if e, rest, err = nextDER(rest); err != nil || e.tag != tag {
			return orMalformed(err, "has signed data that is not well-formed")
		}
	}
	return checkSigners(rest)
}

// checkSigners reads the end of SignedData: certificates, revocation lists, signerInfos.
func checkSigners(data []byte) error {
	for _, tag := range []byte{derContext0, derContext1, derSet} {
		e, rest, err := nextDER(data)
		switch {
		case err != nil:
			return err
		case e.tag != tag && tag != derSet:
			continue // optional
		case e.tag != tag:
			return malformed("has signed data that is not well-formed")
		}
		switch data = rest; tag {
		case derContext0:
			err = checkEmbedded(e.content)
		case derContext1:
			err = malformed("has revocation lists")
		case derSet:
			// "The time-stamp token MUST NOT contain any signatures other than the
			// signature of the TSA."
			_, err = oneDER(e.content, derSequence)
		}
		if err != nil {
			return err
		}
	}
	if len(data) > 0 {
		return malformed("has signed data that is not well-formed")
	}
	return nil
}

// checkEmbedded reads a token's certificates. Each has a subject of its own: of those that
// share one, a search for chains tries every combination.
func checkEmbedded(data []byte) error {
	var chain [][]byte
	for len(data) > 0 {
		e, rest, err := nextDER(data)
		if err != nil || e.tag != derSequence {
			return orMalformed(err, "has a certificate that is not one")
		}
		chain, data = append(chain, e.whole), rest
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
