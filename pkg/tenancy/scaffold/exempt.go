package scaffold

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// exemptsOthers reports whether the settings exempt more namespaces than those of the platform itself.
func (p Platform) exemptsOthers() bool {
	return slices.ContainsFunc(p.ExemptNamespaces, func(name string) bool { return !slices.Contains(p.ownNamespaces(), name) })
}

// unverified finds namespaces of Tenants that are completely exempt from verification: by a label, Gatekeeper's
// Config, or by all constraints. A tree without constraints for images verifies nothing yet.
func (c *checker) unverified(all *closure, tenants []*v1beta1.Tenant, holders *resource.Tenants) {
	asking := all.asking()
	for _, tenant := range tenants {
		excluded := false
		for name, labels := range all.namespacesOf(tenant, holders) {
			whose := fmt.Sprintf("Tenant %s: ", tenant.Name)
			if o := all.namespace(name); o.Unstructured != nil && constraint.Ignored(labels) {
				c.find("NamespaceIgnored", c.of(o.folder, o.Unstructured), "%sNamespace %s has the label %s, so Gatekeeper is not asked, and no "+
					"image is verified there: remove the label", whose, name, v1beta1.LabelGatekeeperIgnore)
				continue
			}
			c.leftByConfig(all, whose, name)
			here := c.excluded(asking, whose, name, "namespace "+name, labels)
			if excluded = here || excluded; !here && c.settings != nil && slices.Contains(c.settings.ExemptNamespaces, name) {
				c.find("ConstraintExempt", SettingsFile, "%sexemptNamespaces has namespace %s, and platform init refuses that: take it out; images "+
					"that may run unverified are for rules of a policy", whose, name)
			}
		}
		if prefix := tenant.Spec.NamespacePrefix; prefix != "" && !excluded {
			c.excluded(asking, fmt.Sprintf("Tenant %s: ", tenant.Name), prefix+"any", "namespaces that begin with "+prefix,
				labelsOf(tenant, prefix+"any"))
		}
	}
}

// leftByConfig finds that Gatekeeper's Config excludes a namespace.
func (c *checker) leftByConfig(all *closure, whose, namespace string) {
	for _, o := range all.objects {
		if o.GroupVersionKind().Group != "config.gatekeeper.sh" || o.GetKind() != "Config" {
			continue
		}
		entries, _, _ := unstructured.NestedSlice(o.Object, "spec", "match")
		for _, entry := range entries {
			m, _ := entry.(map[string]any)
			processes, _, _ := unstructured.NestedStringSlice(m, "processes")
			names, _, _ := unstructured.NestedStringSlice(m, "excludedNamespaces")
			if slices.ContainsFunc(processes, func(p string) bool { return p == "*" || p == "webhook" }) &&
				slices.ContainsFunc(names, func(pattern string) bool { return constraint.MatchesName(pattern, namespace) }) {
				c.find("ConfigIgnores", c.of(o.folder, o.Unstructured), "%s%s excludes namespace %s from admission, so no image is verified there: "+
					"take the namespace out of spec.match", whose, identity(o.Unstructured), namespace)
			}
		}
	}
}

// excluded finds that no constraint asks about the images of a namespace, which shown names, and reports whether so.
func (c *checker) excluded(asking []applied, whose, namespace, shown string, labels map[string]string) bool {
	var constraints []unstructured.Unstructured
	for _, o := range asking {
		constraints = append(constraints, *o.Unstructured)
	}
	if len(asking) == 0 || constraint.ModeIn(constraints, namespace, labels) != constraint.None {
		return false
	}
	o := asking[0]
	for _, other := range asking { // the general one, if there is one
		if match, _, _ := unstructured.NestedStringSlice(other.Object, "spec", "match", "namespaces"); len(match) == 0 {
			o = other
		}
	}
	remedy := "change spec.match so that it includes all pods there"
	if c.settings != nil && slices.Contains(c.settings.ExemptNamespaces, namespace) {
		remedy = "take it out of exemptNamespaces in " + SettingsFile + " and run platform init; images that may run unverified are for " +
			"rules of a policy"
	}
	c.find("ConstraintExempt", c.of(o.folder, o.Unstructured), "%s%s leaves out %s, and so does every other constraint for images, so no "+
		"image is verified there: %s", whose, identity(o.Unstructured), shown, remedy)
	return true
}

// asking returns the constraints for images that have an action for pods at admission.
func (all *closure) asking() (found []applied) {
	for _, o := range all.objects {
		if o.GroupVersionKind().Group == constraintGroup && o.GetKind() == imagesKind && constraint.MatchesPods(o.Unstructured) &&
			constraint.ModeOf(o.Unstructured) != constraint.None && !slices.Contains(constraint.ExemptImages(o.Unstructured), "*") {
			found = append(found, o)
		}
	}
	return found
}

// namespace returns a Namespace of the tree; it has no object if the tree has none with the
// name.
func (all *closure) namespace(name string) applied {
	for _, o := range all.objects {
		if o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" && o.GetName() == name {
			return o
		}
	}
	return applied{}
}

// namespacesOf returns the namespaces of a Tenant with their labels: those that it lists, and those of the tree that
// match its prefix and label.
func (all *closure) namespacesOf(tenant *v1beta1.Tenant, holders *resource.Tenants) map[string]map[string]string {
	found := map[string]map[string]string{}
	for _, name := range namespacesOf(tenant) {
		found[name] = labelsOf(tenant, name)
	}
	for _, o := range all.objects {
		if o.GetKind() != "Namespace" || o.GroupVersionKind().Group != "" {
			continue
		}
		if holder := holders.Holder(o.GetName()); found[o.GetName()] != nil || holder != nil && holder.Name == tenant.Name {
			found[o.GetName()] = labelsOf(tenant, o.GetName())
			for name, value := range o.GetLabels() {
				found[o.GetName()][name] = value
			}
		}
	}
	return found
}

// labelsOf returns the labels that every namespace of a Tenant has.
func labelsOf(tenant *v1beta1.Tenant, namespace string) map[string]string {
	return map[string]string{"kubernetes.io/metadata.name": namespace, v1beta1.LabelTenant: tenant.Name, v1beta1.LabelFluxTenant: tenant.Name}
}
