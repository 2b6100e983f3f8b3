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

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// pinning makes a team that pins tags, with a Store of its own in the home namespace.
func (w *installation) pinning(t *testing.T, name string) {
	t.Helper()
	w.tenant(t, fmt.Sprintf("metadata: {name: %s}\nspec: {homeNamespace: %s, namespaces: [%s-web]}", name, name, name))
	w.follows(t, name, func(objects map[string]*unstructured.Unstructured) bool {
		return objects["Namespace /"+name+"-web"] != nil
	})
	require.NoError(t, w.Apply(suite.Within(t), suite.Resource("Store", name, "own", "{registries: [own.example.com]}"),
		suite.Resource("VerificationPolicy", name, "tags", "{defaultAction: Inherit, tags: Pin}")))
}

// read returns a cluster-scoped object, nil if there is none.
func (w *installation) read(t *testing.T, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := w.Client.Get(suite.Within(t), client.ObjectKey{Name: name}, object); err != nil {
		require.NoError(t, client.IgnoreNotFound(err))
		return nil
	}
	return object
}

var (
	providers = schema.GroupVersionKind{Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Kind: "Provider"}
	assigns   = schema.GroupVersionKind{Group: "mutations.gatekeeper.sh", Version: "v1", Kind: "Assign"}
)

// pins reports which namespaces an Assign pins, or an error.
func (w *installation) pins(t *testing.T, name string) ([]string, error) {
	t.Helper()
	object := w.read(t, assigns, name)
	if object == nil {
		return nil, errors.New("there is no Assign " + name)
	}
	namespaces, _, err := unstructured.NestedStringSlice(object.Object, "spec", "match", "namespaces")
	return namespaces, err
}

func TestTagsArePinnedWithTheStoresOfTheTeamUpToALimit(t *testing.T) {
	w := installed(t)
	w.gone(t, "pin-a", "pin-b")
	w.vacant(t, "pin-a", "pin-a-web")
	w.operate(t, "--mutation=limit=1")
	w.pinning(t, "pin-a")
	var namespaces []string
	suite.Eventually(t, func(context.Context) (err error) {
		namespaces, err = w.pins(t, "landwaiter-tenant-pin-a-pods-containers")
		return err
	})
	require.Equal(t, []string{"pin-a", "pin-a-web"}, namespaces)
	made := w.read(t, providers, "landwaiter-tenant-pin-a")
	url, _, _ := unstructured.NestedString(made.Object, "spec", "url")
	require.Equal(t, "https://landwaiter.landwaiter-system.svc:443/v1/namespaces/pin-a/mutate", url)
	for _, name := range []string{"landwaiter-verify", "landwaiter-tenant-pin-a", "landwaiter-mutate"} {
		bundle, _, _ := unstructured.NestedString(w.read(t, providers, name).Object, "spec", "caBundle")
		require.NotEmpty(t, bundle)
		want, _, _ := unstructured.NestedString(w.read(t, providers, "landwaiter-verify").Object, "spec", "caBundle")
		require.Equal(t, want, bundle, name)
	}
	w.provisioned(t, "pin-a", metav1.ConditionTrue, "Provisioned")

	// The second is past the limit: the cluster's Stores pin its tags, and it is told.
	w.pinning(t, "pin-b")
	require.Contains(t, w.provisioned(t, "pin-b", metav1.ConditionFalse, "LimitExceeded"),
		"not all Stores of Tenant pin-b pin tags, because the limit is 1 sets of mutation objects")
	suite.Eventually(t, func(context.Context) error {
		namespaces, err := w.pins(t, "landwaiter-pods-containers")
		if err == nil && fmt.Sprint(namespaces) != "[pin-b pin-b-web]" {
			err = fmt.Errorf("the cluster's Stores pin %v", namespaces)
		}
		return err
	})
	require.Nil(t, w.read(t, providers, "landwaiter-tenant-pin-b"))

	// Once the first has gone, its objects have too, and the second gets its own.
	w.program.Must(t, "tenant", "delete", "pin-a", "--yes")
	suite.Eventually(t, func(context.Context) error {
		if w.read(t, providers, "landwaiter-tenant-pin-a") != nil {
			return errors.New("the objects of the first are still there")
		}
		_, err := w.pins(t, "landwaiter-tenant-pin-b-pods-containers")
		return err
	})
	w.provisioned(t, "pin-b", metav1.ConditionTrue, "Provisioned")

	// A team that leaves tags alone has none, nor has the namespace that the first has left.
	for _, namespace := range []string{"pin-a", "pin-b"} {
		w.patch(t, &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tags"}}, `{"spec":{"tags":"Leave"}}`)
	}
	suite.Eventually(t, func(context.Context) error {
		for _, name := range []string{"landwaiter-tenant-pin-b-pods-containers", "landwaiter-pods-containers"} {
			if w.read(t, assigns, name) != nil {
				return errors.New(name + " is still there")
			}
		}
		return nil
	})
}
