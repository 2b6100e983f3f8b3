package lint

import (
	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/resource"
)

// changed adds a note to each Verifier that means something else than before, because what it
// leaves out has another default.
func (c *checker) changed(resources []v1alpha1.Object) {
	for _, o := range resources {
		q, ok := o.(interface{ Qualified() v1alpha1.VerifierSpec })
		if !ok {
			continue
		}
		source := resource.RefOf(o)
		for _, note := range changesOf(q.Qualified()) {
			for _, d := range c.places[source] {
				if !c.wrong[source] {
					note.Severity = Note
					c.add(d, note)
				}
			}
		}
	}
}

func changesOf(spec v1alpha1.VerifierSpec) (notes []Finding) {
	keys := func(field string, k *v1alpha1.Keys) {
		if k != nil && len(k.TrustStoreRefs) > 0 && k.RootTrustStoreRef == nil && !k.InsecureIgnoreTransparencyLog {
			notes = append(notes, Finding{Field: field, Message: "signatures by these keys must now be in Sigstore's public transparency log; before, no log was needed",
				Fix: "set insecureIgnoreTransparencyLog: true if they are in none, or name another log's root in rootTrustStoreRef"})
		}
	}
	if spec.Cosign != nil {
		keys("spec.cosign.keys", spec.Cosign.Keys)
	}
	if spec.Attestation != nil {
		keys("spec.attestation.keys", spec.Attestation.Keys)
	}
	if n := spec.Notation; n != nil && n.Revocation == "" && n.AWSSigner == nil {
		notes = append(notes, Finding{Field: "spec.notation", Message: "certificates are now checked for revocation; before, they were not unless revocation was Check",
			Fix: "set revocation: Check or Ignore"})
	}
	return notes
}
