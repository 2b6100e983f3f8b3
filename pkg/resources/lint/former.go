package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// Renamed returns what fields of the former version are called now, by their path, or by the
// last two steps of it where the first of them is serviceAccount. The name is relative to what
// the field is in.
func Renamed() map[string]string {
	return map[string]string{
		"spec.home":                              "homeNamespace",
		"spec.people":                            "access",
		"spec.onDelete":                          "namespaceReclaimPolicy",
		"spec.verification.decides":              "policyLevel",
		"spec.evidence.only":                     "exclusive",
		"spec.proxy.alsoFor":                     "additionalHosts",
		"spec.floors":                            "overrideMandatory",
		"spec.cosign.keys.logTrustStoreRef":      "rootTrustStoreRef",
		"spec.attestation.keys.logTrustStoreRef": "rootTrustStoreRef",
		"spec.cosign.keyless.trustStoreRef":      "rootTrustStoreRef",
		"spec.attestation.keyless.trustStoreRef": "rootTrustStoreRef",
		"serviceAccount.awsRoleARN":              "aws.roleARN",
		"serviceAccount.awsRegion":               "aws.region",
		"serviceAccount.azureTenantID":           "azure.tenantID",
		"serviceAccount.azureClientID":           "azure.clientID",
		"serviceAccount.googleProvider":          "google.provider",
		"serviceAccount.googleServiceAccount":    "google.serviceAccount",
	}
}

// RenamedAnnotations returns what annotations of the former version are called now.
func RenamedAnnotations() map[string]string {
	return map[string]string{
		"landwaiter.dev/break-glass-floors": "landwaiter.dev/break-glass-override-mandatory",
		"landwaiter.dev/made":               "landwaiter.dev/created",
	}
}

// renamedLabels returns what labels of the former version are called now.
func renamedLabels() map[string]string {
	return map[string]string{"landwaiter.dev/home": "landwaiter.dev/home-namespace"}
}

// revalued returns what values of the former version are called now, by the path that their
// field has now and the value.
func revalued() map[string]string {
	return map[string]string{
		"spec.scope: Floor":                       "Mandatory",
		"spec.namespaceReclaimPolicy: Keep":       "Retain",
		"spec.namespaceReclaimPolicy: DeleteMade": "DeleteCreated",
	}
}

// gone says why references of cluster kinds lack the field that they had.
const gone = "references have no namespace: what cluster resources name is in the one of --cluster-resource-namespace, by default Landwaiter's own"

const goneFix = "remove it, and keep what it names in that namespace"

var index = regexp.MustCompile(`\[\d+\]`)

// nameNow returns what a field of the former version is called now.
func nameNow(path string) (string, bool) {
	path = index.ReplaceAllString(path, "")
	if now, ok := Renamed()[path]; ok {
		return now, true
	}
	steps := strings.Split(path, ".")
	now, ok := Renamed()[strings.Join(steps[max(0, len(steps)-2):], ".")]
	return now, ok
}

// formerly returns what to do about an unknown field that the former version had, with the value
// that it has in object.
func formerly(object map[string]any, path string) (string, bool) {
	now, ok := nameNow(path)
	if !ok {
		return "", false
	}
	fix := "it is called " + now + " now"
	if parent, name := parentOf(object, path); parent != nil {
		if to, ok := revalued()[fmt.Sprintf("spec.%s: %v", now, parent[name])]; ok {
			fix += fmt.Sprintf(", and %v is %s", parent[name], to)
		}
	}
	return fix, true
}

// Translator returns a function that returns a resource of the former version, in JSON, as this
// version has it. What it does not know it leaves as it is.
func Translator() func(json []byte) ([]byte, error) { return translated(schema.New()) }

func translated(s *schema.Set) func([]byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		object, _, err := translate(s, text)
		if err != nil {
			return nil, err
		}
		return json.Marshal(object)
	}
}

// former returns what to change in a resource of the former version. It returns nothing for nil.
func former(s *schema.Set, text []byte) ([]resource.Finding, error) {
	if text == nil {
		return nil, nil
	}
	_, found, err := translate(s, text)
	return found, err
}

