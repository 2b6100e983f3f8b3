package controller

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// sizeOf returns how much memory a Secret, ConfigMap or ServiceAccount takes, in bytes, or an
// error if it has so many entries that it is not kept. Short entries take far more than their
// text.
func sizeOf(object runtime.Object) (size int, err error) {
	count, what := 0, "keys"
	add := func(length int) { size, count = size+entryBytes+length, count+1 }
	switch object := object.(type) {
	case *corev1.Secret:
		for key, value := range object.Data {
			add(len(key) + len(value))
		}
		size += len(object.Type)
	case *corev1.ConfigMap:
		for key, value := range object.Data {
			add(len(key) + len(value))
		}
		for key, value := range object.BinaryData {
			add(len(key) + len(value))
		}
		for key, value := range object.Annotations {
			size += len(key) + len(value)
		}
	case *corev1.ServiceAccount:
		what = "imagePullSecrets"
		for _, secret := range object.ImagePullSecrets {
			add(len(secret.Name))
		}
	}
	if count > maxEntries {
		return 0, resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it has %d %s, the limit is %d: keep what is needed in an object of its own", count, what, maxEntries))
	}
	return size, nil
}

// turns bounds how many objects are read for the first time at once, in all and of one
// namespace: until it is counted, an object takes ten times its size.
type turns struct {
	all *semaphore.Weighted
	mu  sync.Mutex
	of  map[string]*turn // by namespace
}

// turn is what the objects of one namespace share.
type turn struct {
	limit *semaphore.Weighted
	users int
}

func newTurns() *turns {
	return &turns{all: semaphore.NewWeighted(firstReads), of: map[string]*turn{}}
}

// take waits for a turn. Whoever got one calls done, once or more often.
func (t *turns) take(ctx context.Context, namespace string) (done func(), err error) {
	t.mu.Lock()
	own := t.of[namespace]
	if own == nil {
		own = &turn{limit: semaphore.NewWeighted(firstReadsOfOne)}
		t.of[namespace] = own
	}
	own.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.of, namespace)
		}
	}
	if err := own.limit.Acquire(ctx, 1); err != nil {
		leave()
		return nil, fmt.Errorf("wait for a turn to read: %w", err)
	}
	if err := t.all.Acquire(ctx, 1); err != nil {
		own.limit.Release(1)
		leave()
		return nil, fmt.Errorf("wait for a turn to read: %w", err)
	}
	return sync.OnceFunc(func() { t.all.Release(1); own.limit.Release(1); leave() }), nil
}
