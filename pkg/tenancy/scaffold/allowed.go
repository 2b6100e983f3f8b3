package scaffold

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// allowedSources finds sources of Flux that the tree's own constraints of kind FluxAllowedSources deny: one
// object that Gatekeeper denies stops its whole Kustomization. Of URLs it looks at the beginning alone.
func (c *checker) allowedSources(all *closure) {
	for _, rule := range all.objects {
		if rule.GetKind() != "FluxAllowedSources" || rule.GroupVersionKind().Group != constraintGroup {
			continue
		}
		severity := resource.Warning
		if action, _, _ := unstructured.NestedString(rule.Object, "spec", "enforcementAction"); action == "" || action == "deny" {
			severity = resource.Error
		}
		excluded, _, _ := unstructured.NestedStringSlice(rule.Object, "spec", "match", "excludedNamespaces")
		for _, o := range all.objects {
			fields := prefixesFor(o.Unstructured)
			url, _, _ := unstructured.NestedString(o.Object, "spec", "url")
			if fields == nil || url == "" || slices.ContainsFunc(excluded, func(pattern string) bool { return constraint.MatchesName(pattern, o.GetNamespace()) }) {
				continue
			}
			var prefixes []string
			for _, field := range fields {
				listed, _, _ := unstructured.NestedStringSlice(rule.Object, "spec", "parameters", field)
				prefixes = append(prefixes, listed...)
			}
			if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(strings.TrimSuffix(url, "/")+"/", prefix) }) {
				c.report(severity, "SourceNotAllowed", c.of(o.folder, o.Unstructured), "%s: spec.url %s is below no prefix of constraint %s (%s): run platform init with --set allowedSources=PREFIX, or fetch from elsewhere",
					identity(o.Unstructured), url, rule.GetName(), strings.Join(fields, ", "))
			}
		}
	}
}

// prefixesFor names the parameters of FluxAllowedSources that a source is held against; nil for all other objects.
func prefixesFor(o *unstructured.Unstructured) []string {
	if o.GroupVersionKind().Group != "source.toolkit.fluxcd.io" {
		return nil
	}
	switch o.GetKind() {
	case "GitRepository":
		return []string{"gitPrefixes"}
	case "HelmRepository":
		return []string{"helmPrefixes", "ociPrefixes"}
	case "OCIRepository":
		return []string{"ociPrefixes"}
	}
	return nil
}
