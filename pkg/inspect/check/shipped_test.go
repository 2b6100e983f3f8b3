package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestShippedGuardrailsNameTheAccountOfTheInstallation(t *testing.T) {
	usual, err := ShippedGuardrails(ShippedNamespace)
	require.NoError(t, err)
	elsewhere, err := ShippedGuardrails("elsewhere")
	require.NoError(t, err)
	require.NotEmpty(t, usual)
	require.Len(t, elsewhere, len(usual))
	differ := 0
	for i := range usual {
		require.Equal(t, usual[i].Name, elsewhere[i].Name)
		require.NotEmpty(t, usual[i].Spec.Validations, usual[i].Name)
		require.NotContains(t, rules(&elsewhere[i], ""), ShippedNamespace)
		if rules(&usual[i], "") != rules(&elsewhere[i], "") {
			differ++
		}
	}
	require.Positive(t, differ)
}

func TestAPolicyThatLeavesAnythingOutHasOtherRules(t *testing.T) {
	all, err := ShippedGuardrails(ShippedNamespace)
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
		"objects of the cluster": func(p *admissionv1.ValidatingAdmissionPolicy) {
			scope := admissionv1.ClusterScope
			match(p).ResourceRules[0].Scope = &scope
		},
		"exact versions": func(p *admissionv1.ValidatingAdmissionPolicy) {
			exact := admissionv1.Exact
			match(p).MatchPolicy = &exact
		},
		"no constraints": func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.MatchConstraints = nil },
	} {
		for i := range all {
			changed := all[i].DeepCopy()
			spoil(changed)
			require.NotEqual(t, rules(&all[i], ""), rules(changed, ""), "%s: %s", all[i].Name, name)
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
		every, equivalent := admissionv1.AllScopes, admissionv1.Equivalent
		match(filled).MatchPolicy = &equivalent
		for i := range match(filled).ResourceRules {
			match(filled).ResourceRules[i].Scope = &every
		}
		require.Equal(t, rules(&all[i], ""), rules(filled, ""))
	}
}

// Where Landwaiter is reached is a setting; what is asked there is a rule.
func TestAGuardrailIsComparedWithoutTheAddressOfLandwaiter(t *testing.T) {
	const address = "https://landwaiter.landwaiter-system.svc:443/"
	shipped, err := ShippedGuardrails(ShippedNamespace)
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
		require.Equal(t, rules(p, ""), rules(with(p, "https://127.0.0.1:8443/"), ""), p.Name)
		if rules(with(p, address+"v2/"), "") != rules(p, "") {
			addressed++
			require.NotEqual(t, rules(p, "https://landwaiter.example"), rules(with(p, "https://evil.example/"), "https://landwaiter.example"), p.Name)
			require.Equal(t, rules(p, "https://landwaiter.example"), rules(with(p, "https://landwaiter.example/"), "https://landwaiter.example"), p.Name)
		}
	}
	require.Equal(t, 2, addressed)
}

func TestAGuardrailIsComparedInWhateverNamespaceTheReleaseIs(t *testing.T) {
	shipped, err := ShippedGuardrails("elsewhere")
	require.NoError(t, err)
	g := Guardrails{Policies: shipped, Release: types.NamespacedName{Namespace: "elsewhere", Name: "landwaiter"}, ClusterResources: "elsewhere"}
	require.Contains(t, g.Policy("tokens").Spec.MatchConditions[0].Expression, "system:serviceaccount:elsewhere:landwaiter")
	for _, name := range GuardrailNames() {
		require.Empty(t, g.changed(name, g.Policy(name)), name)
		changed := g.Policy(name).DeepCopy()
		changed.Spec.Validations[0].Expression = "1 == 1"
		require.Equal(t, "its rules differ from this version of Landwaiter", g.changed(name, changed), name)
		renamed := Guardrails{Release: types.NamespacedName{Namespace: "elsewhere", Name: "lw"}}
		require.False(t, renamed.Comparable())
		require.Empty(t, renamed.changed(name, changed), "another release cannot be compared")
	}
}

// The chart adds the cluster resource namespace to those that no Tenant has; any other makes other rules.
func TestAGuardrailIsComparedWithTheClusterResourceNamespace(t *testing.T) {
	shipped, err := shippedGuardrails(ShippedNamespace, "keys")
	require.NoError(t, err)
	g := Guardrails{Policies: shipped, Release: types.NamespacedName{Namespace: ShippedNamespace, Name: ShippedRelease}, ClusterResources: "keys"}
	var differ []string
	for _, name := range GuardrailNames() {
		require.Empty(t, g.changed(name, g.Policy(name)), name)
		g.ClusterResources = "team-a"
		if g.changed(name, g.Policy(name)) != "" {
			differ = append(differ, name)
		}
		g.ClusterResources = ""
		require.False(t, g.Comparable())
		require.Empty(t, g.changed(name, g.Policy(name)), name)
		g.ClusterResources = "keys"
	}
	require.Equal(t, []string{"namespace-deletion", "namespace-names", "operator-guardrail"}, differ)
	usual, err := shippedGuardrails("flux-system", "flux-system")
	require.NoError(t, err)
	require.Contains(t, usual[len(usual)-1].Name+rules(&usual[0], "")+rules(&usual[5], ""), "['default', 'flux-system', 'gatekeeper-system']",
		"a name is listed once, as the chart does")
}

