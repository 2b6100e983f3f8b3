package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/generated"
)

// valueSchema turns a part of a CRD into JSON schema: unknown fields are refused,
// and what only an API server understands is left out.
func valueSchema(p apiextensionsv1.JSONSchemaProps) map[string]any {
	s := map[string]any{}
	if p.Description != "" {
		s["description"] = generated.Cell(p.Description)
	}
	if p.Type != "" {
		s["type"] = p.Type
	}
	if p.XIntOrString {
		s["type"] = "string" // Helm reads a number as a float, and prints 1e+06
	}
	if p.Pattern != "" {
		s["pattern"] = p.Pattern
	}
	for name, limit := range map[string]*int64{"minLength": p.MinLength, "maxLength": p.MaxLength, "maxItems": p.MaxItems, "maxProperties": p.MaxProperties} {
		if limit != nil {
			s[name] = *limit
		}
	}
	if len(p.Enum) > 0 {
		s["enum"] = p.Enum
	}
	if p.XListType != nil && *p.XListType == "set" {
		s["uniqueItems"] = true
	}
	if p.Items != nil {
		s["items"] = valueSchema(*p.Items.Schema)
	}
	if p.AdditionalProperties != nil {
		s["additionalProperties"] = valueSchema(*p.AdditionalProperties.Schema)
	}
	if len(p.Properties) > 0 {
		properties := map[string]any{}
		for name, property := range p.Properties {
			properties[name] = valueSchema(property)
		}
		s["properties"], s["additionalProperties"] = properties, false
	}
	if len(p.Required) > 0 {
		s["required"] = p.Required
	}
	return s
}

func TestTheSchemaOfTheTenantChartIsUpToDate(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "config/crd/landwaiter.dev_tenants.yaml"))
	require.NoError(t, err)
	var definition apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal(text, &definition))
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Required = append(slices.DeleteFunc(spec.Required, func(field string) bool { return field == "homeNamespace" }), "name")
	length := int64(40)
	spec.Properties["name"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: &length, Pattern: `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`,
		Description: "Name of the Tenant."}

	namespace := map[string]any{"type": "string", "pattern": `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`}
	account := map[string]any{"type": "string", "maxLength": 253, "pattern": `^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`}
	flag := map[string]any{"type": "boolean"}
	schema, err := json.MarshalIndent(map[string]any{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": "tenant", "type": "object", "additionalProperties": false,
		// Helm drops the default of a key that is left empty. Without this, an empty "tenants:" would delete every namespace.
		"required": []string{"constraints", "landwaiter", "objects", "tenants"},
		"properties": map[string]any{
			"global":  map[string]any{"type": "object"},
			"enabled": map[string]any{"type": "boolean"},
			"tenants": map[string]any{"type": "array", "items": valueSchema(spec)},
			"objects": flag, "constraints": flag,
			"landwaiter": map[string]any{"type": "object", "additionalProperties": false,
				"properties": map[string]any{"namespace": namespace, "serviceAccount": account}, "required": []string{"namespace", "serviceAccount"}},
		},
	}, "", "  ")
	require.NoError(t, err)
	require.NoError(t, generated.Check(filepath.Join(root, "charts/tenant/values.schema.json"), "", "", string(schema)+"\n"))
}
