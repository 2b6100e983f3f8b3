package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// wireVersion is the version of the values that replicas share. A change that adds a field or
// changes its meaning needs the next number: other versions are a miss.
const wireVersion = 7

// errOtherVersion means that another version of this program wrote the value.
var errOtherVersion = errors.New("the verdict has another version")

// wireEntry is a [verify.Entry] that holds a verdict or evidence, as it is sealed for Redis. It
// has its own fields, so that a renamed Go field cannot change the format. It has no descriptor,
// which only tags have, and no doubtful verdict, which is never cached.
type wireEntry struct {
	Version int `json:"version"`
	origin
	Outcome     string          `json:"outcome"`
	Policy      wireRef         `json:"policy"`
	Reason      string          `json:"reason"`
	Remediation string          `json:"remediation,omitempty"`
	Command     string          `json:"command,omitempty"`
	Contact     string          `json:"contact,omitempty"`
	Others      []wireObjection `json:"others,omitempty"`
	More        int             `json:"more,omitempty"`
	Warning     string          `json:"warning,omitempty"`
	Unverified  bool            `json:"unverified,omitempty"`
	Findings    []wireFinding   `json:"findings,omitempty"`
	Evidence    *wireEvidence   `json:"evidence,omitempty"` // then there is no verdict
}

// wireObjection is a [policy.Objection].
type wireObjection struct {
	Policy      wireRef `json:"policy"`
	Reason      string  `json:"reason"`
	Remediation string  `json:"remediation,omitempty"`
	Command     string  `json:"command,omitempty"`
	Contact     string  `json:"contact,omitempty"`
}

// wireEvidence is a [verify.Evidence].
type wireEvidence struct {
	Listed  int64                       `json:"listed"` // Unix time in milliseconds
	Listing string                      `json:"listing,omitempty"`
	Subject wireDescriptor              `json:"subject"`
	Lists   map[string][]wireDescriptor `json:"lists"`
	Refused string                      `json:"refused,omitempty"`
	Content map[digest.Digest][]byte    `json:"content,omitempty"`
}

type wireDescriptor struct {
	MediaType string        `json:"mediaType"`
	Digest    digest.Digest `json:"digest"`
	Size      int64         `json:"size"`
	Data      []byte        `json:"data,omitempty"`
}

// origin describes a value for people: the key in Redis is a hash.
type origin struct {
	Image      string `json:"image"`
	Generation string `json:"generation"`
	Program    string `json:"program"` // version of the program that wrote it
	Written    int64  `json:"written"` // Unix time in milliseconds
}

type wireRef struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

type wireFinding struct {
	Verifier     string         `json:"verifier"`
	Source       wireRef        `json:"source"`
	Type         string         `json:"type,omitempty"`
	Result       string         `json:"result"`
	Signer       string         `json:"signer,omitempty"`
	Digest       string         `json:"digest,omitempty"`
	ArtifactType string         `json:"artifactType,omitempty"`
	Message      string         `json:"message,omitempty"`
	Reason       string         `json:"reason,omitempty"`
	Remedy       string         `json:"remedy,omitempty"`
	Remediation  string         `json:"remediation,omitempty"`
	Command      string         `json:"command,omitempty"`
	Extensions   map[string]any `json:"extensions,omitempty"`
	Incomplete   bool           `json:"incomplete,omitempty"`
	Until        time.Time      `json:"until,omitzero"`
}

// encode returns the bytes of an entry's verdict and findings.
func encode(entry verify.Entry, about origin) ([]byte, error) {
	if entry.Evidence != nil {
		return json.Marshal(wireEntry{Version: wireVersion, origin: about, Evidence: wireEvidenceOf(entry.Evidence)})
	}
	v := entry.Verdict
	if v.Doubtful {
		return nil, errors.New("a doubtful verdict is not shared")
	}
	wire := wireEntry{Version: wireVersion, origin: about, Outcome: v.Outcome().String(), Policy: wireRef(v.Policy), Reason: v.Reason,
		Remediation: v.Remediation, Command: v.Command, Contact: v.Contact,
		More: v.More, Warning: v.Warning, Unverified: v.Unverified}
	for _, d := range v.Others {
		wire.Others = append(wire.Others, wireObjection{wireRef(d.Policy), d.Reason, d.Remediation, d.Command, d.Contact})
	}
	for _, f := range entry.Findings {
		wire.Findings = append(wire.Findings, wireFinding{Verifier: f.Verifier, Source: wireRef(f.Source), Type: f.Type,
			Result: f.Result().String(), Signer: f.Signer(), Digest: f.Digest, ArtifactType: f.ArtifactType, Message: f.Message,
			Reason: string(f.Reason), Remedy: string(f.Remedy), Remediation: f.Remediation, Command: f.Command, Extensions: f.Extensions,
			Incomplete: f.Incomplete, Until: f.Until})
	}
	return json.Marshal(wire)
}

