package watch

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// pageSize is the number of objects of one page. An object in etcd has at most 1.5 MiB, so
// even a page of the largest ones fits into the memory of a replica.
const pageSize = 16

// Reduce returns a transform for informers, which changes the object in place. Objects of type T
// are reduced by keep, such as resource.Keep; other objects lose their managed fields.
func Reduce[T metav1.Object](keep func(T) error) cache.TransformFunc {
	return func(object any) (any, error) {
		switch object := object.(type) {
		case T:
			return object, keep(object)
		case metav1.Object:
			object.SetManagedFields(nil)
		}
		return object, nil
	}
}

// NewInformer returns a constructor of informers, for the option NewInformer of a
// controller-runtime cache. If the API server does not stream lists, it reads them in pages and
// reduces each page in place before the next: the informer itself would decode the whole list.
// Informers list again if the API server's resource versions went back.
func NewInformer(reduce cache.TransformFunc) func(cache.ListerWatcher, runtime.Object, time.Duration,
	cache.Indexers) cache.SharedIndexInformer {
	return func(source cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		paged := pages{ListerWatcherWithContext: cache.ToListerWatcherWithContext(source), ListerWatcher: source, reduce: reduce,
			rewinds: &rewinds{}}
		return cache.NewSharedIndexInformer(paged, object, resync, indexers)
	}
}

// pages lists in pages. It watches, and streams lists, as its source does.
type pages struct {
	cache.ListerWatcher
	cache.ListerWatcherWithContext
	reduce  cache.TransformFunc
	rewinds *rewinds
}

// WatchWithContext watches as the source does, unless resource versions went back.
func (p pages) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := p.rewinds.check(ctx, options, p.ListerWatcherWithContext.ListWithContext); err != nil {
		return nil, err
	}
	return p.ListerWatcherWithContext.WatchWithContext(ctx, options)
}

// ListWithContext lists all objects, reduced. It ignores the resource version and limit in
// options: with them, an API server would send the whole list from its cache.
func (p pages) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit = "", "", pageSize
	reader := pager.New(p.page)
	reader.FullListIfExpired = false // the informer starts again
	list, _, err := reader.ListWithAlloc(ctx, options)
	p.rewinds.listed.Store(err == nil)
	return list, err
}

// page reads one page and reduces its objects.
func (p pages) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := p.ListerWatcherWithContext.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		_, err := p.reduce(item) // in place
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reduce a list: %w", err)
	}
	return list, nil
}
