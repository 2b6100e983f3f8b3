package configdir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// isList reports whether a kind is a list of objects: a List of any objects, as kubectl
// prints it, or a list of one kind, as an API server returns it.
func isList(kind schema.GroupVersionKind) bool {
	if kind == corev1.SchemeGroupVersion.WithKind("List") {
		return true
	}
	_, known := itemKind(kind)
	return known
}

// itemKind returns the kind of the items of a typed list, such as a VerifierList, if it is
// supported.
func itemKind(list schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	name, ok := strings.CutSuffix(list.Kind, "List")
	kind := list.GroupVersion().WithKind(name)
	_, known := scopes()[kind]
	return kind, ok && known
}

// list reads the items of a list as separate documents. If some items cannot be determined,
// the list counts as one document that cannot be identified.
func (d *decoder) list(ctx context.Context, doc document, list header, whole parsedObject) []entry {
	items, err := splitList(doc, list, whole)
	if err != nil {
		return []entry{{document: doc, err: err}}
	}
	found := make([]entry, len(items))
	for i, item := range items {
		found[i] = d.object(ctx, item.document, item.parsedObject)
	}
	return found
}

// splitList returns the items of a list, before they are identified.
func splitList(doc document, list header, whole parsedObject) ([]entry, error) {
	if err := checkList(whole); err != nil {
		return nil, doc.rewriteError(err)
	}
	var read struct {
		Items []json.RawMessage `json:"items"`
	}
	nodes := value(whole.node, "items")
	if err := utiljson.Unmarshal(whole.json, &read); err != nil || len(read.Items) != len(nodes.Content) {
		return nil, fmt.Errorf("the items of this %s cannot be read", list.Kind)
	}
	items, repeated := make([]entry, len(read.Items)), false
	for i, text := range read.Items {
		node := resolved(nodes.Content[i])
		one := entry{document: doc, parsedObject: parsedObject{json: text, node: node}}
		one.item, one.line = i+1, doc.begin+node.Line-1
		if node.Kind != yamlv3.MappingNode {
			return nil, fmt.Errorf("item %d (line %d) of this %s is not a mapping with apiVersion, kind and metadata", i+1, one.line, list.Kind)
		}
		err := checkIdentity(node)
		if kind, typed := itemKind(list.GroupVersionKind); err == nil && typed {
			one.json, err = withKind(text, node, kind)
		}
		if err != nil {
			text := strings.TrimPrefix(doc.rewriteError(err).Error(), fmt.Sprintf("line %d: ", one.line))
			return nil, fmt.Errorf("item %d (line %d): %s", i+1, one.line, text)
		}
		if duplicate := duplicateKey(node); duplicate != nil {
			one.duplicate, repeated = doc.rewriteError(duplicate), true
		}
		items[i] = one
	}
	if whole.duplicate != nil && !repeated {
		return nil, whole.duplicate
	}
	return items, nil
}

// checkList rejects a list that may hide items: with unknown fields, or with only some of its
// items.
func checkList(whole parsedObject) error {
	if err := checkUnique(whole.node, "items"); err != nil {
		return err
	}
	for i := 0; i+1 < len(whole.node.Content); i += 2 {
		switch key := resolved(whole.node.Content[i]); key.Value {
		case "apiVersion", "kind", "metadata", "items":
		default:
			return fmt.Errorf("line %d: a list has no field %q; remove it", key.Line, key.Value)
		}
	}
	items := value(whole.node, "items")
	empty := items != nil && items.Kind == yamlv3.ScalarNode && items.Tag == "!!null"
	switch {
	case items == nil:
		return errors.New("the field items of this list is missing")
	case items.Kind != yamlv3.SequenceNode && !empty:
		return fmt.Errorf("line %d: items is not a list", items.Line)
	case len(items.Content) > maxItems:
		return fmt.Errorf("it has %d items, the limit is %d; split it", len(items.Content), maxItems)
	}
	var read struct {
		Metadata struct {
			Continue           string `json:"continue"`
			RemainingItemCount int64  `json:"remainingItemCount"`
		} `json:"metadata"`
	}
	if err := utiljson.Unmarshal(whole.json, &read); err != nil {
		return errors.New("the metadata of this list cannot be read")
	}
	if read.Metadata.Continue != "" || read.Metadata.RemainingItemCount > 0 {
		return errors.New("metadata.continue says that this is only a part of a list; get all of it")
	}
	return nil
}

// withKind adds apiVersion and kind to an item of a typed list: an API server omits them for
// its own kinds.
func withKind(text []byte, node *yamlv3.Node, kind schema.GroupVersionKind) ([]byte, error) {
	if value(node, "apiVersion") == nil && value(node, "kind") == nil {
		head := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q`, kind.GroupVersion(), kind.Kind)
		if len(node.Content) > 0 {
			head = append(head, ',')
		}
		return append(head, bytes.TrimPrefix(text, []byte("{"))...), nil
	}
	h, err := parseHeader(text)
	if err == nil && h.GroupVersionKind != kind {
		err = fmt.Errorf("apiVersion %s, kind %s in a list of kind %s", h.APIVersion, h.Kind, kind.Kind)
	}
	return text, err
}

// duplicateKey returns an error for the first key that appears twice in a mapping of
// node. It returns nil for keys that only aliases repeat.
func duplicateKey(node *yamlv3.Node) error {
	seen := map[string]bool{}
	for i, child := range node.Content {
		if node.Kind == yamlv3.MappingNode && i%2 == 0 {
			if key := resolved(child); key.Kind == yamlv3.ScalarNode && seen[key.Value] {
				return fmt.Errorf("line %d: key %q already set in map", key.Line, key.Value)
			} else if key.Kind == yamlv3.ScalarNode {
				seen[key.Value] = true
			}
		}
		if err := duplicateKey(child); err != nil {
			return err
		}
	}
	return nil
}

// hasOurs reports whether an object has resources of Landwaiter among its items. For kubectl,
// any object with items is a list; ignoring one could weaken verification.
func hasOurs(object *yamlv3.Node) bool {
	items := value(object, "items")
	if items == nil || items.Kind != yamlv3.SequenceNode {
		return false
	}
	for _, child := range items.Content {
		item := resolved(child)
		if version := value(item, "apiVersion"); version != nil && strings.Contains(strings.ToLower(version.Value), "landwaiter") ||
			hasOurs(item) {
			return true
		}
	}
	return false
}
