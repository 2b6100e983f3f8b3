package controller

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// injectCheck is how often the authority is compared with the Provider objects;
// a change of theirs is noticed at once.
const injectCheck = 250 * time.Millisecond

// injector keeps spec.caBundle of Gatekeeper's Provider objects at the authority
// of our certificate, and for a while at the one before too.
type injector struct {
	client    client.Client
	authority *Followed
}

// provider is an empty Provider object (Gatekeeper, externaldata.gatekeeper.sh/v1beta1).
func provider(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("externaldata.gatekeeper.sh/v1beta1")
	object.SetKind("Provider")
	object.SetName(name)
	return object
}

// addInjector adds a controller whose requests are the names of Provider objects.
func (c *Controller) addInjector(own manager.Manager, turn int64) error {
	i := &injector{client: own.GetClient(), authority: c.authority}
	injecting, err := ctrl.NewTyped(fmt.Sprintf("authority-%d", turn), own, ctrl.TypedOptions[string]{Reconciler: i})
	if err != nil {
		return fmt.Errorf("make the injector: %w", err)
	}
	names := c.options.Rotation.Providers
	byName := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object *unstructured.Unstructured) []string {
		if slices.Contains(names, object.GetName()) {
			return []string{object.GetName()}
		}
		return nil
	})
	if err := injecting.Watch(source.TypedKind(own.GetCache(), provider(""), byName)); err != nil {
		return fmt.Errorf("watch Provider objects: %w", err)
	}
	return injecting.Watch(source.TypedFunc[string](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[string]) error {
		for _, name := range names {
			queue.Add(name)
		}
		return nil
	}))
}

// Reconcile sets one Provider's caBundle.
func (i *injector) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: injectCheck}
	bundle, err := i.authority.Read(authorityKey)
	if err != nil {
		return again, nil //nolint:nilerr // there is none yet, which whoever waits for the certificate says
	}
	object := provider(name)
	if err := i.client.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return again, client.IgnoreNotFound(fmt.Errorf("get Provider %s: %w", name, err))
	}
	encoded := base64.StdEncoding.EncodeToString(bundle)
	if current, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle"); current == encoded {
		return again, nil // as it should be
	}
	changed := object.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, encoded, "spec", "caBundle"); err != nil {
		return again, fmt.Errorf("set caBundle of Provider %s: %w", name, err)
	}
	if err := i.client.Patch(ctx, changed, client.MergeFrom(object)); err != nil {
		return again, fmt.Errorf("set caBundle of Provider %s: %w", name, err)
	}
	return again, nil // set
}