// Where rules cannot be compared, that is said, and nothing looks sound.
func TestGuardrailsThatCannotBeComparedAreNotChecked(t *testing.T) {
	shipped, err := ShippedGuardrails(ShippedNamespace)
	require.NoError(t, err)
	for i := range shipped {
		shipped[i].Spec.Validations = []admissionv1.Validation{{Expression: "true"}}
	}
	i := &Inventory{Options: Options{Namespace: ShippedNamespace, Only: GuardrailIDs()}, Policies: shipped}
	for _, p := range shipped {
		i.Bindings = append(i.Bindings,
			admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: p.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
				ParamRef: &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}}}})
	}
	report := Examine(i, nil)
	require.Len(t, report.Unchecked, 1)
	require.Equal(t, []string{GuardrailChanged}, report.Unchecked[0].IDs)
	require.Contains(t, report.Unchecked[0].Why, "--landwaiter-account")

	serve := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ShippedNamespace, Name: ShippedRelease}}
	serve.Spec.Template.Spec.ServiceAccountName = ShippedRelease
	serve.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"--log-level=debug", "serve", "--cluster-resource-namespace="}}}
	i.Landwaiters = []appsv1.Deployment{serve}
	report = Examine(i, nil)
	require.Empty(t, report.Unchecked)
	require.Len(t, report.Findings, 11, "each that is not the operator's")

	serve.Spec.Template.Spec.ServiceAccountName = "other"
	i.Landwaiters = []appsv1.Deployment{serve}
	report = Examine(i, nil)
	require.Len(t, report.Unchecked, 1)
	require.Empty(t, report.Findings)
}

func TestAGuardrailHoldsOnlyWithAPolicyAndABindingThatDenyEverywhere(t *testing.T) {
	fail, ignore := admissionv1.Fail, admissionv1.Ignore
	sound := func() Guardrails { // of another release, so that nothing is compared
		return Guardrails{Release: types.NamespacedName{Namespace: "lw-system", Name: "lw"},
			Policies: []admissionv1.ValidatingAdmissionPolicy{
				{ObjectMeta: metav1.ObjectMeta{Name: "lw-namespace-names"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
					FailurePolicy: &fail, ParamKind: &admissionv1.ParamKind{Kind: "Tenant"}, Validations: []admissionv1.Validation{{Expression: "false"}},
					MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{}}}}}},
			Bindings: []admissionv1.ValidatingAdmissionPolicyBinding{{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "lw-namespace-names", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
				ParamRef: &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}}}}},
		}
	}
	require.Empty(t, sound().Faults("namespace-names"))
	type (
		policy  = admissionv1.ValidatingAdmissionPolicy
		binding = admissionv1.ValidatingAdmissionPolicyBinding
	)
	for name, c := range map[string]struct {
		spoil    func(*policy, *binding)
		id, says string
	}{
		"fails open":      {func(p *policy, _ *binding) { p.Spec.FailurePolicy = &ignore }, GuardrailFailsOpen, "failurePolicy Ignore"},
		"says nothing":    {func(p *policy, _ *binding) { p.Spec.Validations = nil }, GuardrailChanged, "no validations"},
		"matches nothing": {func(p *policy, _ *binding) { p.Spec.MatchConstraints.ResourceRules = nil }, GuardrailChanged, "excludes resources"},
		"another name":    {func(p *policy, _ *binding) { p.Name = "x" }, GuardrailMissing, "does not exist"},
		"not bound":       {func(_ *policy, b *binding) { b.Spec.PolicyName = "x" }, GuardrailMissing, "no ValidatingAdmissionPolicyBinding"},
		"only audits": {func(_ *policy, b *binding) {
			b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
		},
			GuardrailNotDeny, "instead of Deny"},
		"some namespaces": {func(_ *policy, b *binding) {
			b.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
		}, GuardrailNotDeny, "matchResources"},
		"for one Tenant":   {func(_ *policy, b *binding) { b.Spec.ParamRef = &admissionv1.ParamRef{Name: "a"} }, GuardrailNotDeny, "every Tenant"},
		"for some Tenants": {func(_ *policy, b *binding) { b.Spec.ParamRef.Selector.MatchLabels = map[string]string{"a": "b"} }, GuardrailNotDeny, "every Tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			g := sound()
			c.spoil(&g.Policies[0], &g.Bindings[0])
			found := g.Faults("namespace-names")
			require.Len(t, found, 1)
			require.Equal(t, c.id, found[0].ID)
			require.Contains(t, found[0].Message, c.says)
			require.NotEmpty(t, found[0].Command)
		})
	}
	labelled := sound()
	labelled.Release.Name = "other"
	require.NotEmpty(t, labelled.Faults("namespace-names"))
	labelled.Policies[0].Labels = map[string]string{"app.kubernetes.io/name": "landwaiter"}
	require.Empty(t, labelled.Faults("namespace-names"), "the chart's label tells whose policy it is")
}
