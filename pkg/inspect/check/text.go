package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Shown shortens somebody else's text and makes it one line.
func Shown(text string) string { return policy.Shown(text, maxText) }

// named lists names for a sentence.
func named(names []string) string {
	if len(names) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	return strings.Join(names, ", ")
}

// isKey reports whether a Secret or ConfigMap can have the key. A resource's key is free
// text, and becomes part of templates and JSON.
func isKey(key string) bool { return len(validation.IsConfigMapKey(key)) == 0 }

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// target is an object with the group of its kind, "" for kinds of Kubernetes.
type target struct {
	policy.ObjectRef
	group string
}

// String names the object as kubectl does.
func (t target) String() string {
	text := strings.ToLower(t.Kind)
	if t.group != "" {
		text += "." + t.group
	}
	text += " " + resource.ShellWord(t.Name)
	if t.Namespace != "" {
		text += " --namespace=" + resource.ShellWord(t.Namespace)
	}
	return text
}

// builtin names an object of Kubernetes.
func builtin(kind, namespace, name string) target {
	return target{policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}, ""}
}

// patch returns the command that applies operations to an object.
func (t target) patch(operations ...operation) string {
	return "kubectl patch " + t.String() + " --type=json --patch=" + resource.ShellWord(encoded(operations))
}

// merge returns the command that merges fields into an object.
func (t target) merge(fields any) string {
	return "kubectl patch " + t.String() + " --type=merge --patch=" + resource.ShellWord(encoded(fields))
}

// edit returns the command for changes that only the owner of an object knows.
func (t target) edit() string { return "kubectl edit " + t.String() }

// encoded returns JSON. Its input consists of texts, numbers, lists and maps.
func encoded(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "{}"
	}
	return strings.TrimSpace(b.String())
}
