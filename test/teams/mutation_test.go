//go:build e2e

package teams

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// pinning makes a team that pins tags, with a Store of its own in home.
func pinning(t *testing.T, name string) {
	t.Helper()
	gone(t, name)
	tenant(t, fmt.Sprintf("metadata: {name: %s}\nspec: {home: %s, namespaces: [%s-web]}", name, name, name))
	eventually(t, name, settle, func(objects map[string]*unstructured.Unstructured) bool {
		return objects["Namespace /"+name+"-web"] != nil
	})
	objects, err := cluster.Decode([]byte(fmt.Sprintf(`
apiVersion: landwaiter.dev/v1alpha1
kind: Store
metadata: {namespace: %s, name: own}
spec: {registries: [own.example.com]}
---
apiVersion: landwaiter.dev/v1alpha1
kind: VerificationPolicy
metadata: {namespace: %s, name: tags}
spec: {defaultAction: Inherit, tags: Pin}
`, name, name)))
	require.NoError(t, err)
	require.NoError(t, w.Apply(within(t), objects...))
}

// read returns a cluster-scoped object, nil if there is none.
func read(t *testing.T, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := w.Client.Get(within(t), client.ObjectKey{Name: name}, object); err != nil {
		require.NoError(t, client.IgnoreNotFound(err))
		return nil
	}
	return object
}

var (
	provider = schema.GroupVersionKind{Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Kind: "Provider"}
	assign   = schema.GroupVersionKind{Group: "mutations.gatekeeper.sh", Version: "v1", Kind: "Assign"}
)

// pins reports which namespaces an Assign pins, or an error.
func pins(t *testing.T, name string) ([]string, error) {
	t.Helper()
	object := read(t, assign, name)
	if object == nil {
		return nil, errors.New("there is no Assign " + name)
	}
	namespaces, _, err := unstructured.NestedStringSlice(object.Object, "spec", "match", "namespaces")
	return namespaces, err
}

func TestTagsArePinnedWithTheStoresOfTheTeamUpToALimit(t *testing.T) {
	operate(t, "--mutation-limit=1")
	pinning(t, "pin-a")
	var namespaces []string
	require.NoError(t, cluster.Until(within(t), func(context.Context) (err error) {
		namespaces, err = pins(t, "landwaiter-tenant-pin-a-pods-containers")
		return err
	}))
	require.Equal(t, []string{"pin-a", "pin-a-web"}, namespaces)
	made := read(t, provider, "landwaiter-tenant-pin-a")
	url, _, _ := unstructured.NestedString(made.Object, "spec", "url")
	require.Equal(t, "https://landwaiter.landwaiter-system.svc:443/v1/namespaces/pin-a/mutate", url)
	for _, name := range []string{"landwaiter-verify", "landwaiter-tenant-pin-a", "landwaiter-mutate"} {
		bundle, _, _ := unstructured.NestedString(read(t, provider, name).Object, "spec", "caBundle")
		require.NotEmpty(t, bundle)
		want, _, _ := unstructured.NestedString(read(t, provider, "landwaiter-verify").Object, "spec", "caBundle")
		require.Equal(t, want, bundle, name)
	}
	provisioned(t, "pin-a", metav1.ConditionTrue, "Provisioned")

	// The second is past the limit: the cluster's Stores pin its tags, and it is told.
	pinning(t, "pin-b")
	require.Contains(t, provisioned(t, "pin-b", metav1.ConditionFalse, "LimitExceeded"), "not all Stores of Tenant pin-b pin tags, because the limit is 1 sets of mutation objects")
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		namespaces, err := pins(t, "landwaiter-pods-containers")
		if err == nil && fmt.Sprint(namespaces) != "[pin-b pin-b-web]" {
			err = fmt.Errorf("the cluster's Stores pin %v", namespaces)
		}
		return err
	}))
	require.Nil(t, read(t, provider, "landwaiter-tenant-pin-b"))

	// Once the first has gone, its objects have too, and the second gets its own.
	must(t, "tenant", "delete", "pin-a", "--delete-namespaces", "--yes")
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		if read(t, provider, "landwaiter-tenant-pin-a") != nil {
			return errors.New("the objects of the first are still there")
		}
		_, err := pins(t, "landwaiter-tenant-pin-b-pods-containers")
		return err
	}))
	provisioned(t, "pin-b", metav1.ConditionTrue, "Provisioned")

	// A team that leaves tags alone has none.
	policy := &v1alpha1.VerificationPolicy{}
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: "pin-b", Name: "tags"}, policy))
	require.NoError(t, w.Client.Patch(within(t), policy, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"tags":"Leave"}}`))))
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		for _, name := range []string{"landwaiter-tenant-pin-b-pods-containers", "landwaiter-pods-containers"} {
			if read(t, assign, name) != nil {
				return errors.New(name + " is still there")
			}
		}
		return nil
	}))
}
