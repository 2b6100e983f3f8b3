package isolation

import (
	"regexp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/landwaiter/landwaiter/pkg/inspect/guardrail"
)

// rules is what a policy decides as text. Where Landwaiter is reached is a setting of the
// chart, so it is left out.
func rules(p *admissionv1.ValidatingAdmissionPolicy) string {
	address := regexp.MustCompile(`'https://[^/']+/`)
	return address.ReplaceAllString(guardrail.Rules(p), "'https://landwaiter/")
}

// changed says how the rules of a guardrail differ from those of this version, "" if they
// do not. It knows only the names that the embedded ones have.
func (s *scene) changed(p *admissionv1.ValidatingAdmissionPolicy) (why string, known bool) {
	if s.landwaiter.Name != guardrail.Release {
		return "", false
	}
	all, err := guardrail.Shipped(s.landwaiter.Namespace)
	at := slices.IndexFunc(all, func(shipped admissionv1.ValidatingAdmissionPolicy) bool { return shipped.Name == p.Name })
	if err != nil || at < 0 {
		return "", false
	}
	if rules(p) != rules(&all[at]) {
		return "ValidatingAdmissionPolicy " + p.Name + " has other rules than this version of Landwaiter ships", true
	}
	return "", true
}
