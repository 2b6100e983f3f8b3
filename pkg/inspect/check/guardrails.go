package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/library"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about guardrails.
const (
	GuardrailMissing   = "GuardrailMissing"
	GuardrailChanged   = "GuardrailChanged"
	GuardrailFailsOpen = "GuardrailFailsOpen"
	GuardrailNotDeny   = "GuardrailNotDeny"
)

// GuardrailIDs are their IDs.
func GuardrailIDs() []string {
	return []string{GuardrailMissing, GuardrailChanged, GuardrailFailsOpen, GuardrailNotDeny}
}

const guardrailWhy = "teams can then change the labels that make namespaces theirs, or reach into other namespaces"

// fullname is the name of the chart's objects.
func (v *view) fullname() string {
	if v.serve != nil {
		return v.serve.Name
	}
	return "landwaiter"
}

// guardrails compares the installed guardrails with those of this version. An installation without
// Tenants needs none, unless serve trusts labels that guardrails protect.
func guardrails(v *view, add func(resource.Finding)) {
	needed := slices.ContainsFunc(v.Resources, func(o v1beta1.Object) bool { _, is := o.(*v1beta1.Tenant); return is }) ||
		!slices.Contains([]string{"", "0", "0s"}, v.serve.last("break-glass", ""))
	g, names := v.guardrails(), GuardrailNames()
	for _, name := range names {
		needed = needed || g.Policy(name) != nil
	}
	if !needed {
		return
	}
	for _, name := range names {
		if g.Needs(name) {
			for _, f := range g.Faults(name) {
				add(f)
			}
		}
	}
}

// uncompared says why the rules of the existing guardrails cannot be compared, "" if they
// can.
func uncompared(v *view) []resource.Unchecked {
	g := v.guardrails()
	if g.Comparable() || !slices.ContainsFunc(GuardrailNames(), func(name string) bool { return g.Policy(name) != nil }) {
		return nil
	}
	why := "the rules of guardrails are only compared if the release and its ServiceAccount are called landwaiter: see " +
		"docs/reference/findings.md"
	if v.serve == nil {
		why = fmt.Sprintf("no Deployment of namespace %s runs landwaiter-server serve, so the rules of guardrails cannot be compared: use "+
			"--landwaiter-account", v.Namespace)
	}
	return []resource.Unchecked{{IDs: []string{GuardrailChanged}, Why: why}}
}

// guardrails returns the guardrails of the cluster, with their installation as far as serve
// shows it.
func (v *view) guardrails() Guardrails {
	g := Guardrails{Policies: v.Policies, Bindings: v.Bindings, Bindable: Bindable(v.ClusterRoles, v.fullname()),
		Release:  types.NamespacedName{Namespace: v.Namespace, Name: v.fullname()},
		Operated: slices.ContainsFunc(programs(v.Landwaiters), func(p *program) bool { return p.runs("operate") })}
	if v.serve == nil || v.serve.account != ShippedRelease {
		return g
	}
	g.ClusterResources = cmp.Or(v.serve.last("cluster-resource-namespace", ""), v.Namespace)
	if g.ClusterResources == "$(POD_NAMESPACE)" { // which the kubelet replaces
		g.ClusterResources = v.Namespace
	}
	if len(v.serve.flags("provider-object")) > 0 { // else nothing says where Gatekeeper reaches it
		g.Address = v.serve.last("provider-url", "https://"+v.serve.last("service-name", ShippedRelease)+"."+v.Namespace+".svc:443")
	}
	return g
}

