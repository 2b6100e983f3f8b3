package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"
)

// owner is the field manager of applied objects.
const owner = "landwaiter-test"

// Decode reads YAML documents. Like helm-controller, and unlike helm, it refuses a key that is written twice.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var all []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		content, err := sigsyaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w in\n%s", err, document)
		}
		if string(content) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		all = append(all, object)
	}
}

// DecodeFile reads YAML documents from a file.
func DecodeFile(path string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return Decode(text)
}

// Apply applies objects with c's permissions. It applies CustomResourceDefinitions and
// namespaces first, and waits for them.
func (c *Cluster) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	var first, rest []*unstructured.Unstructured
	for _, object := range objects {
		switch object.GetKind() {
		case "CustomResourceDefinition", "Namespace":
			first = append(first, object)
		default:
			rest = append(rest, object)
		}
	}
	for _, object := range append(first, rest...) {
		if err := c.apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) apply(ctx context.Context, object *unstructured.Unstructured) error {
	configuration := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	err := Until(ctx, func(ctx context.Context) error { // its CRD may just have been created
		return c.Client.Apply(ctx, configuration, client.FieldOwner(owner), client.ForceOwnership)
	})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if object.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	return Until(ctx, func(ctx context.Context) error { return c.established(ctx, object.GetName()) })
}

func (c *Cluster) established(ctx context.Context, name string) error {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &definition); err != nil {
		return fmt.Errorf("get %s: %w", name, err)
	}
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return c.discovered(&definition)
		}
	}
	return fmt.Errorf("%s is not established", name)
}

// discovered returns an error while the API server does not list the kind yet, which may be a
// while after it is established.
func (c *Cluster) discovered(definition *apiextensionsv1.CustomResourceDefinition) error {
	kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}
		if _, err := c.Client.RESTMapper().RESTMapping(kind, version.Name); err != nil {
			return fmt.Errorf("%s is not discovered: %w", definition.Name, err)
		}
	}
	return nil
}
