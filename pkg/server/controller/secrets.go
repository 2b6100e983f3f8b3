package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/prefetch"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// secretWatches watches each Secret, ConfigMap and ServiceAccount while a resource
// references it.
type secretWatches struct {
	set   *prefetch.Set[verify.Namespace, policy.ObjectRef, watched]
	grant func(policy.ObjectRef) string // how to grant read access to an object
	room  resource.Room
}

// watched is the state of one watched object.
type watched struct {
	object   runtime.Object // nil if it does not exist
	answered bool           // the API server has answered, or refused access
	err      error          // why the object cannot be read
}

// refused reports whether next is as useless as w: there is still no space.
func (w watched) refused(next watched) bool {
	return resource.ReasonOf(w.err) == policy.ReasonLimitExceeded && next.err != nil && w.err.Error() == next.err.Error()
}

// newSecretWatches returns secretWatches that call changed when an object of a namespace was
// read or has changed.
func newSecretWatches(clients kubernetes.Interface, changed func(verify.Namespace)) *secretWatches {
	w := &secretWatches{grant: func(policy.ObjectRef) string { return "" }}
	follow := func(ctx context.Context, source policy.ObjectRef, report func(watched)) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer func() { _ = w.take(&source, nil) }() // which always has room
		var object *watch.Object
		object = watch.NewObject(source.Kind, types.NamespacedName{Namespace: source.Namespace, Name: source.Name}, func() {
			var found watched
			found.object, found.answered, found.err = object.Content()
			if err := w.take(&source, found.object); err != nil {
				found.object, found.err = nil, err
				stop() // drop it, and read it again after a pause
			}
			report(found)
		})
		object.Run(ctx, clients)
	}
	w.set = prefetch.New[verify.Namespace](fewAtFirst(follow), time.Now, prefetch.Options[watched]{
		MaxKeys: maxReferences, FirstWait: firstRead,
		// A failed request is no answer: until firstRead has passed, the namespace
		// keeps its configuration.
		Answers: func(found watched) bool { return found.answered },
		News:    func(told, found watched) bool { return !told.refused(found) },
	})
	w.set.Notify(changed)
	return w
}

// fewAtFirst bounds the concurrent first reads of objects: until it is counted, an object takes ten
// times its size.
func fewAtFirst(follow prefetch.Follow[policy.ObjectRef, watched]) prefetch.Follow[policy.ObjectRef, watched] {
	return prefetch.FirstInTurn(follow, firstReads, firstReadsOfOne, func(source policy.ObjectRef) string { return source.Namespace })
}

// references returns the references of resources, with the pull secrets of known
// ServiceAccounts. The arrival of another one triggers a new compilation.
func (w *secretWatches) references(o resource.Objects) map[verify.Namespace][]policy.ObjectRef {
	direct := resolve.References(o)
	seen := len(o.ServiceAccounts)
	for _, sources := range direct {
		for _, source := range sources {
			if source.Kind != "ServiceAccount" {
				continue
			}
			if account, err := w.known(source); err == nil && account != nil {
				_ = o.Add(account) // o is a copy; of another kind nothing is added
			}
		}
	}
	if len(o.ServiceAccounts) == seen {
		return direct
	}
	return resolve.References(o)
}

// fill adds referenced objects to o, unreadable ones as broken. It skips objects that
// do not exist.
func (w *secretWatches) fill(o *resource.Objects, sources []policy.ObjectRef) {
	for _, source := range sources {
		object, err := w.known(source)
		if err == nil && object != nil {
			err = o.Add(object)
		}
		if err != nil {
			o.Broken = append(o.Broken, w.unreadable(source, err))
		}
	}
}

// known returns an object, nil if it does not exist. It returns an error if the object
// is unknown.
func (w *secretWatches) known(source policy.ObjectRef) (runtime.Object, error) {
	found, err := w.set.Known(source)
	switch {
	case errors.Is(err, prefetch.ErrNotWanted):
		return nil,
			resource.Reasoned(policy.ReasonLimitExceeded,
				fmt.Errorf("the namespace's resources name more than %d Secrets, ConfigMaps and ServiceAccounts", maxReferences))
	case errors.Is(err, prefetch.ErrPending):
		return nil, errors.New("the API server has not answered yet")
	case err != nil:
		return nil, err
	}
	return found.object, found.err
}

func (w *secretWatches) unreadable(source policy.ObjectRef, err error) resource.Broken {
	if apierrors.IsForbidden(err) {
		return resource.Broken{Source: source, Reason: policy.ReasonAccessDenied,
			Err: resource.Ungranted(errors.New("landwaiter has no permission to read it"), w.grant(source))}
	}
	if resource.ReasonOf(err) == policy.ReasonLimitExceeded {
		return resource.Broken{Source: source, Reason: policy.ReasonLimitExceeded, Err: err}
	}
	return resource.Broken{Source: source, Reason: policy.ReasonUnreadable,
		Err: resource.Outside(policy.Outside("ask a cluster admin to read the log of Landwaiter's pods"), err)}
}

// take makes room for an object in the place of its last version; nil gives that back. It
// returns an error if there is no room, and gives it back then, too. Each watch has its own key:
// one that ends must not give back what the next one of the same object took.
func (w *secretWatches) take(key *policy.ObjectRef, object runtime.Object) error {
	size, refusal := sizeOf(object)
	if full, limit := w.room.Take(resource.References, key.Namespace, key, size); full != "" {
		return resource.Reasoned(policy.ReasonLimitExceeded,
			fmt.Errorf("it has %d KiB, and the Secrets, ConfigMaps and ServiceAccounts of %s that resources name may take %d KiB together: make "+
				"it or others smaller, or delete what names them",
				size>>10, full, limit>>10))
	}
	return refusal
}

// sizeOf returns the memory of a Secret, ConfigMap or ServiceAccount, in bytes, or an error
// if it has too many entries. Short entries take far more than their text.
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
		return 0,
			resource.Reasoned(policy.ReasonLimitExceeded,
				fmt.Errorf("it has %d %s, the limit is %d: keep what is needed in an object of its own", count, what, maxEntries))
	}
	return size, nil
}
