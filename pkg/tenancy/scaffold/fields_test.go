//go:build e2e

package scaffold

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/flux"
)

// TestKnowsTheFieldsOfFlux holds the lists of fields to the CRDs of the modules
// that test/tools/flux pins, which come with the modules.
func TestKnowsTheFieldsOfFlux(t *testing.T) {
	definitions, err := flux.Definitions(t.Context())
	require.NoError(t, err)
	found := map[string]map[string]any{} // schemas of spec
	for _, d := range definitions {
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		for _, entry := range versions {
			version, _ := entry.(map[string]any)
			found[group+"/"+version["name"].(string)+" "+kind], _, _ = unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
		}
	}
	for kind, fields := range fluxFields() {
		theirs, ok := found[kind]
		require.True(t, ok, kind)
		properties, _, _ := unstructured.NestedMap(theirs, "properties")
		required, _, _ := unstructured.NestedStringSlice(theirs, "required")
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			require.Contains(t, fields.known, name, "%s has a field that a check would refuse", kind)
		}
		require.ElementsMatch(t, required, fields.required, kind)
		for _, name := range fields.known {
			if properties[name] == nil {
				t.Logf("%s: %s is of a newer version", kind, name)
			}
		}
	}
}

// The CRDs are those that flux bootstrap writes into the tree.
func TestTreesFitTheCRDsOfFlux(t *testing.T) {
	definitions, err := flux.Definitions(t.Context())
	require.NoError(t, err)
	var objects []object
	for _, d := range definitions {
		objects = append(objects, d.Object)
	}
	dir := light(t,
		example{platform: &Platform{SOPSAge: recipient,
			Gatekeeper: Chart{URL: "oci://registry.example.com/charts/gatekeeper", Verify: ChartVerify{Issuer: "^a$", Subject: "^b$"}}}, teams: irises()}.write(t))
	put1(t, dir, "clusters/staging/flux-system/gotk-components.yaml", document("", objects...))
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	rewrite(t, dir, "clusters/staging/tenants.yaml", "interval: 10m", "interval: 10")
	report, err = Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	require.Contains(t, report.Findings[0].Message, "spec.interval is")
}
