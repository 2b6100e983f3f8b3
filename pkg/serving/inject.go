package serving

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// providerResource is Gatekeeper's Provider.
func providerResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Resource: "providers"}
}

// watchProviders returns an informer for Provider objects that calls changed after
// a change of one that is kept up to date.
func (r *Rotation) watchProviders(changed func()) (cache.SharedIndexInformer, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(r.providers, providerResource(), metav1.NamespaceAll, 0, nil, nil).Informer()
	ours := func(object any) {
		if named, ok := object.(metav1.Object); ok && slices.Contains(r.options.Providers, named.GetName()) {
			changed()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: ours, UpdateFunc: func(_, object any) { ours(object) }})
	if err != nil {
		return nil, fmt.Errorf("watch Provider objects: %w", err)
	}
	return informer, nil
}

// inject sets caBundle of the Provider objects. One that does not exist is set
// once it does.
func (r *Rotation) inject(ctx context.Context, providers cache.Store, bundle []byte) error {
	var failure error
	for _, name := range r.options.Providers {
		found, exists, err := providers.GetByKey(name)
		if object, ok := found.(*unstructured.Unstructured); ok && exists {
			err = r.injectInto(ctx, object, base64.StdEncoding.EncodeToString(bundle))
		}
		failure = errors.Join(failure, err)
	}
	return failure
}

func (r *Rotation) injectInto(ctx context.Context, provider *unstructured.Unstructured, bundle string) error {
	if current, _, _ := unstructured.NestedString(provider.Object, "spec", "caBundle"); current == bundle {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": bundle}})
	if err != nil {
		return fmt.Errorf("set caBundle of Provider %s: %w", provider.GetName(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = r.providers.Resource(providerResource()).Patch(ctx, provider.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("set caBundle of Provider %s: %w", provider.GetName(), err)
	}
	r.log.WithField("provider", provider.GetName()).Info("set caBundle")
	return nil
}