// Guardrails are the guardrails of a cluster.
type Guardrails struct {
	Policies []admissionv1.ValidatingAdmissionPolicy
	Bindings []admissionv1.ValidatingAdmissionPolicyBinding
	// Release is the name of the installation's objects, and their namespace.
	Release types.NamespacedName
	// ClusterResources is the namespace that cluster resources reference, which the rules name.
	// Empty means that it is unknown, and that rules are not compared.
	ClusterResources string
	// Address is where Gatekeeper reaches Landwaiter, without a path, which the rules name. Empty means
	// that it is unknown, and that any counts.
	Address string
	// Operated says that the operator runs, which has its own guardrails.
	Operated bool
	// Bindable are the ClusterRoles that the operator may bind, as [Bindable] returns them: the rules
	// name them. Empty means those that every installation has.
	Bindable []string
}

// GuardrailNames are the names of the guardrails of this version without the release's, in the
// order of the chart.
func GuardrailNames() []string {
	shipped, err := ShippedGuardrails(ShippedNamespace)
	if err != nil {
		return nil // they are embedded, and tests read them
	}
	var names []string
	for i := range shipped {
		names = append(names, strings.TrimPrefix(shipped[i].Name, ShippedRelease+"-"))
	}
	return names
}

// Needs reports whether an installation needs a guardrail: without the operator, its guardrails limit
// nobody.
func (g Guardrails) Needs(name string) bool {
	return g.Operated || !strings.HasPrefix(name, "operator-")
}

// Install returns the command that installs the guardrails of this version.
func (g Guardrails) Install() string { return upgrade(g.Release, "guardrails.enabled=true") }

// Policy returns the policy of a guardrail, or nil: the one of the release, or one with the
// chart's label.
func (g Guardrails) Policy(name string) *admissionv1.ValidatingAdmissionPolicy {
	labelled := -1
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.Name == g.Release.Name+"-"+name {
			return p
		}
		if strings.HasSuffix(p.Name, "-"+name) && p.Labels["app.kubernetes.io/name"] == ShippedRelease {
			labelled = i
		}
	}
	if labelled < 0 {
		return nil
	}
	return &g.Policies[labelled]
}

// Comparable reports whether the rules of the guardrails can be compared with those of this
// version, whose expressions contain the accounts of a release with the usual name.
func (g Guardrails) Comparable() bool {
	return g.Release.Name == ShippedRelease && g.ClusterResources != ""
}

// Faults returns what makes a guardrail ineffective.
func (g Guardrails) Faults(name string) (found []resource.Finding) {
	add := func(f resource.Finding) {
		f.Severity, f.Why = resource.Error, guardrailWhy
		found = append(found, f)
	}
	live := g.Policy(name)
	if live == nil {
		add(resource.Finding{ID: GuardrailMissing, Object: builtin("ValidatingAdmissionPolicy", "", g.Release.Name+"-"+name).ObjectRef,
			Message: "the guardrail does not exist", Command: g.Install(), Keep: keepGuardrails})
		return found
	}
	of := builtin("ValidatingAdmissionPolicy", "", live.Name)
	bindings := slices.DeleteFunc(slices.Clone(g.Bindings), func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
		return b.Spec.PolicyName != live.Name
	})
	if len(bindings) == 0 {
		add(resource.Finding{ID: GuardrailMissing, Object: of.ObjectRef, Message: "no ValidatingAdmissionPolicyBinding references the guardrail",
			Command: g.Install(), Keep: keepGuardrails})
		return found
	}
	if live.Spec.FailurePolicy != nil && *live.Spec.FailurePolicy != admissionv1.Fail {
		add(resource.Finding{ID: GuardrailFailsOpen, Object: of.ObjectRef,
			Message: fmt.Sprintf("it has failurePolicy %s", *live.Spec.FailurePolicy),
			Command: of.merge(map[string]any{"spec": map[string]any{"failurePolicy": "Fail"}})})
	}
	if what := g.changed(name, live); what != "" {
		add(resource.Finding{ID: GuardrailChanged, Object: of.ObjectRef, Message: what, Command: g.Install(),
			Keep: "use the same version of the command and of the chart"})
	}
	// several add up
	if !slices.ContainsFunc(bindings, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return gap(live, &b) == "" }) {
		b := bindings[0]
		bound := builtin("ValidatingAdmissionPolicyBinding", "", b.Name)
		mended := map[string]any{"validationActions": []string{"Deny"}, "matchResources": nil}
		if live.Spec.ParamKind != nil {
			mended["paramRef"] = map[string]any{"name": nil, "namespace": nil,
				"selector": map[string]any{"matchLabels": nil, "matchExpressions": nil}, "parameterNotFoundAction": "Allow"}
		}
		add(resource.Finding{ID: GuardrailNotDeny, Object: bound.ObjectRef, Message: "its binding does not deny everywhere: it " + gap(live, &b),
			Command: bound.merge(map[string]any{"spec": mended})})
	}
	return found
}

