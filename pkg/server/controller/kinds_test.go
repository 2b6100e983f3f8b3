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
)

// late is a cache that has the Tenants when it is asked for them the third time.
type late struct {
	ctrlcache.Cache
	asked int
}

func (l *late) GetInformer(_ context.Context, object client.Object, _ ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	if _, ok := object.(*v1beta1.Tenant); !ok {
		return nil, errors.New("it is asked for something else")
	}
	if l.asked++; l.asked < 3 {
		return nil, errors.New("no such kind")
	}
	return nil, nil
}

// noting is a source that notes when it starts.
type noting struct {
	source.TypedSyncingSource[verify.Namespace]
	start func()
}

func (n noting) Start(context.Context, namespaces) error {
	n.start()
	return nil
}

func TestResourcesOfNamespacesComeAfterTheTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, at := &late{}, 0
		require.NoError(t, afterTenants{noting{start: func() { at = cache.asked }}, cache}.Start(t.Context(), nil))
		require.Equal(t, 3, at)
	})
	waiting, namespaced := 0, 0
	for _, watched := range sources(&late{}) {
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
