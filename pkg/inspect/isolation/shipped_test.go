package isolation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/landwaiter/landwaiter/pkg/inspect/doctor"
)

// Where Landwaiter is reached is a setting; what is asked there is a rule.
func TestAGuardrailIsComparedWithoutTheAddressOfLandwaiter(t *testing.T) {
	const address = "https://landwaiter.landwaiter-system.svc:443/"
	shipped, err := doctor.ShippedGuardrails("landwaiter-system")
	require.NoError(t, err)
	with := func(p *admissionv1.ValidatingAdmissionPolicy, other string) *admissionv1.ValidatingAdmissionPolicy {
		p = p.DeepCopy()
		for i := range p.Spec.Validations {
			p.Spec.Validations[i].Expression = strings.ReplaceAll(p.Spec.Validations[i].Expression, address, other)
		}
		for i := range p.Spec.Variables {
			p.Spec.Variables[i].Expression = strings.ReplaceAll(p.Spec.Variables[i].Expression, address, other)
		}
		return p
	}
	addressed := 0
	for i := range shipped {
		p := &shipped[i]
		require.Equal(t, rules(p), rules(with(p, "https://127.0.0.1:8443/")), p.Name)
		if other := with(p, address+"v2/"); doctor.GuardrailRules(other) != doctor.GuardrailRules(p) {
			addressed++
			require.NotEqual(t, rules(p), rules(other), p.Name)
		}
	}
	require.Equal(t, 2, addressed)
}