// keepGuardrails is the setting that keeps the guardrails.
const keepGuardrails = "the chart's value guardrails.enabled: true"

// changed describes how the rules of a policy differ from those of this version, "" if they do not,
// or if they cannot be compared and may have an effect.
func (g Guardrails) changed(name string, live *admissionv1.ValidatingAdmissionPolicy) string {
	switch m := live.Spec.MatchConstraints; {
	case len(live.Spec.Validations) == 0:
		return "it has no validations"
	case m == nil || len(m.ResourceRules) == 0 || len(m.ExcludeResourceRules) > 0:
		return "it excludes resources"
	}
	shipped, err := shippedGuardrails(g.Release.Namespace, g.ClusterResources)
	at := slices.IndexFunc(shipped, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == ShippedRelease+"-"+name })
	if !g.Comparable() || err != nil || at < 0 || rules(live, g.Address) == g.bindable(rules(&shipped[at], g.Address)) {
		return ""
	}
	return "its rules differ from this version of Landwaiter"
}

// Names with which the embedded guardrails are rendered.
const (
	ShippedRelease   = "landwaiter"
	ShippedNamespace = "landwaiter-system"
)

// ShippedGuardrails returns the guardrails of this version, the ValidatingAdmissionPolicies that
// isolate teams, in the order of the chart, for an installation named [ShippedRelease] in a
// namespace. It only fails if this program was built from a broken file.
func ShippedGuardrails(namespace string) ([]admissionv1.ValidatingAdmissionPolicy, error) {
	return shippedGuardrails(namespace, namespace)
}

// shippedGuardrails also returns them for a separate cluster resource namespace: no Tenant may
// have it, nor the system's namespaces.
func shippedGuardrails(namespace, clusterResources string) ([]admissionv1.ValidatingAdmissionPolicy, error) {
	text, err := config.Files.ReadFile("guardrails/guardrails.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the guardrails of this version: %w", err)
	}
	text = bytes.ReplaceAll(text, []byte(ShippedNamespace), []byte(namespace))
	// see rules
	text = bytes.ReplaceAll(text, []byte("https://landwaiter."+namespace+".svc:443/"),
		[]byte("https://landwaiter."+ShippedNamespace+".svc:443/"))
	// as the chart lists them
	var system []string
	for _, name := range []string{"default", "flux-system", "gatekeeper-system", namespace, clusterResources} {
		if !slices.Contains(system, "'"+name+"'") {
			system = append(system, "'"+name+"'")
		}
	}
	text = bytes.ReplaceAll(text, []byte("'default', 'flux-system', 'gatekeeper-system', '"+namespace+"']"),
		[]byte(strings.Join(system, ", ")+"]"))
	var all []admissionv1.ValidatingAdmissionPolicy
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var p admissionv1.ValidatingAdmissionPolicy
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the guardrails of this version: %w", err)
		}
		if p.Kind == "ValidatingAdmissionPolicy" {
			all = append(all, p)
		}
	}
}

