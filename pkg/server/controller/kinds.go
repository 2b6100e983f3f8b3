package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// sources returns the watches that trigger a recompile. hold is told which Tenants there are at first.
func sources(cache ctrlcache.Cache, hold func(*resource.Tenants)) []source.TypedSource[verify.Namespace] {
	var all []source.TypedSource[verify.Namespace]
	for _, kind := range v1beta1.Kinds() {
		// Only specs matter: we write the statuses ourselves.
		watched := source.TypedKind[client.Object](cache, kind.New(), byNamespace(), specChanged())
		if kind.Namespaced {
			watched = afterTenants{watched, cache, hold}
		}
		all = append(all, watched)
	}
	return append(all, source.TypedKind[client.Object](cache, &corev1.Namespace{}, byNamespace(), namespaceChanged()))
}

// afterTenants starts a source once the cache has all Tenants, so that it is known whose namespaces
// the resources of the source are in.
type afterTenants struct {
	source.TypedSyncingSource[verify.Namespace]
	cache ctrlcache.Cache
	hold  func(*resource.Tenants)
}

// Start blocks until then; the controller bounds how long.
func (s afterTenants) Start(ctx context.Context, queue namespaces) error {
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		var list v1beta1.TenantList
		if err := s.cache.List(ctx, &list); err != nil { // waits until it has synced
			return false, nil //nolint:nilerr // the source of Tenants logs errors
		}
		var all []*v1beta1.Tenant
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		s.hold(resource.NewTenants(all))
		return true, nil
	})
	return s.TypedSyncingSource.Start(ctx, queue) // which ends like any other if ctx has ended
}

// specChanged accepts events that may change the spec of a resource: generations belong to
// one object, and one that was created again while the watch was interrupted arrives as an
// update.
func specChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}}
}

// namespaceChanged accepts the creation and deletion of a namespace, the start of its deletion (a
// home namespace that is being deleted must not leave its Tenant to the cluster's rules), and
// changes of break-glass and of the Tenant's label. Other content has no effect.
func namespaceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		for _, key := range resolve.BreakGlassAnnotations() {
			was, had := before[key]
			if is, has := after[key]; is != was || has != had {
				return true
			}
		}
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			e.ObjectOld.GetLabels()[v1beta1.LabelTenant] != e.ObjectNew.GetLabels()[v1beta1.LabelTenant]
	}}
}

// reduce is the transform of the cache. Of a namespace it keeps the identity, break-glass and the
// Tenant's label: a team's account may put much else on one that it made. Of resources it keeps
// the specs that there is room for.
func reduce(room *resource.Room) toolscache.TransformFunc {
	resources := watch.Reduce(room.Keep)
	return func(object any) (any, error) {
		if namespace, ok := object.(*corev1.Namespace); ok {
			reduceNamespace(namespace)
			return namespace, nil
		}
		return resources(object)
	}
}

func reduceNamespace(namespace *corev1.Namespace) {
	annotations := map[string]string{}
	for _, key := range resolve.BreakGlassAnnotations() {
		value, ok := namespace.Annotations[key]
		switch {
		case ok && len(value) <= maxAnnotation:
			annotations[key] = value
		case ok:
			annotations[key] = "" // which no break-glass may have
		}
	}
	var labels map[string]string
	if tenant := namespace.Labels[v1beta1.LabelTenant]; tenant != "" { // the API server bounds it
		labels = map[string]string{v1beta1.LabelTenant: tenant}
	}
	resource.Strip(namespace)
	namespace.Labels, namespace.Annotations = labels, annotations
	namespace.Spec, namespace.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
}

type namespaces = workqueue.TypedRateLimitingInterface[verify.Namespace]

// byNamespace enqueues the level of an object.
func byNamespace() handler.TypedEventHandler[client.Object, verify.Namespace] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []verify.Namespace {
		return []verify.Namespace{levelOf(object)}
	})
}

// levelOf returns the namespace of an object. For a Namespace, that is its name.
func levelOf(object client.Object) verify.Namespace {
	if namespace, ok := object.(*corev1.Namespace); ok {
		return verify.Namespace(namespace.Name)
	}
	return verify.Namespace(object.GetNamespace())
}

// objectReader reads resources from a cache or an API server. Callers must not modify
// the objects: they may belong to the cache.
type objectReader struct {
	client.Reader

	// clusterResources is [Options.ClusterResourceNamespace].
	clusterResources string
}

