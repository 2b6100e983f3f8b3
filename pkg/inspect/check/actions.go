package check

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// What Gatekeeper does about a pod that violates a constraint, the weakest first.
const (
	ActionNone   = "not asked"
	ActionDryRun = "dryrun"
	ActionWarn   = "warn"
	ActionDeny   = "deny"
)

// Actions returns the strongest action of any constraint for pods of each namespace. A constraint that
// only matches some pods of a namespace does not count. It returns nil if constraints or namespaces
// could not be read.
func (i *Inventory) Actions() map[string]string {
	for _, source := range []Source{SourceConstraints, SourceNamespaces} {
		if _, unread := i.Unread[source]; unread {
			return nil
		}
	}
	order := []string{ActionNone, ActionDryRun, ActionWarn, ActionDeny}
	found := map[string]string{}
	for n := range i.Namespaces {
		name, has := i.Namespaces[n].Name, i.Namespaces[n].Labels
		strongest := ActionNone
		for c := range i.Constraints {
			if action := actionOf(&i.Constraints[c]); slices.Index(order, action) > slices.Index(order, strongest) && matchesNamespace(&i.Constraints[c], name, has) {
				strongest = action
			}
		}
		if _, ignored := has[ignoreLabel]; ignored {
			strongest = ActionNone
		}
		found[name] = strongest
	}
	return found
}

// actionOf returns what a constraint does at admission.
func actionOf(c *unstructured.Unstructured) string {
	if denies(c) {
		return ActionDeny
	}
	action, _, _ := unstructured.NestedString(c.Object, "spec", "enforcementAction")
	if action != "scoped" {
		return known(action)
	}
	strongest := ActionNone
	scoped, _, _ := unstructured.NestedSlice(c.Object, "spec", "scopedEnforcementActions")
	for _, entry := range scoped {
		m, _ := entry.(map[string]any)
		action, _ := m["action"].(string)
		if known(action) == ActionWarn || strongest == ActionNone {
			strongest = known(action)
		}
	}
	return strongest
}

// known returns an action that denies nothing, ActionNone for words that nothing is known of.
func known(action string) string {
	if action == ActionWarn || action == ActionDryRun {
		return action
	}
	return ActionNone
}

// matchesNamespace reports whether a constraint is about all pods of a namespace.
func matchesNamespace(c *unstructured.Unstructured, name string, has map[string]string) bool {
	match, _, _ := unstructured.NestedMap(c.Object, "spec", "match")
	if !matchesPods(c) || match["scope"] == "Cluster" || match["source"] == "Generated" {
		return false
	}
	if own, ok := match["name"].(string); ok && own != "" && own != "*" {
		return false
	}
	if selector, ok := match["labelSelector"].(map[string]any); ok && len(selector) > 0 {
		return false
	}
	if wanted, _, _ := unstructured.NestedStringSlice(match, "namespaces"); len(wanted) > 0 && !someCovers(wanted, name) {
		return false
	}
	if excluded, _, _ := unstructured.NestedStringSlice(match, "excludedNamespaces"); someCovers(excluded, name) {
		return false
	}
	fields, ok := match["namespaceSelector"].(map[string]any)
	if !ok {
		return true
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return false
	}
	compiled, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && compiled.Matches(labels.Set(withName(has, name)))
}

// someCovers reports whether a pattern has a name: a star stands for any text at its beginning or end.
func someCovers(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		begin, beginning := strings.CutSuffix(pattern, "*")
		end, ending := strings.CutPrefix(begin, "*")
		switch {
		case beginning && ending:
			return strings.Contains(name, end)
		case beginning:
			return strings.HasPrefix(name, begin)
		case ending:
			return strings.HasSuffix(name, end)
		}
		return pattern == name
	})
}
