// Package constraint reads Gatekeeper's constraints: their actions, and where they apply. It
// is pure, and refuses to judge which objects a constraint matches within a namespace.
package constraint

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Kind is the kind of constraints about images.
const Kind = "VerifiedImages"

// Mode is what Gatekeeper does with a violation at admission.
type Mode string

// The modes, as Gatekeeper's enforcementAction names them. None means that it does nothing.
const (
	Deny   Mode = "deny"
	Warn   Mode = "warn"
	Dryrun Mode = "dryrun"
	None   Mode = "none"
)

// admissionPoint is the enforcement point of Gatekeeper's validating webhook.
const admissionPoint = "validation.gatekeeper.sh"

// Stricter returns the stricter of two modes. A mode that this package does not name is the least
// strict.
func Stricter(a, b Mode) Mode {
	strictness := []Mode{None, Dryrun, Warn, Deny}
	if slices.Index(strictness, a) > slices.Index(strictness, b) {
		return a
	}
	return b
}

// ModeIn returns the strictest mode of the constraints that match all pods of a namespace with its
// labels.
func ModeIn(constraints []unstructured.Unstructured, namespace string, of map[string]string) Mode {
	mode, _ := deciding(constraints, namespace, of)
	return mode
}

// ImagesExemptIn returns the entries of exemptImages for which [ModeIn] does not apply in a namespace with its
// labels.
func ImagesExemptIn(constraints []unstructured.Unstructured, namespace string, of map[string]string) []string {
	_, judging := deciding(constraints, namespace, of)
	return NeverAsked(judging)
}

// deciding returns the strictest mode of the constraints that match all pods of a namespace, and the constraints
// with that mode.
func deciding(constraints []unstructured.Unstructured, namespace string,
	of map[string]string) (mode Mode, judging []*unstructured.Unstructured) {
	mode = None
	if Ignored(of) {
		return mode, nil
	}
	for i := range constraints {
		c := &constraints[i]
		if !MatchesPods(c) || !Whole(c) || !MatchesNamespace(c, namespace, of) || Stricter(mode, ModeOf(c)) != ModeOf(c) || ModeOf(c) == None {
			continue
		}
		if ModeOf(c) != mode {
			mode, judging = ModeOf(c), nil
		}
		judging = append(judging, c)
	}
	return mode, judging
}

// NeverAsked returns the entries of exemptImages that every one of constraints has: Gatekeeper asks about all other
// images.
func NeverAsked(constraints []*unstructured.Unstructured) (entries []string) {
	for _, c := range constraints {
		for _, entry := range ExemptImages(c) {
			asked := slices.ContainsFunc(constraints, func(other *unstructured.Unstructured) bool { return !LeftOut(ExemptImages(other), entry) })
			if !asked && !slices.Contains(entries, entry) {
				entries = append(entries, entry)
			}
		}
	}
	return entries
}

// LeftOut reports whether entries of exemptImages match an image as a pod writes it, or all images of an entry.
func LeftOut(entries []string, image string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool {
		path, below := strings.CutSuffix(entry, "*")
		return image == entry || below && strings.HasSuffix(path, "/") && strings.HasPrefix(image, path)
	})
}

// ExemptImages returns the images that a constraint exempts: as pods write them, or all below a path that ends in /*.
func ExemptImages(c *unstructured.Unstructured) []string {
	found, _, _ := unstructured.NestedStringSlice(c.Object, "spec", "parameters", "exemptImages")
	return found
}

// ModeOf returns the mode of a constraint at admission: the strictest action if it has
// several.
func ModeOf(c *unstructured.Unstructured) Mode {
	action, _, _ := unstructured.NestedString(c.Object, "spec", "enforcementAction")
	switch action {
	case "":
		return Deny
	case "scoped":
	default:
		return Stricter(None, Mode(action))
	}
	mode := None
	scoped, _, _ := unstructured.NestedSlice(c.Object, "spec", "scopedEnforcementActions")
	for _, entry := range scoped {
		m, _ := entry.(map[string]any)
		points, _, _ := unstructured.NestedSlice(m, "enforcementPoints")
		atAdmission := slices.ContainsFunc(points, func(p any) bool {
			point, _ := p.(map[string]any)
			return point["name"] == "*" || point["name"] == admissionPoint
		})
		if action, _ := m["action"].(string); atAdmission {
			mode = Stricter(mode, Mode(action))
		}
	}
	return mode
}