// translate returns a resource of the former version as this version has it, and what to
// change.
func translate(s *schema.Set, text []byte) (map[string]any, []resource.Finding, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, nil, fmt.Errorf("read a resource of the former version: %w", err)
	}
	name, _ := object["kind"].(string)
	kind, err := s.Of(name)
	if err != nil {
		return nil, nil, err
	}
	was, now := configdir.APIVersion(true), configdir.APIVersion(false)
	object["apiVersion"] = now
	found := []resource.Finding{{Field: "apiVersion", Message: was + " is " + now + " now: change this last", Fix: "write apiVersion: " + now}}
	moved := map[string]bool{}
	for _, path := range kind.Unknown(object) {
		if f, ok := change(object, path, kind.Namespaced); ok {
			found = append(found, f)
			if to, ok := nameNow(path); ok {
				moved[path[:strings.LastIndex(path, ".")+1]+to] = true
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(revalued())) {
		path, value, _ := strings.Cut(at, ": ")
		if parent, name := parentOf(object, path); parent != nil && parent[name] == value {
			parent[name] = revalued()[at]
			if !moved[path] {
				found = append(found, resource.Finding{Field: path, Message: fmt.Sprintf("%q is not supported", value), Fix: "it is called " + revalued()[at] + " now"})
			}
		}
	}
	found = append(append(found, milliseconds(object)...), stricter(object)...)
	for i := range found {
		found[i].ID = Former
	}
	return object, found, nil
}

// change gives a field its name and value of now, or removes it, and says so.
func change(object map[string]any, path string, namespaced bool) (resource.Finding, bool) {
	parent, name := parentOf(object, path)
	if parent == nil {
		return resource.Finding{}, false
	}
	switch fix, renamed := formerly(object, path); {
	case renamed:
		now, _ := nameNow(path)
		value := parent[name]
		delete(parent, name)
		put(parent, now, value)
		return resource.Finding{Field: path, Message: "there is no such field", Fix: fix}, true
	case !namespaced && name == "namespace" && strings.HasPrefix(path, "spec.") && path != "spec.namespace":
		delete(parent, name)
		return resource.Finding{Field: path, Message: gone, Fix: goneFix}, true
	}
	return resource.Finding{}, false
}

// put sets a field by its path, unless a field around it is no object, which the schema refuses.
func put(parent map[string]any, path string, value any) {
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		if parent[step] == nil {
			parent[step] = map[string]any{}
		}
		inner, ok := parent[step].(map[string]any)
		if !ok {
			return
		}
		parent = inner
	}
	parent[steps[len(steps)-1]] = value
}

// parentOf returns what a field is in, and its name; nil if the field is not there: a key that
// looks like a path leads nowhere.
func parentOf(object map[string]any, path string) (map[string]any, string) {
	steps := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })
	if len(steps) == 0 {
		return nil, ""
	}
	name := steps[len(steps)-1]
	var at any = object
	for _, step := range steps[:len(steps)-1] {
		switch node := at.(type) {
		case map[string]any:
			at = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil, ""
			}
			at = node[i]
		default:
			return nil, ""
		}
	}
	parent, _ := at.(map[string]any)
	if _, there := parent[name]; !there {
		return nil, ""
	}
	return parent, name
}

// milliseconds writes the interval of a Tenant's source in seconds: this version has no shorter unit.
func milliseconds(object map[string]any) []resource.Finding {
	const field = "spec.reconciler.source.interval"
	parent, name := parentOf(object, field)
	if parent == nil {
		return nil
	}
	text, ok := parent[name].(string)
	interval, err := time.ParseDuration(text)
	if !ok || err != nil || !strings.Contains(text, "ms") {
		return nil
	}
	now := strconv.FormatFloat(interval.Seconds(), 'f', -1, 64) + "s"
	parent[name] = now
	return []resource.Finding{{Field: field, Message: fmt.Sprintf("%q is in milliseconds", text), Fix: "write " + now}}
}

// stricter returns warnings about what a Verifier leaves out and what has another default now.
func stricter(object map[string]any) (found []resource.Finding) {
	warn := func(field, message, fix string) {
		found = append(found, resource.Finding{Severity: resource.Note, Field: field, Message: message, Fix: fix})
	}
	for _, field := range []string{"spec.cosign.keys", "spec.attestation.keys"} {
		if parent, name := parentOf(object, field); parent != nil {
			keys, ok := parent[name].(map[string]any)
			if ok && keys["rootTrustStoreRef"] == nil && keys["insecureIgnoreTransparencyLog"] == nil {
				warn(field, "signatures by these keys must now be in Sigstore's public transparency log; before, no log was needed",
					"set insecureIgnoreTransparencyLog: true if they are in none, or name another log's root in rootTrustStoreRef")
			}
		}
	}
	if spec, ok := object["spec"].(map[string]any); ok {
		notation, ok := spec["notation"].(map[string]any)
		switch {
		case !ok || notation["awsSigner"] != nil:
		case notation["revocation"] == "Ignore":
			warn("spec.notation.revocation", "certificates are not checked for revocation; Ignore was the default, so objects that were read from a cluster have it",
				"remove it to have them checked, as is the default now")
		case notation["revocation"] == nil:
			warn("spec.notation", "certificates are now checked for revocation; before, they were not unless revocation was Check",
				"set revocation: Ignore if no responder can be asked, or Check to be sure")
		}
	}
	return found
}

// metadata adds warnings about labels and annotations of Namespaces that have another name now:
// they do nothing.
func (c *checker) metadata(namespaces []corev1.Namespace) {
	for _, n := range namespaces {
		c.renamed(n.Name, "label", n.Labels, renamedLabels())
		c.renamed(n.Name, "annotation", n.Annotations, RenamedAnnotations())
	}
}

func (c *checker) renamed(namespace, what string, has, names map[string]string) {
	for _, was := range slices.Sorted(maps.Keys(names)) {
		if _, ok := has[was]; !ok {
			continue
		}
		for _, d := range c.places[policy.ObjectRef{Kind: "Namespace", Name: namespace}] {
			c.add(d, resource.Finding{ID: Former, Severity: resource.Note, Field: "metadata." + what + "s", Message: "nothing reads the " + what + " " + was, Fix: "it is called " + names[was] + " now"})
		}
	}
}
