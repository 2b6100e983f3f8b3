package scaffold

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// folderOf returns the folder of its source that a Kustomization applies.
func folderOf(kustomization *unstructured.Unstructured) string {
	target, _, _ := unstructured.NestedString(kustomization.Object, "spec", "path")
	if folder := strings.TrimPrefix(path.Join("/", target), "/"); folder != "" {
		return folder
	}
	return "."
}

// appliers returns the Kustomizations of the platform in a cluster.
func (all *closure) appliers() []applied {
	return slices.DeleteFunc(slices.Clone(all.objects), func(o applied) bool {
		_, ofTree := all.target(o.Unstructured)
		return !ofTree || !isFlux(o.Unstructured, "Kustomization")
	})
}

// applies reports whether the folder of a Kustomization has an object.
func (all *closure) applies(k applied, is func(*unstructured.Unstructured) bool) bool {
	folder, _ := all.target(k.Unstructured)
	return slices.ContainsFunc(all.objects, func(o applied) bool { return o.folder == folder && is(o.Unstructured) })
}

// restricts reports whether an object restricts teams: a constraint, a guardrail, or the chart with both
// the verification and the operator's guardrails.
func restricts(o *unstructured.Unstructured) bool {
	switch o.GroupVersionKind().Group {
	case constraintGroup:
		return true
	case "admissionregistration.k8s.io":
		return strings.HasPrefix(o.GetName(), "landwaiter-")
	}
	return isFlux(o, "HelmRelease") && o.GetName() == "landwaiter"
}

// tenantsLast finds Kustomizations that apply Tenants, or teams without one, and do not wait for their restrictions:
// pods of teams could start earlier. The order is from [closure.flux].
func (c *checker) tenantsLast(all *closure, order map[string][]string) {
	for _, tenants := range all.appliers() {
		what := "Tenants"
		if !all.applies(tenants, isTenant) {
			what = "teams"
		}
		if !all.applies(tenants, func(o *unstructured.Unstructured) bool { return isTenant(o) || all.untenanted(o) }) {
			continue
		}
		awaited := map[string]bool{}
		for next := []string{identity(tenants.Unstructured)}; len(next) > 0; next = next[1:] {
			if !awaited[next[0]] {
				awaited[next[0]] = true
				next = append(next, order[next[0]]...)
			}
		}
		for _, step := range all.appliers() {
			if !awaited[identity(step.Unstructured)] && all.applies(step, restricts) {
				c.find("TenantsTooEarly", c.of(tenants.folder, tenants.Unstructured),
					"%s applies %s and does not wait for %s, so pods of teams can start before what restricts them exists: add %s to spec.dependsOn",
					identity(tenants.Unstructured), what, identity(step.Unstructured), step.GetName())
			}
		}
	}
}

// prunedDefinitions finds Kustomizations that delete CRDs which are removed from the tree. flux bootstrap's
// own is as Flux wants it.
func (c *checker) prunedDefinitions(all *closure) {
	for _, k := range all.appliers() {
		pruned, _, _ := unstructured.NestedBool(k.Object, "spec", "prune")
		if pruned && k.GetName() != platformSource && all.applies(k, func(o *unstructured.Unstructured) bool {
			return isDefinition(o) && !staysInCluster(o, k.Unstructured)
		}) {
			c.find("DefinitionsPruned", c.of(k.folder, k.Unstructured), "%s applies CRDs with spec.prune: true, so a CRD that leaves %s is "+
				"deleted in the cluster, with all objects of its kind: set spec.prune: false, or annotate the CRDs with %s: %s",
				identity(k.Unstructured), folderOf(k.Unstructured), pruneAnnotation, pruneDisabled)
		}
	}
}

// isDefinition reports whether an object is a CRD.
func isDefinition(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "apiextensions.k8s.io" && o.GetKind() == "CustomResourceDefinition"
}

// nowhere finds namespaces of objects, or of Flux's charts, that the tree does not create: Flux then applies nothing
// of the folder. Something else may create them, so this is a note unless the name is similar to another one, or the
// tree had the Namespace. Namespaces in the settings are created by others.
func (c *checker) nowhere(all *closure, holders *resource.Tenants) {
	if c.settings == nil {
		return
	}
	made := []string{"", "default", fluxNamespace, all.source.namespace}
	for _, name := range slices.Concat(c.settings.InfrastructureNamespaces, c.settings.ExemptNamespaces) {
		if !slices.Contains(c.settings.ownNamespaces(), name) {
			made = append(made, name)
		}
	}
	for _, o := range all.objects {
		switch {
		case o.GetKind() == "Namespace":
			made = append(made, o.GetName())
		case isFlux(o.Unstructured, "HelmRelease"):
			if create, _, _ := unstructured.NestedBool(o.Object, "spec", "install", "createNamespace"); create {
				made = append(made, textIn(o.Object, "spec", "targetNamespace"))
			}
		}
	}
	var seen []string // each is found once
	for _, o := range all.objects {
		named := map[string]string{"metadata.namespace": o.GetNamespace()}
		if _, flux := acts(o.Unstructured); flux {
			for _, field := range targetFields() {
				named[strings.Join(field, ".")] = textIn(o.Object, field...)
			}
		}
		if binding, ok := bindingOf(o.Unstructured); ok { // the creator of the namespace would get the permissions
			for i, s := range binding.Subjects {
				named[fmt.Sprintf("subjects[%d].namespace", i)], _ = accountOf(s, binding.Namespace)
			}
		}
		for field, name := range named {
			if slices.Contains(made, name) || slices.Contains(seen, name) || strings.HasPrefix(name, "kube-") || strings.Contains(name, "${") ||
				holders.Holder(name) != nil {
				continue
			}
			severity, meant, without := resource.Note, "", "; without it, Flux applies nothing of this folder: correct the name, or "+
				"add the Namespace"
			if strings.HasPrefix(field, "subjects") {
				without = "; if it was that of a team that is gone, whoever creates it again has these permissions: remove the subject, or " +
					"correct the name"
			}
			if c.options.Near != nil {
				if near, ok := c.options.Near(name, made[1:]); ok {
					severity, meant = resource.Warning, " (is "+near+" meant?)"
				}
			}
			if slices.Contains(c.settings.ownNamespaces(), name) {
				severity = resource.Warning
			}
			seen = append(seen, name)
			c.report(severity, "NamespaceMissing", c.of(o.folder, o.Unstructured), "%s: %s is %s, which nothing in the tree creates%s%s",
				identity(o.Unstructured), field, name, meant, without)
		}
	}
}
