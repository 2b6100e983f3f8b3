//go:build e2e

package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var tenantChart = root + "/charts/tenant"

// tenantValues are the Tenants of the renderer's own tests, as values of the chart.
func tenantValues(t *testing.T, file string) (*v1beta1.Tenant, map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	tenant, raw := &v1beta1.Tenant{}, struct{ Spec map[string]any }{}
	require.NoError(t, yaml.UnmarshalStrict(text, tenant))
	require.NoError(t, yaml.Unmarshal(text, &raw))
	raw.Spec["name"] = tenant.Name
	return tenant, raw.Spec
}

func renderTenants(t *testing.T, values map[string]any) ([]*unstructured.Unstructured, error) {
	t.Helper()
	text, err := yaml.Marshal(values)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return suite.Chart(t.Context(), "tenant", "--values", file)
}

// byID has the objects as JSON has them, so that both sides have the same numbers.
func byID(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		content := map[string]any{}
		require.NoError(t, yaml.Unmarshal(text, &content))
		id := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		require.NotContains(t, found, id)
		found[id] = content
	}
	return found
}

func TestTheTenantChartRendersWhatTheRendererDoes(t *testing.T) {
	files, err := filepath.Glob(root + "/pkg/tenancy/onboard/testdata/*.tenant.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []any
	var rendered []*unstructured.Unstructured
	for _, file := range files {
		tenant, values := tenantValues(t, file)
		objects, err := onboard.Objects(tenant, onboard.Options{ClusterRights: true, Constraints: true})
		require.NoError(t, err)
		rendered, all = append(rendered, objects...), append(all, values)
	}
	charted, err := renderTenants(t, map[string]any{"tenants": all, "objects": true, "constraints": true})
	require.NoError(t, err)
	var tenants, objects []*unstructured.Unstructured
	for _, object := range charted {
		if object.GetKind() == v1beta1.KindTenant {
			tenants = append(tenants, object)
			continue
		}
		objects = append(objects, object)
	}
	require.Len(t, tenants, len(files))
	require.Equal(t, byID(t, rendered), byID(t, objects))
}

func TestTheTenantChartRendersTenantsAloneForTheOperator(t *testing.T) {
	tenant, values := tenantValues(t, root+"/pkg/tenancy/onboard/testdata/prefix.tenant.yaml")
	charted, err := renderTenants(t, map[string]any{"tenants": []any{values}})
	require.NoError(t, err)
	require.Len(t, charted, 1)
	got := &v1beta1.Tenant{}
	one, err := yaml.Marshal(charted[0].Object)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(one, got))
	require.Equal(t, tenant, got)
}

func TestTheTenantChartRefusesWhatTheRendererRefuses(t *testing.T) {
	one := func(spec map[string]any) []any { spec["name"] = "web"; return []any{spec} }
	developer := []any{map[string]any{"kind": "Group", "name": "devs"}}
	for name, c := range map[string]struct {
		tenants []any
		want    string
	}{
		"a name that is no label": {[]any{map[string]any{"name": "Web"}}, "name"},
		"a field that is none":    {one(map[string]any{"homes": "web"}), "homes"},
		"a Tenant twice":          {append(one(map[string]any{}), one(map[string]any{})...), "web is there twice"},
		"a namespace of two Tenants": {append(one(map[string]any{}), map[string]any{"name": "other", "namespaces": []any{"web"}}),
			"web and other both have namespace web"},
		"a home namespace of the system": {one(map[string]any{"homeNamespace": "kube-system"}), "kube-system is a namespace of the system"},
		"a prefix of the system":         {one(map[string]any{"namespacePrefix": "kube-"}), "is a namespace of the system"},
		"a prefix of Flux's namespace":   {one(map[string]any{"namespacePrefix": "flux-"}), "covers namespaces of the system"},
		"a group of the system": {
			one(map[string]any{"access": map[string]any{"admins": []any{map[string]any{"kind": "Group", "name": "system:masters"}}}}), "belong to the system"},
		"an account without " +
			"a namespace": {one(map[string]any{"access": map[string]any{"admins": []any{map[string]any{"kind": "ServiceAccount", "name": "bot"}}}}),
			"set namespace for a ServiceAccount"},
		"developers with no place to work": {one(map[string]any{"access": map[string]any{"developers": developer}}),
			"developers and viewers have no permissions in the home namespace web"},
		"namespaces to make without a prefix": {one(map[string]any{"reconciler": map[string]any{"createNamespaces": true}}), "needs namespacePrefix"},
		"a variable that Flux would not take": {one(map[string]any{"reconciler": map[string]any{"variables": map[string]any{"a-b": "x"}}}),
			"is not the name of a variable"},
		"variables of no Secret": {
			one(map[string]any{"reconciler": map[string]any{"variablesFrom": []any{map[string]any{"secretRef": map[string]any{"name": "A b"}}}}}),
			"is not the name of a Secret"},
		"variables of a " +
			"Secret twice": {
			one(map[string]any{
				"reconciler": map[string]any{"variablesFrom": []any{map[string]any{"secretRef": map[string]any{"name": "app"}},
					map[string]any{"secretRef": map[string]any{"name": "app"}, "optional": true}}}}), "Secret app is named twice"},
		"a URL with credentials": {one(map[string]any{"reconciler": map[string]any{"source": map[string]any{"url": "https://me@example.com/x"}}}),
			"begin the URL with"},
		"an amount that Helm would read anew":   {one(map[string]any{"isolation": map[string]any{"quota": map[string]any{"pods": 1000000}}}), "quota"},
		"a level of pod security that is none":  {one(map[string]any{"isolation": map[string]any{"podSecurity": "Strict"}}), "podSecurity"},
		"a registry without a slash at the end": {one(map[string]any{"isolation": map[string]any{"registries": []any{"example.com/x"}}}), "registries"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderTenants(t, map[string]any{"tenants": c.tenants})
			require.Error(t, err)
			require.Contains(t, strings.ReplaceAll(err.Error(), "\n", " "), c.want)
		})
	}
}