// decode reads the output of encode. The error is errOtherVersion for a value of another
// version.
func decode(plain []byte) (wireEntry, error) {
	var wire wireEntry
	strict := json.NewDecoder(bytes.NewReader(plain))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&wire); err != nil {
		// Another version may have other fields.
		var version struct {
			Version int `json:"version"`
		}
		if json.Unmarshal(plain, &version) == nil && version.Version != wireVersion {
			return wireEntry{}, errOtherVersion
		}
		return wireEntry{}, fmt.Errorf("read a verdict: %w", err)
	}
	if wire.Version != wireVersion {
		return wireEntry{}, errOtherVersion
	}
	return wire, nil
}

// wireEvidenceOf returns evidence in the form that is sealed.
func wireEvidenceOf(e *verify.Evidence) *wireEvidence {
	wire := &wireEvidence{Listed: e.Listed.UnixMilli(), Listing: e.Listing, Subject: wireDescriptorOf(e.Subject), Refused: e.Refused,
		Lists: map[string][]wireDescriptor{}, Content: e.Content}
	for location, list := range e.Lists {
		described := make([]wireDescriptor, len(list))
		for i, d := range list {
			described[i] = wireDescriptorOf(d)
		}
		wire.Lists[location] = described
	}
	return wire
}

func wireDescriptorOf(d ocispec.Descriptor) wireDescriptor {
	return wireDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, Data: d.Data}
}

func (d wireDescriptor) descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, Data: d.Data}
}

// evidence returns the encoded evidence. It fails if content does not match its digest.
func (w *wireEvidence) evidence() (*verify.Evidence, error) {
	e := &verify.Evidence{Listed: time.UnixMilli(w.Listed), Listing: w.Listing, Subject: w.Subject.descriptor(), Refused: w.Refused,
		Lists: map[string][]ocispec.Descriptor{}, Content: w.Content}
	for location, list := range w.Lists {
		described := make([]ocispec.Descriptor, len(list))
		for i, d := range list {
			if described[i] = d.descriptor(); len(d.Data) > 0 && (d.Digest.Validate() != nil || d.Digest.Algorithm().FromBytes(d.Data) != d.Digest) {
				return nil, fmt.Errorf("a listed manifest is not %.80s", d.Digest)
			}
		}
		e.Lists[location] = described
	}
	for of, content := range w.Content {
		if of.Validate() != nil || of.Algorithm().FromBytes(content) != of {
			return nil, fmt.Errorf("content is not %.80s", of)
		}
	}
	return e, nil
}

// entry returns the encoded entry. It only returns the two verdicts that are ever cached.
func (w wireEntry) entry() (verify.Entry, error) {
	if w.Evidence != nil {
		evidence, err := w.Evidence.evidence()
		return verify.Entry{Evidence: evidence}, err
	}
	var others []policy.Objection
	for _, d := range w.Others {
		others = append(others,
			policy.Objection{Policy: policy.ObjectRef(d.Policy), Reason: d.Reason, Remediation: d.Remediation, Command: d.Command,
				Contact: d.Contact})
	}
	verdict, err := policy.Restore(w.Outcome,
		policy.Verdict{Policy: policy.ObjectRef(w.Policy), Reason: w.Reason, Remediation: w.Remediation, Command: w.Command, Contact: w.Contact,
			Others: others, More: w.More, Warning: w.Warning, Unverified: w.Unverified})
	if err != nil {
		return verify.Entry{}, err
	}
	entry := verify.Entry{Verdict: verdict}
	for _, f := range w.Findings {
		var found policy.Finding
		switch f.Result {
		case policy.Valid.String():
			found = policy.NewProof(f.Signer, f.Message, f.Extensions).Finding()
		case policy.Invalid.String(), policy.Unknown.String():
			found = policy.Finding{Unknown: f.Result == policy.Unknown.String(), Message: f.Message, Extensions: f.Extensions}
		default:
			return verify.Entry{}, fmt.Errorf("a finding has the result %.20q", f.Result)
		}
		found.Verifier, found.Source, found.Type, found.Digest, found.ArtifactType = f.Verifier, policy.ObjectRef(f.Source), f.Type,
			f.Digest, f.ArtifactType
		found.Reason, found.Remedy, found.Remediation, found.Command, found.Incomplete, found.Until = policy.Reason(f.Reason),
			policy.Remedy(f.Remedy), f.Remediation, f.Command, f.Incomplete, f.Until
		entry.Findings = append(entry.Findings, found)
	}
	return entry, nil
}
