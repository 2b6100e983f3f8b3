package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about the template and the constraints that make Gatekeeper ask.
const (
	NoTemplate       = "NoTemplate"
	TemplateChanged  = "TemplateChanged"
	NoConstraint     = "NoConstraint"
	NothingDenied    = "NothingDenied"
	ConstraintKinds  = "ConstraintKinds"
	ConstraintExempt = "ConstraintExempt"
	ImagesExempt     = "ImagesExempt"
)

const (
	constraintKind  = constraint.Kind
	templateName    = "verifiedimages"
	defaultProvider = "landwaiter-verdict"
	applyConstraint = "kubectl apply --filename=library/verified-images/samples/constraint.yaml"
	applyRehearsal  = "kubectl apply --filename=library/verified-images/samples/constraint-dryrun.yaml"
)

func constraintOf(c *unstructured.Unstructured) target {
	return target{policy.ObjectRef{Kind: constraintKind, Name: c.GetName()}, "constraints.gatekeeper.sh"}
}

// constraintProviders returns the Providers that a constraint uses, the one for admission first.
func constraintProviders(c *unstructured.Unstructured) []string {
	name, _, _ := unstructured.NestedString(c.Object, "spec", "parameters", "provider")
	names := []string{cmp.Or(name, defaultProvider)}
	if audit, _, _ := unstructured.NestedString(c.Object, "spec", "parameters", "auditProvider"); audit != "" {
		names = append(names, audit)
	}
	return names
}

// template compares the installed template with the library's.
func template(v *view, add func(resource.Finding)) {
	const apply = "kubectl apply --server-side --force-conflicts --filename=library/verified-images/template.yaml"
	ref := policy.ObjectRef{Kind: "ConstraintTemplate", Name: templateName}
	at := slices.IndexFunc(v.Templates, func(o unstructured.Unstructured) bool { return o.GetName() == templateName })
	if at < 0 {
		add(resource.Finding{ID: NoTemplate, Severity: resource.Error, Object: ref, Message: "it does not exist",
			Why: "without it, there can be no constraint, and Gatekeeper never asks Landwaiter", Command: apply})
		return
	}
	if regoOf(&v.Templates[at]) == libraryRego() {
		return
	}
	add(resource.Finding{ID: TemplateChanged, Severity: resource.Warning, Object: ref,
		Message: "its Rego differs from this version of the library",
		Why:     "what this Rego admits was not tested", Command: apply,
		Keep: "library/verified-images/template.yaml, wherever you apply it from"})
}

// regoOf returns the text of all Rego of a template.
func regoOf(o *unstructured.Unstructured) string {
	var text strings.Builder
	targets, _, _ := unstructured.NestedSlice(o.Object, "spec", "targets")
	for _, entry := range targets {
		m, _ := entry.(map[string]any)
		old, _, _ := unstructured.NestedString(m, "rego")
		text.WriteString(old)
		codes, _, _ := unstructured.NestedSlice(m, "code")
		for _, code := range codes {
			c, _ := code.(map[string]any)
			rego, _, _ := unstructured.NestedString(c, "source", "rego")
			text.WriteString(rego)
		}
	}
	return text.String()
}

// constraints looks for a constraint that denies in all namespaces that may not be exempt.
func constraints(v *view, add func(resource.Finding)) {
	if len(v.Constraints) == 0 {
		add(resource.Finding{ID: NoConstraint, Severity: resource.Error, Object: policy.ObjectRef{Kind: "ConstraintTemplate", Name: templateName},
			Message: "there is no constraint of kind " + constraintKind,
			Why:     "Gatekeeper never asks Landwaiter, so every image is admitted; a dry run first shows what would be denied",
			Command: applyRehearsal})
		return
	}
	var denying []*unstructured.Unstructured
	for i := range v.Constraints {
		if constraint.ModeOf(&v.Constraints[i]) == constraint.Deny {
			denying = append(denying, &v.Constraints[i])
		}
	}
	if len(denying) == 0 {
		add(v.nothingDenied())
		return
	}
	pods := slices.DeleteFunc(slices.Clone(denying), func(c *unstructured.Unstructured) bool { return !constraint.MatchesPods(c) })
	if len(pods) == 0 {
		c := denying[0]
		entry := operation{"add", "/spec/match/kinds/-", map[string]any{"apiGroups": []string{""}, "kinds": []string{"Pod"}}}
		add(resource.Finding{ID: ConstraintKinds, Severity: resource.Error, Object: constraintOf(c).ObjectRef,
			Message: "no constraint that denies matches Pods",
			Why:     "anyone who creates a Pod directly, or through a kind that is not matched, can run any image",
			Command: constraintOf(c).patch(entry), Keep: "spec.match.kinds of the constraint"})
		return
	}
	v.constraintLimits(pods, add)
	v.imagesExempt(pods, add)
}

