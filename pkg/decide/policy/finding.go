// Package policy decides: it evaluates the findings for one image against a policy's
// requirements and returns a verdict with a reason. It is pure: no I/O, no clock, no
// state, and the same inputs give the same verdict. It refuses to allow anything
// that is not proven: its zero values deny.
package policy

import (
	"maps"
	"slices"
	"time"
)

// Result classifies one piece of evidence. The zero value is Invalid.
type Result uint8

const (
	// Invalid evidence was read and proves nothing. A retry does not help.
	Invalid Result = iota
	// Valid evidence was proven, for this digest and this verifier.
	Valid
	// Unknown evidence could not be read. A retry may help.
	Unknown
)

// String returns the word that users see.
func (r Result) String() string {
	switch r {
	case Valid:
		return "valid"
	case Unknown:
		return "unknown"
	case Invalid:
	}
	return "invalid"
}

// ObjectRef names a resource. Namespace is empty for cluster-scoped resources; the
// zero value means "no resource".
type ObjectRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the reference as users write it: "Verifier team-a/release" or
// "ClusterVerifier release".
func (s ObjectRef) String() string {
	switch {
	case s == ObjectRef{}:
		return "no policy"
	case s.Namespace == "":
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// AskClusterAdmin is the prefix of advice that only a cluster admin can follow. Such advice does not name
// a team's admins.
const AskClusterAdmin = "ask a cluster admin to "

// Owner returns advice for the owner of the resource: the reader cannot change cluster
// resources.
func (s ObjectRef) Owner(what string) string {
	if s.Namespace == "" && s != (ObjectRef{}) {
		return AskClusterAdmin + what
	}
	return what
}

// Proof says who signed the evidence that a check verified. Only [NewProof] makes one; the zero
// value proves nothing.
type Proof struct {
	signer, message string
	extensions      map[string]any
	until           time.Time
}

// NewProof returns the proof that evidence is by a signer: a key's or certificate's fingerprint, or
// another name that no two signers share. Without a signer, nothing is proven. message is one
// sentence about what was proven, and extensions describe the signer.
func NewProof(signer, message string, extensions map[string]any) Proof {
	return Proof{signer: signer, message: message, extensions: extensions}
}

// Until returns p with an expiry, such as the end of a certificate that must be valid now. An earlier expiry of p
// stays. The zero time bounds nothing.
func (p Proof) Until(at time.Time) Proof {
	p.until = Sooner(p.until, at)
	return p
}

// Sooner returns the earlier of two times. Zero means never.
func Sooner(x, y time.Time) time.Time {
	if x.IsZero() || !y.IsZero() && y.Before(x) {
		return y
	}
	return x
}

// Finding returns the finding of p: Valid, unless p proves nothing.
func (p Proof) Finding() Finding {
	if p.signer == "" {
		return Finding{Reason: ReasonInternalError, Message: "internal error: the evidence was neither verified nor refused"}
	}
	return Finding{signer: p.signer, Message: p.message, Extensions: p.extensions, Until: p.until}
}

// Finding is one verifier's result for one piece of evidence. Only a [Proof] makes one that
// counts; others are Invalid, or Unknown. Developers see it, so it never contains secrets, nor
// registry content other than media types and digests.
type Finding struct {
	Verifier string    // name, as policies refer to it
	Source   ObjectRef // the resource that defines the verifier
	Type     string    // "Cosign", "Notation"
	signer   string
	// Unknown says that evidence could not be read, so it is not proven.
	Unknown      bool
	Digest       string // digest of the evidence's manifest
	ArtifactType string // its kind, from the manifest itself
	// Message is one sentence about what was proven, or why nothing was.
	Message string
	// Reason is a short machine-readable word for a finding that is not Valid,
	// such as "WrongKey". Remediation says how to fix it, and Command is a line for a shell that does.
	// Remedy is as in [Verdict].
	Reason      Reason
	Remedy      Remedy
	Remediation string
	Command     string
	Extensions  map[string]any
	// Until is when the proof may stop being true; zero is never. A verdict based on it is not cached longer.
	Until time.Time
	// Incomplete marks evidence that was not read, or not all of it, because of a limit.
	// No condition can hold for an image that has some.
	Incomplete bool
}

// Proven reports whether f counts.
func (f Finding) Proven() bool { return f.signer != "" }

// Signer identifies who signed, "" if nothing is proven. Two findings with the same signer count
// once.
func (f Finding) Signer() string { return f.signer }

// Result classifies f.
func (f Finding) Result() Result {
	switch {
	case f.Proven():
		return Valid
	case f.Unknown:
		return Unknown
	}
	return Invalid
}

// FindingFields returns the names of the fields that [Finding.Facts] always has.
func FindingFields() []string { return slices.Sorted(maps.Keys(Finding{}.Facts())) }

// Facts returns f as CEL expressions see it: verifier, type, signer, digest,
// artifactType, and facts. The checker's facts describe the signer: keyFingerprint,
// or issuer, subject and claims for cosign; predicateType too for attestations;
// Issuer and SN for notation.
func (f Finding) Facts() map[string]any {
	facts := map[string]any{}
	for name, value := range f.Extensions {
		if name != extensionSignatures {
			facts[name] = value
		}
	}
	if signatures, ok := f.Extensions[extensionSignatures].([]map[string]any); ok && len(signatures) == 1 {
		maps.Copy(facts, signatures[0])
	}
	return map[string]any{"verifier": f.Verifier, "type": f.Type, "signer": f.signer, "digest": f.Digest,
		"artifactType": f.ArtifactType, "facts": facts}
}

// extensionSignatures is the extension in which Ratify's templates expect cosign's
// facts.
const extensionSignatures = "signatures"
