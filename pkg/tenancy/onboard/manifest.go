package onboard

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Manifest returns a Tenant as a person would write it: its name, its form if it has one,
// and its spec without what is empty.
func Manifest(tenant *v1beta1.Tenant) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tenant)
	if err != nil {
		return nil, fmt.Errorf("convert Tenant %s: %w", tenant.Name, err)
	}
	spec, _ := content["spec"].(map[string]any)
	for field, value := range spec {
		if inner, ok := value.(map[string]any); ok && len(inner) == 0 && field != "reconciler" {
			delete(spec, field)
		}
	}
	metadata := map[string]any{"name": tenant.Name}
	if form := tenant.Annotations[v1beta1.AnnotationForm]; form != "" {
		metadata["annotations"] = map[string]any{v1beta1.AnnotationForm: form}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": v1beta1.KindTenant, "metadata": metadata, "spec": spec}}, nil
}

// YAML returns objects as the documents of one file.
func YAML(objects ...map[string]any) ([]byte, error) {
	var text bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write a %s: %w", object["kind"], err)
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	return text.Bytes(), nil
}
