package intake

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Statement types (in-toto attestation framework, "Statement" v0.1 and v1).
const (
	statementV01 = "https://in-toto.io/Statement/v0.1"
	statementV1  = "https://in-toto.io/Statement/v1"
)

// Statement is a predicate about some subjects.
type Statement struct {
	// PredicateType is the type of the predicate.
	PredicateType string
	// Predicate is the content of the statement. It may be nil.
	Predicate any
	// Digests are the SHA-256 digests of the subjects, in lower-case hex.
	Digests []string
}

// IsStatement reports whether the type of an object is an in-toto statement of version
// 0.1 or 1.
func IsStatement(object map[string]any) bool {
	return object["_type"] == statementV1 || object["_type"] == statementV01
}

// ParseStatement reads an in-toto statement of version 0.1 or 1, of at most 4 MiB.
func ParseStatement(data []byte) (Statement, error) {
	if len(data) > maxStatement {
		return Statement{}, fmt.Errorf("is larger than %d bytes", maxStatement)
	}
	document, err := ParseObject(data, maxStatementDepth)
	if err != nil {
		return Statement{}, err
	}
	if !IsStatement(document) {
		return Statement{}, errors.New("is not an in-toto statement of version 0.1 or 1")
	}
	s := Statement{Predicate: document["predicate"]}
	s.PredicateType, _ = document["predicateType"].(string)
	if s.PredicateType == "" {
		return Statement{}, errors.New("has no predicate type")
	}
	subjects, _ := document["subject"].([]any)
	for _, entry := range subjects {
		sum, err := imageDigest(entry)
		if err != nil {
			return Statement{}, err
		}
		if sum != "" {
			s.Digests = append(s.Digests, sum)
		}
	}
	if len(s.Digests) == 0 {
		return Statement{}, errors.New("has no subject with a sha256 digest")
	}
	return s, nil
}

// ReadSubject returns one of a statement's subjects (in-toto "ResourceDescriptor") and
// its digests by algorithm. "Each element MUST have `digest` set" (in-toto attestation
// framework, "Statement"); the digests themselves are not checked.
func ReadSubject(entry any) (subject, digests map[string]any, err error) {
	subject, ok := entry.(map[string]any)
	if !ok {
		return nil, nil, errors.New("has a subject that is not an object")
	}
	digests, ok = subject["digest"].(map[string]any)
	if !ok {
		return nil, nil, errors.New("has a subject without digests")
	}
	return subject, digests, nil
}

// imageDigest returns the SHA-256 digest of a subject. It is empty if the subject has
// none, and so is not an image.
func imageDigest(entry any) (string, error) {
	_, digests, err := ReadSubject(entry)
	if err != nil {
		return "", err
	}
	for _, digest := range digests {
		text, ok := digest.(string)
		if _, err := hex.DecodeString(text); !ok || err != nil {
			return "", errors.New("has a subject with a damaged digest")
		}
	}
	sum, ok := digests["sha256"].(string)
	if ok && (len(sum) != hex.EncodedLen(sha256.Size) || strings.ToLower(sum) != sum) {
		return "", errors.New("has a subject with a damaged digest")
	}
	return sum, nil
}

// ParseObject parses one JSON object that nests at most maxDepth deep. Unlike
// encoding/json it refuses duplicate names, invalid UTF-8 and deep nesting, and it
// distinguishes the case of names: two parsers must not see two documents in the same
// signed bytes. RFC 8259 section 4 does not ensure that ("The names within an object
// SHOULD be unique"). Numbers are [json.Number].
func ParseObject(data []byte, maxDepth int) (map[string]any, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errors.New("is not JSON")
	}
	read := &reader{data: data}
	value, err := read.value(maxDepth)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	return object, nil
}

// reader reads valid JSON. It takes about half the memory of a [json.Decoder], which
// matters for statements of some MiB.
type reader struct {
	data []byte
	at   int
}

// next returns the first byte after white space.
func (r *reader) next() byte {
	for r.data[r.at] == ' ' || r.data[r.at] == '\t' || r.data[r.at] == '\r' || r.data[r.at] == '\n' {
		r.at++
	}
	return r.data[r.at]
}

// skip passes over c, if it is next.
func (r *reader) skip(c byte) bool {
	if r.next() != c {
		return false
	}
	r.at++
	return true
}

// value reads a value that nests at most depth deep.
func (r *reader) value(depth int) (any, error) {
	if depth < 0 {
		return nil, errors.New("nests too deep")
	}
	switch r.next() {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case '"':
		return r.text()
	case 't':
		r.at += len("true")
		return true, nil
	case 'f':
		r.at += len("false")
		return false, nil
	case 'n':
		r.at += len("null")
		return nil, nil //nolint:nilnil // the value null
	}
	start := r.at
	for r.at < len(r.data) && bytes.IndexByte([]byte("+-.0123456789Ee"), r.data[r.at]) >= 0 {
		r.at++
	}
	return json.Number(r.data[start:r.at]), nil
}

func (r *reader) list(depth int) (any, error) {
	var list []any
	r.at++
	for !r.skip(']') {
		value, err := r.value(depth - 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
		r.skip(',')
	}
	return list, nil
}

func (r *reader) object(depth int) (any, error) {
	object := map[string]any{}
	r.at++
	for !r.skip('}') {
		r.next()
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, errors.New("has a name twice")
		}
		r.skip(':')
		if object[name], err = r.value(depth - 1); err != nil {
			return nil, err
		}
		r.skip(',')
	}
	return object, nil
}

// text reads a string.
func (r *reader) text() (string, error) {
	start, escaped := r.at, false
	for r.at++; r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++
	token := r.data[start:r.at]
	if !escaped {
		return string(token[1 : len(token)-1]), nil
	}
	var text string
	if err := json.Unmarshal(token, &text); err != nil {
		return "", errors.New("is not JSON")
	}
	return text, nil
}