// imagesExempt finds the images that no constraint asks about, although it matches their pods. One
// constraint that denies everywhere without exempt images is enough.
func (v *view) imagesExempt(pods []*unstructured.Unstructured, add func(resource.Finding)) {
	judging := slices.DeleteFunc(slices.Clone(pods), func(c *unstructured.Unstructured) bool {
		limits, _ := v.limits(c)
		return len(limits) > 0
	})
	if len(judging) == 0 {
		judging = pods
	}
	intended := func(image string) bool { return slices.Contains(v.ExemptImages, image) }
	left := func(c *unstructured.Unstructured) []string {
		return slices.DeleteFunc(slices.Clone(constraint.ExemptImages(c)), intended)
	}
	images := slices.DeleteFunc(constraint.NeverAsked(judging), intended)
	if len(images) == 0 {
		return
	}
	fewest := slices.MinFunc(judging, func(a, b *unstructured.Unstructured) int { return len(left(a)) - len(left(b)) })
	kept := slices.DeleteFunc(slices.Clone(constraint.ExemptImages(fewest)), func(image string) bool { return !intended(image) })
	operations := operation{Op: "remove", Path: "/spec/parameters/exemptImages"}
	if len(kept) > 0 {
		operations = operation{"replace", "/spec/parameters/exemptImages", kept}
	}
	add(resource.Finding{ID: ImagesExempt, Severity: resource.Warning, Object: constraintOf(fewest).ObjectRef,
		Message: "spec.parameters.exemptImages leaves out " + named(images),
		Why:     "these images are admitted unverified in every namespace, whatever policies say",
		Command: constraintOf(fewest).patch(operations),
		Keep:    "spec.parameters.exemptImages of the constraint"})
}

// nothingDenied is the finding if no constraint denies. It keeps a constraint whose name says
// that it does not deny, and applies one that denies.
func (v *view) nothingDenied() resource.Finding {
	c := &v.Constraints[0]
	command, keep := applyConstraint, "a constraint that denies, wherever you apply constraints from"
	at := slices.IndexFunc(v.Constraints, func(c unstructured.Unstructured) bool {
		return !strings.HasSuffix(c.GetName(), "-dryrun") && !strings.HasSuffix(c.GetName(), "-warn")
	})
	if at >= 0 {
		c = &v.Constraints[at]
		command = constraintOf(c).merge(map[string]any{"spec": map[string]any{"enforcementAction": "deny", "scopedEnforcementActions": nil}})
		keep = "spec.enforcementAction of the constraint"
	}
	action, _, _ := unstructured.NestedString(c.Object, "spec", "enforcementAction")
	return resource.Finding{ID: NothingDenied, Severity: resource.Error, Object: constraintOf(c).ObjectRef,
		Message: fmt.Sprintf("no constraint denies; the enforcementAction of this one is %s", action),
		Why: "violations are only listed or warned about, so every image is admitted; to see what this command would deny, run: " +
			"landwaiter status -A",
		Command: command, Keep: keep}
}

// constraintLimits finds what all constraints exclude: each has some limit, and together they
// may not cover everything.
func (v *view) constraintLimits(pods []*unstructured.Unstructured, add func(resource.Finding)) {
	var said [][]string
	var commands []string
	for _, c := range pods {
		limits, operations := v.limits(c)
		if len(limits) == 0 {
			return
		}
		said, commands = append(said, limits), append(commands, constraintOf(c).patch(operations...))
	}
	widest := 0
	for i := range said {
		if len(said[i]) < len(said[widest]) {
			widest = i
		}
	}
	add(resource.Finding{ID: ConstraintExempt, Severity: resource.Error, Object: constraintOf(pods[widest]).ObjectRef,
		Message: "no constraint denies everywhere; this one is limited by " + strings.Join(said[widest], ", "),
		Why:     "objects outside the match are admitted unverified", Command: commands[widest], Keep: "spec.match of the constraint"})
}

// limits returns the fields of spec.match by which a constraint excludes something that may
// not be exempt, and the operations that remove them.
func (v *view) limits(c *unstructured.Unstructured) (limits []string, operations []operation) {
	match, _, _ := unstructured.NestedMap(c.Object, "spec", "match")
	for _, field := range []string{"namespaces", "namespaceSelector", "labelSelector", "name"} {
		value, ok := match[field]
		list, _ := value.([]any)
		m, isMap := value.(map[string]any)
		if !ok || slices.Contains(list, any("*")) || value == "*" || isMap && len(m) == 0 {
			continue
		}
		limits, operations = append(limits, "spec.match."+field), append(operations, operation{Op: "remove", Path: "/spec/match/" + field})
	}
	for _, limiting := range [][2]string{{"scope", "Cluster"}, {"source", "Generated"}} {
		if field := limiting[0]; match[field] == limiting[1] {
			limits, operations = append(limits, "spec.match."+field), append(operations, operation{Op: "remove", Path: "/spec/match/" + field})
		}
	}
	excluded, _, _ := unstructured.NestedStringSlice(match, "excludedNamespaces")
	if left := v.beyond(excluded); len(left) > 0 {
		kept := slices.DeleteFunc(slices.Clone(excluded), func(name string) bool { return slices.Contains(left, name) })
		limits = append(limits, "spec.match.excludedNamespaces ("+named(left)+")")
		operations = append(operations, operation{"replace", "/spec/match/excludedNamespaces", kept})
	}
	return limits, operations
}
