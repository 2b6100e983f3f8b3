// Package policy weighs evidence: it turns what a policy demands of one image
// and what was found for that image into a verdict with a reason. It is pure:
// no I/O, no clock, no state, and the same inputs give the same verdict. It
// refuses to allow anything that is not proven: its zero values deny.
package policy

import "maps"

// Result is what one piece of evidence turned out to be. The zero value is
// Invalid.
type Result uint8

const (
	// Invalid evidence was read and proves nothing, now or later.
	Invalid Result = iota
	// Valid evidence was proven, for this digest and this verifier.
	Valid
	// Unknown evidence could not be read; a later try may tell.
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

// Source names the resource that something comes from. Namespace is empty for
// cluster-scoped resources; the zero value means "no resource".
type ObjectRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the source as users write it: "Verifier team-a/release" or
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

// Finding is what one verifier says of one piece of evidence. It is shown to
// team devs, so it never carries secrets or what a registry wrote beyond its
// media types and digests.
type Finding struct {
	Verifier string    `json:"verifier"` // name, as policies refer to it
	Source   ObjectRef `json:"source"`   // the resource that defines the verifier
	Type     string    `json:"type"`     // "Cosign", "Notation"
	Result   Result    `json:"result"`
	// Signer identifies who signed: a key's or certificate's fingerprint. Two
	// findings with the same Signer count once. A Valid finding without it
	// counts for nothing.
	Signer       string `json:"signer,omitempty"`
	Digest       string `json:"digest,omitempty"`       // digest of the evidence's manifest
	ArtifactType string `json:"artifactType,omitempty"` // its kind, from the manifest itself
	// Message is one sentence: what was proven, or why nothing was.
	Message string `json:"message"`
	// Reason is a short machine-readable word for a finding that is not Valid,
	// such as "WrongKey"; Remediation says what to do about it.
	Reason      Reason         `json:"reason,omitempty"`
	Remediation string         `json:"remediation,omitempty"`
	Extensions  map[string]any `json:"extensions,omitempty"`
}

// Proven reports whether f counts: it is Valid and says who signed.
func (f Finding) Proven() bool { return f.Result == Valid && f.Signer != "" }

// Facts are what expressions see of f: verifier, type, signer, digest, artifactType,
// and facts, what the checker knows of the signer (for cosign keyFingerprint, or
// issuer, subject and claims; for attestations predicateType too; for notation
// Issuer and SN).
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
	return map[string]any{"verifier": f.Verifier, "type": f.Type, "signer": f.Signer, "digest": f.Digest,
		"artifactType": f.ArtifactType, "facts": facts}
}

// extensionSignatures is where Ratify's templates look for cosign's facts.
const extensionSignatures = "signatures"