func TestTheTenantChartLints(t *testing.T) {
	helm(t).Must(t, "lint", "--strict", tenantChart)
}

func TestTheReadmeOfTheTenantChartRenders(t *testing.T) {
	text, err := os.ReadFile(tenantChart + "/README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	require.True(t, found)
	block, _, found := strings.Cut(rest, "```\n")
	require.True(t, found)
	values := map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(block), &values))
	objects, err := renderTenants(t, values)
	require.NoError(t, err)
	out, err := json.Marshal(objects)
	require.NoError(t, err)
	for _, want := range []string{`"kind":"Tenant"`, `"name":"iris-green-web"`, `"kind":"Kustomization"`, `"pods":"50"`} {
		require.Contains(t, string(out), want)
	}
}

// Where the operator keeps the mutation objects, the chart does not, and nothing changes.
func TestTheRendererPinsTagsAsTheChartDoes(t *testing.T) {
	const bundle = "-----BEGIN CERTIFICATE-----\n"
	charted := render(t, "--set", "fullnameOverride=landwaiter,mutation.enabled=true,mutation.namespaces={team-a}")
	args := provider(as[appsv1.Deployment](t, charted, "Deployment")).Spec.Template.Spec.Containers[0].Args
	m := onboard.Mutation{ProviderURL: "https://landwaiter.landwaiter-system.svc:443", CABundle: []byte(bundle)}
	tenant := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "team-a"}}
	tenant.Name = "team-a"
	for name, objects := range map[string][]*unstructured.Unstructured{
		"landwaiter":        m.Everywhere([]string{"kube-system", "gatekeeper-system", "landwaiter-system", "team-a"}),
		"landwaiter-team-a": m.Stores(tenant, tenant.Spec.HomeNamespace, []string{"team-a"}),
	} {
		for _, object := range objects {
			if object.GetKind() == "Provider" { // which the chart has its program make
				address, _, err := unstructured.NestedString(object.Object, "spec", "url")
				require.NoError(t, err)
				require.Contains(t, args, "--provider-object="+strings.Replace(name, "landwaiter", "landwaiter-mutate", 1)+"="+strings.TrimPrefix(address, m.ProviderURL))
				continue
			}
			want := chartedAs(t, charted, object, name)
			require.Equal(t, want, withoutNames(t, object, name), object.GetName())
		}
	}
}

// withoutNames is a mutation object without labels and without names, which differ for a
// Tenant's objects, and with lists in order.
func withoutNames(t *testing.T, object *unstructured.Unstructured, prefix string) map[string]any {
	t.Helper()
	spec := byID(t, []*unstructured.Unstructured{object})[object.GetKind()+" /"+object.GetName()].(map[string]any)["spec"].(map[string]any)
	if match, ok := spec["match"].(map[string]any); ok {
		if list, ok := match["excludedNamespaces"].([]any); ok {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		data := spec["parameters"].(map[string]any)["assign"].(map[string]any)["externalData"].(map[string]any)
		require.NotEmpty(t, data["provider"])
		if prefix != "landwaiter" {
			data["provider"] = "the Tenant's"
		}
	}
	return spec
}

func chartedAs(t *testing.T, charted []*unstructured.Unstructured, object *unstructured.Unstructured, prefix string) map[string]any {
	t.Helper()
	name := strings.Replace(object.GetName(), "landwaiter-tenant-team-a", prefix, 1)
	for _, one := range charted {
		if one.GetKind() == object.GetKind() && one.GetName() == name {
			return withoutNames(t, one, prefix)
		}
	}
	require.Fail(t, "the chart has no "+object.GetKind()+" "+name)
	return nil
}

// Flux builds with kustomize. A namespace in the team's repository that asks for another
// team, or for none, ends up in its own; what is no namespace stays as it is.
func TestTheKustomizationForcesNamespacesIntoTheirTenant(t *testing.T) {
	tenant, _ := tenantValues(t, root+"/pkg/tenancy/onboard/testdata/prefix.tenant.yaml")
	objects, err := onboard.Objects(tenant, onboard.Options{})
	require.NoError(t, err)
	kustomization := objects[len(objects)-1]
	require.Equal(t, "Kustomization", kustomization.GetKind())
	patches, _, err := unstructured.NestedSlice(kustomization.Object, "spec", "patches")
	require.NoError(t, err)
	built, err := yaml.Marshal(map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []string{"repository.yaml"},
		"patches": patches})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), built, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "repository.yaml"), []byte(`
{apiVersion: v1, kind: Namespace, metadata: {name: iris-green-none}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: iris-green-blue, labels: {landwaiter.dev/tenant: iris-blue, toolkit.fluxcd.io/tenant: iris-blue, team: blue}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: iris-green-blue, labels: {landwaiter.dev/tenant: iris-blue}}}
`), 0o600))
	labels := map[string]map[string]string{}
	for _, object := range build(t, dir) {
		labels[object.GetKind()+" "+object.GetName()] = object.GetLabels()
	}
	require.Equal(t, map[string]map[string]string{
		"Namespace iris-green-none": {v1beta1.LabelTenant: "iris-green", v1beta1.LabelFluxTenant: "iris-green"},
		"Namespace iris-green-blue": {v1beta1.LabelTenant: "iris-green", v1beta1.LabelFluxTenant: "iris-green", "team": "blue"},
		"ConfigMap x":               {v1beta1.LabelTenant: "iris-blue"},
	}, labels)
}
