package cosign

import (
	"maps"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// proof is evidence that passed every check. The zero value proves nothing.
type proof struct {
	signer        signer
	layer         digest.Digest // of the signature or attestation
	predicateType string        // empty for a signature
}

// valid makes the finding of a proof. It is the only maker of Valid findings, and
// refuses a proof that names no signer.
func valid(p proof) policy.Finding {
	if p.signer.id == "" {
		return verify.FindingOf(nil)
	}
	facts := map[string]any{"signatureDigest": p.layer.String(), "isSuccess": true}
	message := p.signer.message
	if p.predicateType != "" {
		facts["predicateType"], facts["signer"] = p.predicateType, p.signer.id
		message = "attestation of type " + p.predicateType + " verified, signed by " + p.signer.id
	}
	maps.Copy(facts, p.signer.facts)
	return policy.Finding{Result: policy.Valid, Signer: p.signer.id, Message: message,
		Extensions: map[string]any{"signatures": []map[string]any{facts}}}
}
