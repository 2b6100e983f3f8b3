package cosign

import (
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/formats/intake"
	"github.com/landwaiter/landwaiter/pkg/formats/intoto"
)

// PredicateTypeSignature is the predicate type of an image signature in a bundle.
// Statements of any other type are attestations.
const PredicateTypeSignature = "https://sigstore.dev/cosign/sign/v1"

var (
	errPredicate = errors.New("is not an image signature")
	errTooLarge  = errors.New("is too large")
)

// statement is the in-toto statement of an image signature, with the claims about each
// of its subjects.
type statement struct {
	subjects []subjectClaims
}

type subjectClaims struct {
	digest string // "sha256:…", or empty
	claims
}

// parseStatement reads the statement of an image signature. It only reads the type of
// other statements, which may be large.
func parseStatement(data []byte) (statement, error) {
	var kind struct {
		PredicateType string `json:"predicateType"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return statement{}, errors.New("is not an in-toto statement")
	}
	if kind.PredicateType != PredicateTypeSignature {
		return statement{}, errPredicate
	}
	if len(data) > maxPayload {
		return statement{}, errTooLarge
	}
	if err := intake.Payload(data); err != nil {
		return statement{}, err
	}
	document, err := intoto.ParseObject(data, maxDepth)
	if err != nil {
		return statement{}, err
	}
	if !intoto.IsStatement(document) {
		return statement{}, errors.New("is not an in-toto statement of version 0.1 or 1")
	}
	// Checked again on the strict parse: encoding/json ignores the case of names.
	if document["predicateType"] != PredicateTypeSignature {
		return statement{}, errPredicate
	}
	list, ok := document["subject"].([]any)
	if !ok {
		return statement{}, errors.New("has no subjects")
	}
	s := statement{}
	for _, entry := range list {
		subject, err := parseSubject(entry)
		if err != nil {
			return statement{}, err
		}
		s.subjects = append(s.subjects, subject)
	}
	return s, nil
}

func parseSubject(entry any) (subjectClaims, error) {
	object, digests, err := intoto.ReadSubject(entry)
	if err != nil {
		return subjectClaims{}, err
	}
	s := subjectClaims{}
	if sum, ok := digests["sha256"].(string); ok {
		if _, err := hex.DecodeString(sum); err != nil {
			return subjectClaims{}, errors.New("has a subject with a damaged digest")
		}
		s.digest = digest.SHA256.String() + ":" + sum
	}
	s.repository, _ = object["name"].(string)
	s.annotations, _ = object["annotations"].(map[string]any)
	return s, nil
}

// about returns the claims of every subject with the digest d.
func (s statement) about(d digest.Digest) []claims {
	var said []claims
	for _, subject := range s.subjects {
		if subject.digest == d.String() {
			said = append(said, subject.claims)
		}
	}
	return said
}

// digests returns the digests of the subjects, for messages.
func (s statement) digests() []string {
	var all []string
	for _, subject := range s.subjects {
		all = append(all, subject.digest)
	}
	return all
}
