package onboard

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// everything renders all that a Tenant can stand for.
func everything() Options { return Options{ClusterRights: true, Constraints: true} }

func readTenant(t *testing.T, name string) *v1beta1.Tenant {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".tenant.yaml"))
	require.NoError(t, err)
	tenant := &v1beta1.Tenant{}
	require.NoError(t, yaml.UnmarshalStrict(text, tenant))
	return tenant
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("LANDWAITER_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func documents(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, object := range objects {
		one, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		text.WriteString("---\n")
		text.Write(one)
	}
	return text.Bytes()
}

// ids are "Kind namespace/name" in order.
func ids(objects []*unstructured.Unstructured) []string {
	var found []string
	for _, object := range objects {
		found = append(found, strings.TrimSuffix(object.GetKind()+" "+object.GetNamespace(), " ")+"/"+object.GetName())
	}
	return found
}

func find(t *testing.T, objects []*unstructured.Unstructured, id string) *unstructured.Unstructured {
	t.Helper()
	for i, name := range ids(objects) {
		if name == id {
			return objects[i]
		}
	}
	require.Contains(t, ids(objects), id)
	return nil
}

func render(t *testing.T, tenant *v1beta1.Tenant, o Options) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Objects(tenant, o)
	require.NoError(t, err)
	return objects
}

func TestObjectsAreThoseOfTheGoldenFiles(t *testing.T) {
	for _, name := range []string{"odd-names", "one-namespace", "people", "prefix"} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".objects.yaml", documents(t, render(t, readTenant(t, name), everything())))
		})
	}
}

func TestRenderingTwiceGivesTheSameAndChangesNothing(t *testing.T) {
	tenant := readTenant(t, "prefix")
	before := tenant.DeepCopy()
	first := render(t, tenant, everything())
	first[0].SetName("changed by the caller")
	second := render(t, tenant, everything())
	require.Equal(t, before, tenant)
	require.Equal(t, "iris-green", second[0].GetName())
	require.Equal(t, documents(t, second), documents(t, render(t, tenant, everything())))
}

func TestEveryObjectNamesItsTenantAndIsThePlatforms(t *testing.T) {
	for _, object := range render(t, readTenant(t, "prefix"), everything()) {
		labels := object.GetLabels()
		require.Equal(t, "iris-green", labels[v1beta1.LabelTenant], object.GetName())
		if object.GetKind() != "Namespace" {
			require.Equal(t, v1beta1.OwnerPlatform, labels[v1beta1.LabelOwner], object.GetName())
		}
		require.NotContains(t, object.Object, "status")
		require.NotContains(t, object.Object["metadata"], "creationTimestamp")
		_, err := json.Marshal(object)
		require.NoError(t, err)
	}
}

func TestRestrictionsComeBeforeRightsAndFluxLast(t *testing.T) {
	rank := map[string]int{"Namespace": 0, "NetworkPolicy": 1, "ResourceQuota": 2, "ConfigMap": 3, "TenantAllowedRegistries": 4, "ServiceAccount": 5,
		"RoleBinding": 6, "ClusterRole": 7, "ClusterRoleBinding": 8, "OCIRepository": 9, "Kustomization": 10}
	last := 0
	for _, object := range render(t, readTenant(t, "prefix"), everything()) {
		at, known := rank[object.GetKind()]
		require.True(t, known, object.GetKind())
		require.GreaterOrEqual(t, at, last, "%s %s", object.GetKind(), object.GetName())
		last = at
	}
}

func TestDevelopersAndViewersHaveNothingInHome(t *testing.T) {
	for _, id := range ids(render(t, readTenant(t, "prefix"), everything())) {
		require.NotContains(t, id, "iris-green/iris-green-developers")
		require.NotContains(t, id, "iris-green/iris-green-viewers")
	}
}

func TestNamespacesOfThePrefixAreEquippedWhenTheyAreGiven(t *testing.T) {
	objects := render(t, readTenant(t, "prefix"), Options{Namespaces: []string{"iris-green-new", "iris-green", "greenhouse", "iris-green-new"}})
	require.Contains(t, ids(objects), "NetworkPolicy iris-green-new/default-deny")
	require.Contains(t, ids(objects), "RoleBinding iris-green-new/iris-green-reconciler")
	require.NotContains(t, strings.Join(ids(objects), " "), "iris-green-web", "the caller knows that another Tenant has it")
	require.Len(t, ids(objects), len(render(t, readTenant(t, "prefix"), Options{})))
}

func TestOptionsLeaveOutWhatTheCallerMayNotMake(t *testing.T) {
	all := strings.Join(ids(render(t, readTenant(t, "prefix"), Options{})), "\n")
	for _, kind := range []string{"ClusterRoleBinding", "TenantAllowedRegistries"} {
		require.NotContains(t, all, kind)
	}
}

func TestLandwaitersAccountReadsHomeAlone(t *testing.T) {
	objects := render(t, readTenant(t, "prefix"), Options{Landwaiter: types.NamespacedName{Namespace: "security", Name: "lw"}})
	binding := find(t, objects, "RoleBinding iris-green/landwaiter-reference-reader")
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"kind": "ServiceAccount", "namespace": "security", "name": "lw"}}, subjects)
	require.NotContains(t, ids(objects), "RoleBinding iris-green-web/landwaiter-reference-reader")
}

// Every replica keeps what a team writes, in its home namespace too.
func TestEveryNamespaceLimitsHowManyResourcesATeamHas(t *testing.T) {
	tenant := readTenant(t, "prefix")
	tenant.Spec.Isolation.Quota["count/verifiers.landwaiter.dev"] = resource.MustParse("100")
	objects := render(t, tenant, everything())
	for namespace, verifiers := range map[string]string{"iris-green": "64", "iris-green-web": "100"} {
		quota := find(t, objects, "ResourceQuota "+namespace+"/tenant")
		hard, _, err := unstructured.NestedStringMap(quota.Object, "spec", "hard")
		require.NoError(t, err)
		require.Equal(t, verifiers, hard["count/verifiers.landwaiter.dev"], namespace)
		for _, kind := range v1beta1.Kinds() {
			limit, ok := hard["count/"+kind.Plural+".landwaiter.dev"]
			require.Equal(t, kind.Namespaced, ok, "%s in %s", kind.Plural, namespace)
			require.True(t, !ok || kind.Plural == "verifiers" || limit == "64", "%s in %s: %s", kind.Plural, namespace, limit)
		}
		require.Equal(t, namespace != "iris-green", hard["pods"] == "50", "the home namespace has no pods")
	}
}