// MatchesPods reports whether spec.match.kinds includes Pods. Without it, a constraint
// matches all kinds.
func MatchesPods(c *unstructured.Unstructured) bool {
	kinds, ok, _ := unstructured.NestedSlice(c.Object, "spec", "match", "kinds")
	return !ok || len(kinds) == 0 || slices.ContainsFunc(kinds, func(entry any) bool {
		m, _ := entry.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(m, "apiGroups")
		names, _, _ := unstructured.NestedStringSlice(m, "kinds")
		return (len(groups) == 0 || covers(groups, "")) && (len(names) == 0 || covers(names, "Pod"))
	})
}

func covers(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// Selects reports whether the namespaces of a constraint depend on their labels.
func Selects(c *unstructured.Unstructured) bool {
	selector, _, _ := unstructured.NestedMap(c.Object, "spec", "match", "namespaceSelector")
	return len(selector) > 0
}

// Whole reports whether a constraint matches all namespaced objects of its kinds, wherever it
// matches the namespace.
func Whole(c *unstructured.Unstructured) bool {
	match, _, _ := unstructured.NestedMap(c.Object, "spec", "match")
	selector, _ := match["labelSelector"].(map[string]any)
	name, _ := match["name"].(string)
	return len(selector) == 0 && (name == "" || name == "*") && match["scope"] != "Cluster" && match["source"] != "Generated"
}

// Ignored reports whether the labels of a namespace exempt it: Gatekeeper is then not asked.
func Ignored(of map[string]string) bool {
	_, ignored := of[v1beta1.LabelGatekeeperIgnore]
	return ignored
}

// MatchesNamespace reports whether a constraint matches a namespace with its labels, which only
// matter if [Selects]. An invalid selector matches nothing.
func MatchesNamespace(c *unstructured.Unstructured, name string, of map[string]string) bool {
	matches := func(pattern string) bool { return MatchesName(pattern, name) }
	if only := listed(c, "namespaces"); len(only) > 0 && !slices.ContainsFunc(only, matches) {
		return false
	}
	return !excludesName(c, name) && (!Selects(c) || selectorOf(c).Matches(labels.Set(of)))
}

// Exempt reports whether Gatekeeper exempts a namespace on purpose: by its label, or because every
// constraint for pods excludes it. A namespace that constraints do not list yet is not exempt.
func Exempt(constraints []unstructured.Unstructured, name string, of map[string]string) bool {
	if Ignored(of) {
		return true
	}
	excluded := false
	for i := range constraints {
		if c := &constraints[i]; MatchesPods(c) {
			if !excludesName(c, name) && !excludesLabels(c, of) {
				return false
			}
			excluded = true
		}
	}
	return excluded
}

// listed returns a list of the match of a constraint.
func listed(c *unstructured.Unstructured, field string) []string {
	found, _, _ := unstructured.NestedStringSlice(c.Object, "spec", "match", field)
	return found
}

func excludesName(c *unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(listed(c, "excludedNamespaces"), func(pattern string) bool { return MatchesName(pattern, name) })
}

// excludesLabels reports whether the selector of a constraint excludes a namespace because of a label
// that it has. A selector for labels that it lacks selects other namespaces.
func excludesLabels(c *unstructured.Unstructured, of map[string]string) bool {
	requirements, selectable := selectorOf(c).Requirements()
	return selectable && slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return (r.Operator() == selection.NotIn || r.Operator() == selection.DoesNotExist) && !r.Matches(labels.Set(of))
	})
}

// selectorOf returns the namespace selector of a constraint. An invalid one matches nothing.
func selectorOf(c *unstructured.Unstructured) labels.Selector {
	read, _, _ := unstructured.NestedMap(c.Object, "spec", "match", "namespaceSelector")
	var written metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(read, &written) != nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(&written)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// MatchesName reports whether a pattern of a constraint matches the name of a namespace: a star
// matches any beginning or end.
func MatchesName(pattern, name string) bool {
	begins, ends := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	text := strings.TrimSuffix(strings.TrimPrefix(pattern, "*"), "*")
	switch {
	case begins && ends:
		return strings.Contains(name, text)
	case begins:
		return strings.HasSuffix(name, text)
	case ends:
		return strings.HasPrefix(name, text)
	}
	return pattern == name
}
