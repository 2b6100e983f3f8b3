// Package watch watches the Kubernetes API in bounded memory, and with no more permissions than it
// needs. [NewInformer] is for all objects of a kind: it reads lists page by page, and reduces
// objects before it keeps them. [Object] is for one Secret, ConfigMap or ServiceAccount by its
// name: it reads no other object of the namespace, so a Role can be limited to the name.
//
// It refuses to watch single objects of other kinds. An object that it cannot read never looks
// like one that does not exist. It does not decide what an object means.
package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Object holds the state of one object. It is safe for concurrent
// use; Run is called once.
type Object struct {
	kind    string
	name    types.NamespacedName
	changed func()

	mu       sync.Mutex
	answered bool           // the API server returned the object, reported that it does not exist, or denied access
	object   runtime.Object // nil: does not exist
	err      error          // why the object cannot be read
}

// NewObject returns an Object that watches the object of a kind. It calls changed after every
// change of what Content returns, never while it holds a lock.
func NewObject(kind string, name types.NamespacedName, changed func()) *Object {
	return &Object{kind: kind, name: name, changed: changed}
}

// String names the object.
func (w *Object) String() string { return w.kind + " " + w.name.String() }

// Content returns the object, or nil if it does not exist. The object is shared
// and must not be modified. answered is false until the API server has answered
// for the first time; err says why the object cannot be read. A Forbidden error
// is an answer.
func (w *Object) Content() (object runtime.Object, answered bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.object, w.answered, w.err
}

// Run watches until ctx ends, with growing pauses between failures.
func (w *Object) Run(ctx context.Context, clients kubernetes.Interface) {
	// The reflector logs what fails with the logger of its context.
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "namespace", w.name.Namespace))
	initial := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.5, Steps: 10, Cap: maxPause}
	backoff := initial
	listing, example, err := w.listWatch(clients)
	if err != nil {
		w.fail(err)
		return
	}
	for ctx.Err() == nil {
		began := time.Now()
		reflector := cache.NewReflectorWithOptions(listing, example, store{w}, cache.ReflectorOptions{Name: w.String()})
		err := reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.fail(err)
		}
		if err == nil && time.Since(began) > shortWatch {
			backoff = initial // API servers end watches from time to time
		}
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
		}
	}
}

func (w *Object) set(found any) error {
	object, _ := found.(runtime.Object)
	if named, ok := found.(metav1.Object); ok {
		if named.GetName() != w.name.Name {
			return nil // an error would make the reflector log the object, content included
		}
	}
	if object != nil {
		object = object.DeepCopyObject() // whoever sent the event may still read it
		reduce(object)
	}
	w.mu.Lock()
	same := w.answered && w.err == nil && version(w.object) == version(object)
	w.object, w.answered, w.err = object, true, nil
	w.mu.Unlock()
	if !same {
		w.changed()
	}
	return nil
}

// reduce drops everything that nobody reads before the object is kept: all metadata except the
// roles of a TUF repository, and everything in a ServiceAccount except its pull secrets.
func reduce(object runtime.Object) {
	if named, ok := object.(metav1.Object); ok {
		var kept map[string]string
		if roles, has := named.GetAnnotations()[v1beta1.AnnotationTUFRoles]; has {
			kept = map[string]string{v1beta1.AnnotationTUFRoles: roles}
		}
		named.SetAnnotations(kept)
		named.SetLabels(nil)
		named.SetFinalizers(nil)
		named.SetOwnerReferences(nil)
		named.SetManagedFields(nil)
	}
	if account, ok := object.(*corev1.ServiceAccount); ok {
		account.Secrets = nil
	}
}

// version identifies a state of the object; "" means that it does not exist.
func version(object runtime.Object) string {
	if named, ok := object.(metav1.Object); ok {
		return string(named.GetUID()) + "/" + named.GetResourceVersion()
	}
	return ""
}

// fail records why the object could not be read. A Forbidden error drops the
// content: the permission to read it was withdrawn. Any other error says nothing about
// the object, so the last content stays.
func (w *Object) fail(err error) {
	denied := apierrors.IsForbidden(err)
	w.mu.Lock()
	if w.answered && w.err == nil && !denied {
		w.mu.Unlock()
		return
	}
	news := w.err == nil || apierrors.IsForbidden(w.err) != denied
	w.err = err
	if denied {
		w.object, w.answered = nil, true
	}
	w.mu.Unlock()
	if news {
		w.changed()
	}
}

// store receives the events of a reflector.
type store struct{ watch *Object }

var _ cache.ReflectorStore = store{}

func (s store) Add(object any) error    { return s.watch.set(object) }
func (s store) Update(object any) error { return s.watch.set(object) }
func (s store) Resync() error           { return nil }

func (s store) Delete(object any) error {
	if named, ok := object.(metav1.Object); ok && named.GetName() != s.watch.name.Name {
		return nil
	}
	return s.watch.set(nil)
}

func (s store) Replace(list []any, _ string) error {
	for _, object := range list {
		if named, ok := object.(metav1.Object); ok && named.GetName() == s.watch.name.Name {
			return s.watch.set(object)
		}
	}
	return s.watch.set(nil)
}

// listWatch returns functions that list and watch the one object, and an example of its type.
func (w *Object) listWatch(clients kubernetes.Interface) (cache.ListerWatcher, runtime.Object, error) {
	switch w.kind {
	case "Secret":
		secrets := clients.CoreV1().Secrets(w.name.Namespace)
		return byName(w.name.Name, secrets.List, secrets.Watch), &corev1.Secret{}, nil
	case "ConfigMap":
		configMaps := clients.CoreV1().ConfigMaps(w.name.Namespace)
		return byName(w.name.Name, configMaps.List, configMaps.Watch), &corev1.ConfigMap{}, nil
	case "ServiceAccount":
		accounts := clients.CoreV1().ServiceAccounts(w.name.Namespace)
		return byName(w.name.Name, accounts.List, accounts.Watch), &corev1.ServiceAccount{}, nil
	}
	return nil, nil, fmt.Errorf("watch %s: only Secrets, ConfigMaps and ServiceAccounts can be watched", w)
}

// listed makes a reflector list first: a streamed list takes longer, and the watch would keep a
// buffer of its size.
type listed struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is called by reflectors.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// byName restricts a list and a watch to the object of that name.
func byName[L runtime.Object](name string, list func(context.Context, metav1.ListOptions) (L, error),
	watching func(context.Context, metav1.ListOptions) (watch.Interface, error)) listed {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	var back rewinds
	listing := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.FieldSelector = selector
		return list(ctx, o)
	}
	return listed{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			found, err := listing(ctx, o)
			back.listed.Store(err == nil)
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := back.check(ctx, o, listing); err != nil {
				return nil, err
			}
			o.FieldSelector = selector
			return watching(ctx, o)
		},
	}}
}
