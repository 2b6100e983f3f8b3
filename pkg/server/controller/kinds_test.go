package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// late is a cache that has the Tenants when it is asked for them the third time.
type late struct {
	ctrlcache.Cache
	asked int
}

func (l *late) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	tenants, ok := list.(*v1beta1.TenantList)
	if !ok {
		return errors.New("it is asked for something else")
	}
	if l.asked++; l.asked < 3 {
		return errors.New("no such kind")
	}
	tenants.Items = make([]v1beta1.Tenant, 1)
	tenants.Items[0].Name, tenants.Items[0].Spec.HomeNamespace = "iris", "iris"
	return nil
}

// starting is a source that says when it starts.
type starting struct {
	source.TypedSyncingSource[verify.Namespace]
	start func()
}

func (n starting) Start(context.Context, namespaces) error {
	n.start()
	return nil
}

func TestResourcesOfNamespacesComeAfterTheTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, at := &late{}, ""
		hold := func(all *resource.Tenants) { at = all.Holder("iris").Name }
		require.NoError(t, afterTenants{starting{start: func() { at += " comes first" }}, cache, hold}.Start(t.Context(), nil))
		require.Equal(t, "iris comes first", at)
	})
	waiting, namespaced := 0, 0
	for _, watched := range sources(&late{}, nil) {
		if _, ok := watched.(afterTenants); ok {
			waiting++
		}
	}
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced {
			namespaced++
		}
	}
	require.Equal(t, namespaced, waiting)
}
