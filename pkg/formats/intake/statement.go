package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
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

// ParseStatement reads an in-toto statement of version 0.1 or 1. It takes the memory that [StatementMemory]
// returns.
func ParseStatement(data []byte) (Statement, error) {
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

// imageDigest returns the SHA-256 digest of a subject, empty if the subject has none and so is not an image. It
// ignores digests of other algorithms, which have their own forms (in-toto attestation framework, "DigestSet").
func imageDigest(entry any) (string, error) {
	_, digests, err := ReadSubject(entry)
	if err != nil {
		return "", err
	}
	for _, digest := range digests {
		if _, ok := digest.(string); !ok {
			return "", errors.New("has a subject with a digest that is no text")
		}
	}
	sum, has := digests["sha256"].(string)
	if _, err := hex.DecodeString(sum); has && (err != nil || len(sum) != hex.EncodedLen(sha256.Size) || strings.ToLower(sum) != sum) {
		return "", errors.New("has a subject with a damaged sha256 digest")
	}
	return sum, nil
}

// ParseObject parses one JSON object that nests at most maxDepth deep. Unlike
// encoding/json it refuses duplicate names, invalid UTF-8 and deep nesting, and it
// distinguishes the case of names: two parsers must not see two documents in the same
// signed bytes. RFC 8259 section 4 does not ensure that ("The names within an object
// SHOULD be unique"). Numbers are [json.Number]. It takes about half the memory of a
// [json.Decoder], which matters for statements of some MiB.
func ParseObject(data []byte, maxDepth int) (map[string]any, error) {
	if !json.Valid(data) {
		return nil, notJSON()
	}
	value, err := readJSON(data, jsonLimits{depth: maxDepth, keep: true})
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, malformed("is not a JSON object")
	}
	return object, nil
}
