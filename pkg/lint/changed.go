package lint

import (
	"encoding/json"

	"github.com/landwaiter/landwaiter/pkg/configdir"
)

// verifier is what a file says of a Verifier where leaving something out has another meaning
// than before.
type verifier struct {
	Spec struct {
		Cosign, Attestation signers
		Notation            *struct{ Revocation, AWSSigner any }
	}
}

type signers struct {
	Keys struct {
		TrustStoreRefs, RootTrustStoreRef any
		InsecureIgnoreTransparencyLog     bool
	}
}

// changed adds a note to each sound Verifier that means something else than before.
func (c *checker) changed(declarations []configdir.Declaration) {
	for _, d := range declarations {
		var v verifier
		if d.Source.Kind != "Verifier" && d.Source.Kind != "ClusterVerifier" || c.wrong[d.Source] || json.Unmarshal(d.JSON, &v) != nil {
			continue
		}
		for field, s := range map[string]signers{"spec.cosign.keys": v.Spec.Cosign, "spec.attestation.keys": v.Spec.Attestation} {
			if k := s.Keys; k.TrustStoreRefs != nil && k.RootTrustStoreRef == nil && !k.InsecureIgnoreTransparencyLog {
				c.add(d, Finding{Severity: Note, Field: field, Message: "signatures by these keys must now be in Sigstore's public transparency log; before, no log was needed",
					Fix: "set insecureIgnoreTransparencyLog: true if they are in none, or name another log's root in rootTrustStoreRef"})
			}
		}
		if n := v.Spec.Notation; n != nil && n.Revocation == nil && n.AWSSigner == nil {
			c.add(d, Finding{Severity: Note, Field: "spec.notation", Message: "certificates are now checked for revocation; before, they were not unless revocation was Check",
				Fix: "set revocation: Check or Ignore"})
		}
	}
}
