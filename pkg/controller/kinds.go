package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// objects has one object of every kind of resource, in both scopes.
func objects() []v1alpha1.Object {
	return []v1alpha1.Object{
		&v1alpha1.Verifier{}, &v1alpha1.ClusterVerifier{}, &v1alpha1.Store{}, &v1alpha1.ClusterStore{},
		&v1alpha1.TrustStore{}, &v1alpha1.ClusterTrustStore{}, &v1alpha1.VerificationPolicy{}, &v1alpha1.ClusterVerificationPolicy{},
		&v1alpha1.ClusterLimits{},
	}
}

// namespacedLists and clusterLists have an empty list of each kind of a scope.
func namespacedLists() []client.ObjectList {
	return []client.ObjectList{&v1alpha1.VerifierList{}, &v1alpha1.StoreList{}, &v1alpha1.TrustStoreList{}, &v1alpha1.VerificationPolicyList{}}
}

func clusterLists() []client.ObjectList {
	return []client.ObjectList{&v1alpha1.ClusterVerifierList{}, &v1alpha1.ClusterStoreList{}, &v1alpha1.ClusterTrustStoreList{}, &v1alpha1.ClusterVerificationPolicyList{}, &v1alpha1.ClusterLimitsList{}}
}

// listsOf returns the lists of the kinds that a level has.
func listsOf(namespace verify.Namespace) []client.ObjectList {
	if namespace == verify.Cluster {
		return clusterLists()
	}
	return namespacedLists()
}

// sources are all that a change of which asks for a compilation.
func sources(cache ctrlcache.Cache) []source.TypedSource[verify.Namespace] {
	var all []source.TypedSource[verify.Namespace]
	for _, object := range objects() {
		// A status is our own writing and changes nothing.
		all = append(all, source.TypedKind[client.Object](cache, object, byNamespace{}, predicate.GenerationChangedPredicate{}))
	}
	return append(all, source.TypedKind[client.Object](cache, &corev1.Namespace{}, byNamespace{}, onlyLifeAndDeath()))
}

// onlyLifeAndDeath lets pass that a namespace is made or removed: what is
// written on it means nothing here.
func onlyLifeAndDeath() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() }}
}

// byNamespace asks for the namespace of an object, or the one that it is.
type byNamespace struct{}

var _ handler.TypedEventHandler[client.Object, verify.Namespace] = byNamespace{}

type namespaces = workqueue.TypedRateLimitingInterface[verify.Namespace]

func (byNamespace) Create(_ context.Context, e event.CreateEvent, q namespaces) {
	q.Add(levelOf(e.Object))
}
func (byNamespace) Update(_ context.Context, e event.UpdateEvent, q namespaces) {
	q.Add(levelOf(e.ObjectNew))
}
func (byNamespace) Delete(_ context.Context, e event.DeleteEvent, q namespaces) {
	q.Add(levelOf(e.Object))
}
func (byNamespace) Generic(_ context.Context, e event.GenericEvent, q namespaces) {
	q.Add(levelOf(e.Object))
}

func levelOf(object client.Object) verify.Namespace {
	if namespace, ok := object.(*corev1.Namespace); ok {
		return verify.Namespace(namespace.Name)
	}
	return verify.Namespace(object.GetNamespace())
}

// readAll returns all resources of all existing namespaces and of the cluster.
// A resource that is seen before its namespace waits for it: without the UID,
// what is found out about its images could not be kept apart from what a
// namespace of that name had before.
func (c *Controller) readAll(ctx context.Context) (resource.Objects, error) {
	var list corev1.NamespaceList
	if err := c.manager.GetCache().List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return resource.Objects{}, fmt.Errorf("list namespaces: %w", err)
	}
	known := map[string]bool{"": true}
	for i := range list.Items {
		known[list.Items[i].Name] = true
	}
	o := resource.Objects{Namespaces: list.Items}
	for _, list := range append(namespacedLists(), clusterLists()...) {
		if err := c.read(ctx, list, func(object v1alpha1.Object) bool { return known[object.GetNamespace()] }, &o); err != nil {
			return resource.Objects{}, err
		}
	}
	return o, nil
}

// readOne returns the resources of one namespace, and nothing if it is gone.
func (c *Controller) readOne(ctx context.Context, namespace verify.Namespace) (resource.Objects, error) {
	var found corev1.Namespace
	err := c.manager.GetCache().Get(ctx, client.ObjectKey{Name: string(namespace)}, &found)
	if apierrors.IsNotFound(err) {
		return resource.Objects{}, nil
	}
	if err != nil {
		return resource.Objects{}, fmt.Errorf("get namespace %s: %w", namespace, err)
	}
	o := resource.Objects{Namespaces: []corev1.Namespace{found}}
	for _, list := range namespacedLists() {
		if err := c.read(ctx, list, nil, &o, client.InNamespace(namespace)); err != nil {
			return resource.Objects{}, err
		}
	}
	return o, nil
}

// read takes a list's objects into o, those that keep wants; nil wants all.
func (c *Controller) read(ctx context.Context, list client.ObjectList, keep func(v1alpha1.Object) bool, o *resource.Objects, options ...client.ListOption) error {
	return c.each(ctx, list, func(object v1alpha1.Object) error {
		if keep == nil || keep(object) {
			return o.Add(object)
		}
		return nil
	}, options...)
}

// each calls do for every object of the list's kind in the cache. The objects
// are the cache's own: they must not be changed.
func (c *Controller) each(ctx context.Context, list client.ObjectList, do func(v1alpha1.Object) error, options ...client.ListOption) error {
	if err := c.manager.GetCache().List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("list resources: %w", err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(v1alpha1.Object)
		if !ok {
			return fmt.Errorf("list resources: %T is none", item)
		}
		return do(object)
	})
}
