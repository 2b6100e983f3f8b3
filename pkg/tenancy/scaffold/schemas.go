package scaffold

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// schemas checks objects of foreign kinds against the cluster's schemas: CRDs in the tree, such
// as Flux's in the files of flux bootstrap, and the parameters of ConstraintTemplates. A kind
// without a schema in the tree is not checked.
func (c *checker) schemas(all *closure) {
	known := map[string]object{}
	for _, o := range all.objects {
		switch group := o.GroupVersionKind().Group; {
		case isDefinition(o.Unstructured):
			maps.Copy(known, schemasOf(o.Unstructured))
		case group == "templates.gatekeeper.sh" && o.GetKind() == "ConstraintTemplate":
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "crd", "spec", "names", "kind")
			parameters, found, _ := unstructured.NestedMap(o.Object, "spec", "crd", "spec", "validation", "openAPIV3Schema")
			if found {
				known[constraintGroup+" "+
					kind] = object{"properties": object{"spec": object{"properties": object{"parameters": parameters}, preserved: true}}, preserved: true}
			}
		}
	}
	for _, o := range all.objects {
		gvk := o.GroupVersionKind()
		schema := known[gvk.GroupVersion().String()+" "+gvk.Kind]
		if gvk.Group == constraintGroup {
			schema = known[constraintGroup+" "+gvk.Kind]
		}
		if schema == nil || gvk.Group == v1beta1.Group || c.object(o.Unstructured) != "" {
			continue // our own kinds are checked elsewhere, and one error is enough
		}
		content := maps.Clone(o.Object)
		for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
			delete(content, field)
		}
		if wrong := misfit("", content, schema); wrong != "" {
			c.find("ObjectInvalid", c.of(o.folder, o.Unstructured), "%s: %s", identity(o.Unstructured), wrong)
		}
	}
}

// schemasOf returns the schemas of a CRD by version and kind.
func schemasOf(definition *unstructured.Unstructured) map[string]object {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	found := map[string]object{}
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		name, _, _ := unstructured.NestedString(version, "name")
		if schema, ok, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema"); ok {
			found[group+"/"+name+" "+kind] = schema
		}
	}
	return found
}

// wrongText returns errors of values that need no CRD: durations, switches and versions of Flux's objects, and the
// action of constraints. Flux replaces variables.
func wrongText(o *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	if o.GroupVersionKind().Group == constraintGroup {
		if action := textIn(spec, "enforcementAction"); action != "" && !slices.Contains([]string{"deny", "warn", "dryrun", "scoped"}, action) {
			return fmt.Sprintf("spec.enforcementAction is %q, for which Gatekeeper does nothing: write deny, warn, dryrun or scoped", action)
		}
	}
	if !strings.HasSuffix(o.GroupVersionKind().Group, ".toolkit.fluxcd.io") {
		return ""
	}
	for _, field := range []string{"interval", "retryInterval", "timeout"} {
		if text := textIn(spec, field); text != "" && !strings.Contains(text, "${") && !duration.MatchString(text) {
			return fmt.Sprintf("spec.%s is %q, which is no duration: write one such as 10m", field, text)
		}
	}
	for _, field := range []string{"prune", "wait", "force", "suspend"} {
		if text := textIn(spec, field); text != "" && !strings.Contains(text, "${") {
			return fmt.Sprintf("spec.%s is the text %q: write true or false, without quotes", field, text)
		}
	}
	for _, fields := range [][]string{{"postBuild", "substituteFrom"}, {"valuesFrom"}} {
		entries, _, _ := unstructured.NestedSlice(spec, fields...)
		for i, entry := range entries {
			from, _ := entry.(map[string]any)
			if kind := textIn(from, "kind"); kind != "Secret" && kind != "ConfigMap" && !strings.Contains(kind, "${") {
				return fmt.Sprintf("spec.%s[%d].kind is %q, and must be ConfigMap or Secret: correct it", strings.Join(fields, "."), i, kind)
			}
		}
	}
	for _, fields := range [][]string{{"chart", "spec", "version"}, {"ref", "semver"}} {
		if text := textIn(spec, fields...); text != "" && !strings.Contains(text, "${") && !isVersion(text) {
			return fmt.Sprintf("spec.%s is %q, which is neither a version nor a range: write one such as 1.2.0 or 1.x",
				strings.Join(fields, "."), text)
		}
	}
	return ""
}

var duration = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`)

// preserved is the field of a schema that allows fields which it does not name.
const preserved = "x-kubernetes-preserve-unknown-fields"

// misfit describes how a value violates its schema, "" if it finds nothing: an unknown field, a missing
// one, a wrong type, a value outside of an enum, or a text that does not match its pattern. It checks no
// other part of a schema.
func misfit(at string, value any, schema map[string]any) string {
	if value == nil || schema == nil || schema["x-kubernetes-int-or-string"] == true {
		return ""
	}
	if text, ok := value.(string); ok && strings.Contains(text, "${") {
		return "" // Flux replaces it, by a value of any type
	}
	if want, _ := schema["type"].(string); !isType(value, want) {
		return fmt.Sprintf("%s is %s, and must be of type %s: correct it", at, shown(value), want)
	}
	if listed, _ := schema["enum"].([]any); len(listed) > 0 &&
		!slices.ContainsFunc(listed, func(one any) bool { return fmt.Sprint(one) == fmt.Sprint(value) }) {
		return fmt.Sprintf("%s is %s, and must be one of %v: correct it", at, shown(value), listed)
	}
	switch value := value.(type) {
	case string:
		if pattern, _ := schema["pattern"].(string); pattern != "" && len(pattern) <= maxPattern {
			if wants, err := regexp.Compile(pattern); err == nil && !wants.MatchString(value) {
				return fmt.Sprintf("%s is %s, and must match %s: correct it", at, shown(value), pattern)
			}
		}
	case map[string]any:
		return misfits(at, value, schema)
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, item := range value {
			if wrong := misfit(fmt.Sprintf("%s[%d]", at, i), item, items); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// misfits is misfit for the fields of an object.
func misfits(at string, value, schema map[string]any) string {
	below := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if name, _ := name.(string); value[name] == nil && name != "metadata" {
			return below(name) + " is missing: add it"
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(value)) {
		field, named := properties[name].(map[string]any)
		switch {
		case named:
		case others != nil:
			field = others
		case len(properties) > 0 && schema[preserved] != true && schema["additionalProperties"] != true:
			return fmt.Sprintf("there is no field %s: remove it, or correct its name", below(name))
		}
		if wrong := misfit(below(name), value[name], field); wrong != "" {
			return wrong
		}
	}
	return ""
}

// isType reports whether a value has a type of JSON schema. An empty type matches any.
func isType(value any, want string) bool {
	_, whole := value.(int64)
	switch want {
	case "object":
		_, ok := value.(map[string]any)
		return ok
	case "array":
		_, ok := value.([]any)
		return ok
	case "string":
		_, ok := value.(string)
		return ok
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "integer":
		return whole
	case "number":
		_, broken := value.(float64)
		return whole || broken
	}
	return true
}

// maxPattern bounds a pattern of a schema, which is compiled for each value.
const maxPattern = 1024

// maxShownValue bounds a value in a message.
const maxShownValue = 64

func shown(value any) string {
	text := fmt.Sprintf("%q", fmt.Sprint(value))
	if len(text) > maxShownValue {
		text = strings.ToValidUTF8(text[:maxShownValue], "") + "…"
	}
	return text
}
