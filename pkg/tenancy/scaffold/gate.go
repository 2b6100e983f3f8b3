package scaffold

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// gate finds values of Gatekeeper's chart with which it is not asked about pods of Tenants, or may fail to answer.
// The IDs are those of landwaiter check for the resulting webhooks.
func (c *checker) gate(all *closure, tenants []*v1beta1.Tenant, holders *resource.Tenants) {
	for _, o := range all.objects {
		if !isFlux(o.Unstructured, "HelmRelease") ||
			!slices.Contains([]string{o.GetName(), textIn(o.Object, "spec", "chart", "spec", "chart"), textIn(o.Object, "spec", "chartRef", "name")},
				"gatekeeper") {
			continue
		}
		values := all.values(o.Unstructured)
		found := func(id, field, format string, args ...any) {
			at := c.of(o.folder, o.Unstructured)
			name := field[strings.LastIndex(field, ".")+1:]
			if own := path.Join(path.Dir(at), valuesFile); bytes.Contains(c.files[own], []byte(name)) {
				at = own
			}
			c.find(id, at, "%s: the value %s %s", identity(o.Unstructured), field, fmt.Sprintf(format, args...))
		}
		gateOpen(values, found)
		for _, tenant := range tenants {
			namespaces := all.namespacesOf(tenant, holders)
			if prefix := tenant.Spec.NamespacePrefix; prefix != "" {
				namespaces[prefix+"any"] = labelsOf(tenant, prefix+"any")
			}
			for name, labels := range namespaces {
				gateLeaves(values, tenant.Name, name, labels, found)
			}
		}
	}
}

// gateOpen finds values that disable the gate for all namespaces.
func gateOpen(values object, found func(id, field, format string, args ...any)) {
	if values["disableValidatingWebhook"] == true {
		found("NoGatekeeper", "disableValidatingWebhook", "is true, so Gatekeeper is never asked, and no image is verified: remove it")
	}
	for field, byDefault := range map[string]string{"validatingWebhookFailurePolicy": "Ignore",
		"validatingWebhookCheckIgnoreFailurePolicy": "Fail"} {
		if policy := cmp.Or(textIn(values, field), byDefault); policy != "Fail" {
			found("WebhookFailsOpen", field, "is %s, so what Gatekeeper does not answer in time is admitted, and nobody verifies it: set it to Fail",
				policy)
		}
	}
	if selector, _, _ := unstructured.NestedMap(values, "validatingWebhookObjectSelector"); len(selector) > 0 {
		found("WebhookObjects", "validatingWebhookObjectSelector", "leaves out pods by their labels, which teams choose: remove it")
	}
	if missing := unasked(values); len(missing) > 0 {
		found("WebhookRules", "validatingWebhookCustomRules", "has no %s, so Gatekeeper is not asked about them: add them",
			strings.Join(missing, " and no "))
	}
	if textIn(values, "validatingWebhookScope") == "Cluster" {
		found("WebhookRules", "validatingWebhookScope", "is Cluster, so Gatekeeper is not asked about pods: remove it")
	}
	known := conditionsOf(knownValues())
	for expression, name := range conditionsOf(values) {
		if _, needed := known[expression]; !needed {
			found("WebhookConditions", "validatingWebhookMatchConditions",
				"has %q, which is none that Landwaiter needs, so Gatekeeper may not be asked about pods: remove it", name)
		}
	}
}

// knownValues are those that Landwaiter needs.
func knownValues() (values object) {
	if err := yaml.Unmarshal([]byte(copied(config.Files, "gatekeeper/values.yaml")), &values); err != nil {
		panic("scaffold: read the program's own values of Gatekeeper: " + err.Error())
	}
	return values
}

// conditionsOf returns the names of the conditions of the validating webhook by their expressions, without spaces, which
// YAML folds. Those of the mutating one are others: the validating webhook has to see what they leave out.
func conditionsOf(values object) map[string]string {
	all := map[string]string{}
	list, _, _ := unstructured.NestedSlice(values, "validatingWebhookMatchConditions")
	for _, entry := range list {
		condition, _ := entry.(map[string]any)
		all[strings.Join(strings.Fields(textIn(condition, "expression")), "")] = textIn(condition, "name")
	}
	return all
}