// all returns the resources of all existing namespaces and of the cluster. It skips a
// resource whose namespace is unknown: without the UID, its results could be confused with
// those of an earlier namespace of that name.
func (r objectReader) all(ctx context.Context) (resource.Objects, error) {
	var list corev1.NamespaceList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return resource.Objects{}, fmt.Errorf("list namespaces: %w", err)
	}
	known := map[string]bool{"": true}
	for i := range list.Items {
		known[list.Items[i].Name] = true
	}
	o := resource.Objects{Namespaces: list.Items, ClusterResourceNamespace: r.clusterResources}
	for _, kind := range v1beta1.Kinds() {
		err := r.forEach(ctx, kind, func(object v1beta1.Object) error {
			if !known[object.GetNamespace()] {
				return nil
			}
			return o.Add(object)
		})
		if err != nil {
			return resource.Objects{}, err
		}
	}
	return o, nil
}

// level returns the resources of a namespace, or of the cluster. It returns none if
// the namespace does not exist.
func (r objectReader) level(ctx context.Context, level verify.Namespace) (resource.Objects, error) {
	o := resource.Objects{ClusterResourceNamespace: r.clusterResources}
	var options []client.ListOption
	if level != verify.Cluster {
		var found corev1.Namespace
		err := r.Get(ctx, client.ObjectKey{Name: string(level)}, &found)
		if apierrors.IsNotFound(err) {
			return o, nil
		}
		if err != nil {
			return o, fmt.Errorf("get namespace %s: %w", level, err)
		}
		o.Namespaces = []corev1.Namespace{found}
		options = append(options, client.InNamespace(level))
	}
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced != (level != verify.Cluster) {
			continue
		}
		if err := r.forEach(ctx, kind, func(object v1beta1.Object) error { return o.Add(object) }, options...); err != nil {
			return resource.Objects{}, err
		}
	}
	return o, nil
}

// forEach calls do for every object of a kind.
func (r objectReader) forEach(ctx context.Context, kind v1beta1.Kind, do func(v1beta1.Object) error, options ...client.ListOption) error {
	list, ok := kind.NewList().(client.ObjectList)
	if !ok {
		return fmt.Errorf("list %s: %T is not a list", kind.Plural, kind.NewList())
	}
	if err := r.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("list %s: %w", kind.Plural, err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(v1beta1.Object)
		if !ok {
			return fmt.Errorf("list %s: %T is not a resource", kind.Plural, item)
		}
		return do(object)
	})
}

var _ service.Finder = (*Finder)(nil)

// recent is a cache of bounded size, of otter. Every package that sees a type of otter compiles all
// of its methods again, for a second or more, so no field has such a type.
type recent[K comparable, V any] interface {
	GetIfPresent(key K) (V, bool)
	Set(key K, value V) (V, bool)
	ComputeIfAbsent(key K, compute func() (value V, cancel bool)) (V, bool)
}

// Finder looks up namespaces at the API server: one lookup at a time per name, and no
// repetition for a moment if there is none.
type Finder struct {
	clients kubernetes.Interface
	flights singleflight.Group
	missing recent[verify.Namespace, struct{}]
}

// NewFinder returns a Finder that asks the API server of config.
func NewFinder(config *rest.Config) (*Finder, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("look up namespaces: %w", err)
	}
	return newFinder(clients), nil
}

func newFinder(clients kubernetes.Interface) *Finder {
	return &Finder{clients: clients, missing: otter.Must(&otter.Options[verify.Namespace, struct{}]{
		MaximumSize: maxMissing, ExpiryCalculator: otter.ExpiryWriting[verify.Namespace, struct{}](missingFor)})}
}

// Exists asks the API server whether a namespace exists. An error means that this is
// unknown.
func (f *Finder) Exists(ctx context.Context, namespace verify.Namespace) (bool, error) {
	if _, missing := f.missing.GetIfPresent(namespace); missing {
		return false, nil
	}
	result := f.flights.DoChan(string(namespace), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
		defer cancel()
		_, err := f.clients.CoreV1().Namespaces().Get(ctx, string(namespace), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			f.missing.Set(namespace, struct{}{})
			return false, nil
		}
		return err == nil, err
	})
	select {
	case <-ctx.Done():
		return false, fmt.Errorf("ask the API server: %w", ctx.Err())
	case r := <-result:
		exists, ok := r.Val.(bool)
		if r.Err != nil {
			return false, fmt.Errorf("ask the API server: %w", r.Err)
		}
		return exists && ok, nil
	}
}

// grantHint returns a function that returns the command that grants read access to an object.
func (c *Controller) grantHint(ctx context.Context) func(policy.ObjectRef) string {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	subject, _ := ownSubject(ctx, c.clients) // else a placeholder
	return func(source policy.ObjectRef) string {
		return fmt.Sprintf("kubectl create rolebinding %s --namespace=%s --clusterrole=%s %s",
			c.options.ReferenceReaderRole, source.Namespace, c.options.ReferenceReaderRole, subject)
	}
}

// subjectFlag returns the flag of kubectl create rolebinding for a user.
func subjectFlag(user string) string {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		return "--serviceaccount=" + account
	}
	return "--user=" + user
}
