package serving

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// fieldManager owns the fields of Provider objects. Nobody else applies these objects:
// Gatekeeper refuses a Provider without a caBundle, so whoever applied one without knowing
// the CA would have to write another one in its place.
const fieldManager = "landwaiter"

// Provider is one of Gatekeeper's Provider objects.
type Provider struct {
	Name string
	// URL is where Gatekeeper asks, with the path.
	URL string
	// TimeoutSeconds is how long Gatekeeper waits for an answer.
	TimeoutSeconds int64
	// Role is the ClusterRole that owns the object: Kubernetes deletes the object with it,
	// and without it the object is not made. Empty means that nobody owns the object.
	Role string
}

// providerResource is Gatekeeper's Provider.
func providerResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Resource: "providers"}
}

// watchProviders returns an informer for Provider objects that calls changed after
// a change of one that is kept, or its deletion.
func (r *Rotation) watchProviders(changed func()) (cache.SharedIndexInformer, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(r.providers, providerResource(), metav1.NamespaceAll, 0, nil, nil).Informer()
	ours := func(object any) {
		name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err == nil && slices.ContainsFunc(r.options.Providers, func(p Provider) bool { return p.Name == name }) {
			changed()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: ours, UpdateFunc: func(_, object any) { ours(object) }, DeleteFunc: ours})
	if err != nil {
		return nil, fmt.Errorf("watch Provider objects: %w", err)
	}
	return informer, nil
}

// keep applies the Provider objects that differ from what they should be.
func (r *Rotation) keep(ctx context.Context, providers cache.Store, bundle []byte) error {
	var failure error
	for _, p := range r.options.Providers {
		found, _, err := providers.GetByKey(p.Name)
		live, _ := found.(*unstructured.Unstructured)
		if encoded := base64.StdEncoding.EncodeToString(bundle); err == nil && !p.is(live, encoded) {
			err = r.apply(ctx, p, encoded)
		}
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("apply Provider %s: %w", p.Name, err))
		}
	}
	return failure
}

// is reports whether a live object, nil for none, is what it should be. If its owner was
// made again, Kubernetes deletes the object, which is a change.
func (p Provider) is(live *unstructured.Unstructured, bundle string) bool {
	if live == nil {
		return false
	}
	url, _, _ := unstructured.NestedString(live.Object, "spec", "url")
	timeout, _, _ := unstructured.NestedInt64(live.Object, "spec", "timeout")
	current, _, _ := unstructured.NestedString(live.Object, "spec", "caBundle")
	owned := p.Role == "" || slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Kind == "ClusterRole" && o.Name == p.Role
	})
	return url == p.URL && timeout == p.TimeoutSeconds && current == bundle && owned
}

// apply makes the object, or takes over its fields from whoever has changed them.
func (r *Rotation) apply(ctx context.Context, p Provider, bundle string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": p.URL, "timeout": p.TimeoutSeconds, "caBundle": bundle}}}
	object.SetGroupVersionKind(providerResource().GroupVersion().WithKind("Provider"))
	object.SetName(p.Name)
	if p.Role != "" {
		role, err := r.clients.RbacV1().ClusterRoles().Get(ctx, p.Role, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("look up its owner: %w", err)
		}
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: role.Name, UID: role.UID}})
	}
	_, err := r.providers.Resource(providerResource()).Apply(ctx, p.Name, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err == nil {
		r.log.WithField("provider", p.Name).Info("applied a Provider object")
	}
	return err
}
