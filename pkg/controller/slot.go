package controller

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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/policy"
)

// slot follows one Secret or ConfigMap, by a watch on its name alone: no other
// object of the namespace is ever read, and a Role may be narrowed to the name.
type slot struct {
	source  policy.ObjectRef
	changed func()
	since   time.Time

	mu       sync.Mutex
	answered bool           // the API server said what there is, or that we may not know
	object   runtime.Object // nil: not there
	err      error          // why it cannot be read
}

var _ cache.ReflectorStore = (*slot)(nil)

func newSlot(source policy.ObjectRef, changed func()) *slot {
	return &slot{source: source, changed: changed, since: time.Now()}
}

// content returns the object, nil if there is none, or why nobody knows.
func (s *slot) content() (object runtime.Object, answered bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object, s.answered, s.err
}

// Add, Update, Delete, Replace and Resync are what the reflector found.

// Add implements [cache.ReflectorStore].
func (s *slot) Add(object any) error { return s.set(object) }

// Update implements [cache.ReflectorStore].
func (s *slot) Update(object any) error { return s.set(object) }

// Delete implements [cache.ReflectorStore].
func (s *slot) Delete(any) error { return s.set(nil) }

// Replace implements [cache.ReflectorStore].
func (s *slot) Replace(list []any, _ string) error {
	for _, object := range list {
		if named, ok := object.(metav1.Object); ok && named.GetName() == s.source.Name {
			return s.set(object)
		}
	}
	return s.set(nil)
}

// Resync implements [cache.ReflectorStore].
func (s *slot) Resync() error { return nil }

func (s *slot) set(found any) error {
	object, _ := found.(runtime.Object)
	if named, ok := found.(metav1.Object); ok {
		if named.GetName() != s.source.Name {
			return fmt.Errorf("follow %s: the API server sent %s", s.source, named.GetName())
		}
		named.SetManagedFields(nil)
	}
	s.mu.Lock()
	same := s.answered && s.err == nil && version(s.object) == version(object)
	s.object, s.answered, s.err = object, true, nil
	s.mu.Unlock()
	if !same {
		s.changed()
	}
	return nil
}

// version tells states of the object apart; "" is none.
func version(object runtime.Object) string {
	if named, ok := object.(metav1.Object); ok {
		return string(named.GetUID()) + "/" + named.GetResourceVersion()
	}
	return ""
}

// fail notes why the object could not be read. A right that is withdrawn takes
// the content with it; anything else says nothing about the object, and what
// was read last stays.
func (s *slot) fail(err error) {
	denied := apierrors.IsForbidden(err)
	s.mu.Lock()
	if s.answered && s.err == nil && !denied {
		s.mu.Unlock()
		return
	}
	news := s.err == nil || apierrors.IsForbidden(s.err) != denied
	s.err = err
	if denied {
		s.object, s.answered = nil, true
	}
	s.mu.Unlock()
	if news {
		s.changed()
	}
}

// run follows the object until ctx ends.
func (s *slot) run(ctx context.Context, clients kubernetes.Interface) {
	fresh := wait.Backoff{Duration: watchBackoff, Factor: 2, Jitter: 0.5, Steps: 10, Cap: watchBackoffCap}
	backoff := fresh
	for ctx.Err() == nil {
		began := time.Now()
		listing, example := listWatch(clients, s.source)
		err := cache.NewReflectorWithOptions(listing, example, s, cache.ReflectorOptions{Name: s.source.String()}).ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.fail(err)
		}
		if err == nil && time.Since(began) > watchShort {
			backoff = fresh // the server ends watches from time to time
		}
		pause := time.NewTimer(backoff.Step())
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// listWatch reads and watches the one object, and gives an example of its type.
func listWatch(clients kubernetes.Interface, source policy.ObjectRef) (cache.ListerWatcher, runtime.Object) {
	switch source.Kind {
	case "Secret":
		secrets := clients.CoreV1().Secrets(source.Namespace)
		return cache.ToListWatcherWithWatchListSemantics(only(source.Name, secrets.List, secrets.Watch), clients), &corev1.Secret{}
	case "ConfigMap":
		configMaps := clients.CoreV1().ConfigMaps(source.Namespace)
		return cache.ToListWatcherWithWatchListSemantics(only(source.Name, configMaps.List, configMaps.Watch), clients), &corev1.ConfigMap{}
	}
	refused := fmt.Errorf("follow %s: only Secrets and ConfigMaps are followed", source)
	return only(source.Name,
		func(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) { return nil, refused },
		func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, refused }), &corev1.ConfigMap{}
}

// only narrows a list and a watch to the object of a name.
func only[L runtime.Object](name string, list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error)) *cache.ListWatch {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return follow(ctx, o)
		},
	}
}