// unasked returns the requests with new images that none of the chart's own rules is for. Without any, the chart has
// rules for all.
func unasked(values object) (missing []string) {
	rules, _, _ := unstructured.NestedSlice(values, "validatingWebhookCustomRules")
	if len(rules) == 0 {
		return nil
	}
	for _, need := range [][2]string{{"CREATE", "pods"}, {"UPDATE", "pods"}, {"UPDATE", "pods/ephemeralcontainers"}} {
		if !slices.ContainsFunc(rules, func(entry any) bool { return asksAbout(entry, need[0], need[1]) }) {
			missing = append(missing, need[0]+" "+need[1])
		}
	}
	return missing
}

// asksAbout reports whether a rule of a webhook is for an operation on a resource of the core group.
func asksAbout(entry any, operation, resource string) bool {
	rule, _ := entry.(map[string]any)
	has := func(field string, of ...string) bool {
		listed, _, _ := unstructured.NestedStringSlice(rule, field)
		return slices.ContainsFunc(listed, func(name string) bool { return slices.Contains(of, name) })
	}
	names := []string{resource, "*/*"}
	if whole, sub, isSub := strings.Cut(resource, "/"); isSub {
		names = append(names, whole+"/*", "*/"+sub)
	} else {
		names = append(names, "*")
	}
	return has("apiGroups", "", "*") && has("apiVersions", "v1", "*") && has("operations", operation, "*") && has("resources", names...) &&
		textIn(rule, "scope") != "Cluster"
}

// gateLeaves finds values that exclude a namespace of a Tenant, or let a label do so.
func gateLeaves(values object, tenant, name string, labels map[string]string, found func(id, field, format string, args ...any)) {
	exempt, _, _ := unstructured.NestedMap(values, "validatingWebhookExemptNamespacesLabels")
	for label := range exempt {
		listed, _, _ := unstructured.NestedSlice(exempt, label)
		if value, ok := labels[label]; ok && slices.ContainsFunc(listed, func(entry any) bool { return fmt.Sprint(entry) == value }) {
			found("WebhookNamespaces", "validatingWebhookExemptNamespacesLabels",
				"leaves out namespaces with the label %s=%s, which namespace %s of Tenant %s has, so no image is verified there: take it out", label,
				value, name, tenant)
		}
	}
	for field, matches := range map[string]func(entry string) bool{
		"exemptNamespaces":        func(entry string) bool { return entry == name },
		"exemptNamespacePrefixes": func(entry string) bool { return strings.HasPrefix(name, entry) },
		"exemptNamespaceSuffixes": func(entry string) bool { return strings.HasSuffix(name, entry) },
	} {
		listed, _, _ := unstructured.NestedStringSlice(values, "controllerManager", field)
		for _, entry := range listed {
			if matches(entry) {
				found("NamespaceIgnored", "controllerManager."+field, "lets namespace %s of Tenant %s have the label %s, with which no image is "+
					"verified there: take %s out", name, tenant, v1beta1.LabelGatekeeperIgnore, entry)
			}
		}
	}
}

// textIn returns the text of a field, "" if there is none.
func textIn(o object, fields ...string) string {
	text, _, _ := unstructured.NestedString(o, fields...)
	return text
}

// values returns the values of a HelmRelease, as far as the tree has them: a Secret may have more.
func (all *closure) values(release *unstructured.Unstructured) object {
	whole := object{}
	from, _, _ := unstructured.NestedSlice(release.Object, "spec", "valuesFrom")
	for _, entry := range from {
		ref, _ := entry.(map[string]any)
		kind, name, namespace := referenced(release, ref)
		for _, o := range all.objects {
			if o.GetKind() != "ConfigMap" || kind != "ConfigMap" || o.GetName() != name || o.GetNamespace() != namespace {
				continue
			}
			var values object
			if yaml.Unmarshal([]byte(textIn(o.Object, "data", cmp.Or(textIn(ref, "valuesKey"), "values.yaml"))), &values) == nil {
				whole = merged(whole, values)
			}
		}
	}
	own, _, _ := unstructured.NestedMap(release.Object, "spec", "values")
	return merged(whole, own)
}
