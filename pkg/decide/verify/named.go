package verify

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// add looks name up and records it as a verifier to run or as a missing one.
func (t *task) add(l *Layer, name string, ref image.Reference) {
	i := slices.IndexFunc(l.Verifiers, func(v *Verifier) bool { return v.Source.Name == name })
	if i < 0 {
		t.missing = append(t.missing, l.unknown(t.rules.Source, name))
		return
	}
	v := l.Verifiers[i]
	switch {
	case slices.Contains(t.verifiers, v):
	case v.Hidden:
		if v.matches(ref) {
			t.missing = append(t.missing, v.finding(policy.Finding{Unknown: true, Reason: policy.ReasonUnreadable, Message: v.Broken}))
		} else {
			t.missing = append(t.missing, v.elsewhere(ref))
		}
	case v.Broken != "":
		t.missing = append(t.missing, v.finding(policy.Finding{Reason: policy.ReasonBrokenResource, Message: v.Broken, Remediation: repair(v.Source)}))
	case !v.matches(ref):
		t.missing = append(t.missing, v.elsewhere(ref))
	default:
		t.verifiers = append(t.verifiers, v)
	}
}

// elsewhere returns the finding of a verifier that is not for ref.
func (v *Verifier) elsewhere(ref image.Reference) policy.Finding {
	return v.finding(policy.Finding{Reason: policy.ReasonNotForThisImage,
		Message:     fmt.Sprintf("%s is not for %s: its images do not match", v.Source, ref.Name()),
		Remediation: v.Source.Owner("add the image to spec.images of the Verifier") + ", or require another Verifier"})
}

// pending returns an Unknown finding for each verifier that has yet to run.
func (t *task) pending() []policy.Finding {
	findings := make([]policy.Finding, len(t.verifiers))
	for i, v := range t.verifiers {
		findings[i] = v.finding(policy.Finding{Unknown: true})
	}
	return findings
}

// finding adds the verifier to f.
func (v *Verifier) finding(f policy.Finding) policy.Finding {
	f.Verifier, f.Source, f.Type = v.Source.Name, v.Source, v.Type
	return f
}
