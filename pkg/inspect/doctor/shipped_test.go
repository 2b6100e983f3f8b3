package doctor_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/inspect/doctor"
)

func TestShippedGuardrailsNameTheAccountOfTheInstallation(t *testing.T) {
	usual, err := doctor.ShippedGuardrails(doctor.ShippedNamespace)
	require.NoError(t, err)
	elsewhere, err := doctor.ShippedGuardrails("elsewhere")
	require.NoError(t, err)
	require.NotEmpty(t, usual)
	require.Len(t, elsewhere, len(usual))
	differ := 0
	for i := range usual {
		require.Equal(t, usual[i].Name, elsewhere[i].Name)
		require.NotEmpty(t, usual[i].Spec.Validations, usual[i].Name)
		require.NotContains(t, doctor.GuardrailRules(&elsewhere[i]), doctor.ShippedNamespace)
		if doctor.GuardrailRules(&usual[i]) != doctor.GuardrailRules(&elsewhere[i]) {
			differ++
		}
	}
	require.Positive(t, differ)
}

func TestAPolicyThatLeavesAnythingOutHasOtherRules(t *testing.T) {
	all, err := doctor.ShippedGuardrails(doctor.ShippedNamespace)
	require.NoError(t, err)
	match := func(p *admissionv1.ValidatingAdmissionPolicy) *admissionv1.MatchResources {
		return p.Spec.MatchConstraints
	}
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, spoil := range map[string]func(*admissionv1.ValidatingAdmissionPolicy){
		"a validation that is always true": func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Expression = "1 == 1" },
		"a validation less":                func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Validations = p.Spec.Validations[1:] },
		"a condition that is never true": func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConditions = append(p.Spec.MatchConditions, admissionv1.MatchCondition{Name: "never", Expression: "false"})
		},
		"fewer resources":  func(p *admissionv1.ValidatingAdmissionPolicy) { match(p).ResourceRules[0].Resources = []string{"x"} },
		"fewer operations": func(p *admissionv1.ValidatingAdmissionPolicy) { match(p).ResourceRules[0].Operations = nil },
		"only some names": func(p *admissionv1.ValidatingAdmissionPolicy) {
			match(p).ResourceRules[0].ResourceNames = []string{"x"}
		},
		"an excluded resource": func(p *admissionv1.ValidatingAdmissionPolicy) { match(p).ExcludeResourceRules = match(p).ResourceRules },
		"some namespaces":      func(p *admissionv1.ValidatingAdmissionPolicy) { match(p).NamespaceSelector = some },
		"some objects":         func(p *admissionv1.ValidatingAdmissionPolicy) { match(p).ObjectSelector = some },
		"no constraints":       func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.MatchConstraints = nil },
	} {
		for i := range all {
			changed := all[i].DeepCopy()
			spoil(changed)
			require.NotEqual(t, doctor.GuardrailRules(&all[i]), doctor.GuardrailRules(changed), "%s: %s", all[i].Name, name)
		}
	}
	for i := range all {
		filled := all[i].DeepCopy() // as an API server fills it in
		if match(filled).NamespaceSelector == nil {
			match(filled).NamespaceSelector = &metav1.LabelSelector{}
		}
		if match(filled).ObjectSelector == nil {
			match(filled).ObjectSelector = &metav1.LabelSelector{}
		}
		require.Equal(t, doctor.GuardrailRules(&all[i]), doctor.GuardrailRules(filled))
	}
}