// rules returns a policy's rules as text, without the API server's defaults. Policies with the same
// text are equivalent. The address of Landwaiter is a setting of the chart: the given one is as good
// as the chart's own, and without one, any is.
func rules(p *admissionv1.ValidatingAdmissionPolicy, address string) string {
	type rule struct {
		Groups, Versions, Resources, Names []string
		Operations                         []admissionv1.OperationType
		Scope                              admissionv1.ScopeType
	}
	var constraints []any
	if m := p.Spec.MatchConstraints; m != nil {
		for _, list := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
			var rules []rule
			for _, r := range list {
				rules = append(rules,
					rule{r.APIGroups, r.APIVersions, r.Resources, r.ResourceNames, r.Operations, filled(r.Scope, admissionv1.AllScopes)})
			}
			constraints = append(constraints, rules)
		}
		constraints = append(constraints, selected(m.NamespaceSelector), selected(m.ObjectSelector),
			filled(m.MatchPolicy, admissionv1.Equivalent))
	}
	text, err := json.Marshal([]any{constraints, p.Spec.MatchConditions, p.Spec.Variables, p.Spec.Validations, p.Spec.ParamKind})
	if err != nil {
		return p.Name + ": " + err.Error() // unreachable: policies were read from JSON
	}
	const usual = "'https://landwaiter/"
	if address == "" {
		return regexp.MustCompile(`'https://[^/']+/`).ReplaceAllString(string(text), usual)
	}
	return strings.NewReplacer("'"+address+"/", usual, "'https://landwaiter."+ShippedNamespace+".svc:443/", usual).Replace(string(text))
}

// filled returns a value, or the API server's default for none.
func filled[T any](value *T, without T) T {
	if value == nil {
		return without
	}
	return *value
}

// gap says where a binding does not put its policy in force, empty if it covers everything.
func gap(p *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding) string {
	switch m := b.Spec.MatchResources; {
	case !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny):
		return fmt.Sprintf("has validationActions %v instead of Deny", b.Spec.ValidationActions)
	case m != nil && len(m.ResourceRules)+len(m.ExcludeResourceRules)+terms(m.NamespaceSelector)+terms(m.ObjectSelector) > 0:
		return "has matchResources, so the guardrail does not apply everywhere"
	case p.Spec.ParamKind != nil && !everyParam(b.Spec.ParamRef):
		return "does not apply to every " + p.Spec.ParamKind.Kind
	}
	return ""
}

// everyParam reports whether a binding selects all objects of the kind as parameters.
func everyParam(ref *admissionv1.ParamRef) bool {
	return ref != nil && ref.Name == "" && ref.Namespace == "" && ref.Selector != nil && terms(ref.Selector) == 0
}

// terms is how many conditions a selector has.
func terms(s *metav1.LabelSelector) int {
	if s == nil {
		return 0
	}
	return len(s.MatchLabels) + len(s.MatchExpressions)
}

// selected returns a selector as text; nil selects like an empty one.
func selected(s *metav1.LabelSelector) string {
	if s == nil {
		s = &metav1.LabelSelector{}
	}
	return metav1.FormatLabelSelector(s)
}

// libraryRego returns the Rego of the library's template, empty if it cannot be read, which
// a test excludes.
func libraryRego() string {
	text, err := library.Files.ReadFile("verified-images/template.yaml")
	if err != nil {
		return ""
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return ""
	}
	return regoOf(object)
}

// knownConditions returns the match conditions of config/gatekeeper/values.yaml for one of the webhooks, squeezed.
// The validating webhook must see images that the mutating one may omit.
func knownConditions(mutating bool) []string {
	text, err := config.Files.ReadFile("gatekeeper/values.yaml")
	if err != nil {
		return nil
	}
	var values struct {
		Validating []admissionv1.MatchCondition `json:"validatingWebhookMatchConditions"`
		Mutating   []admissionv1.MatchCondition `json:"mutatingWebhookMatchConditions"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil
	}
	conditions := values.Validating
	if mutating {
		conditions = values.Mutating
	}
	var all []string
	for _, c := range conditions {
		all = append(all, squeezed(c.Expression))
	}
	return all
}
