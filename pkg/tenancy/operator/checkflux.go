package operator

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// appliers are the kinds of Flux that apply manifests as an account.
func appliers() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: kindKustomization},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	}
}

// flux finds Kustomizations and HelmReleases that apply a source of another namespace, or
// act as another account than the Tenant's.
func (c *checker) flux(ctx context.Context, tenant *v1beta1.Tenant, namespace string) error {
	for _, kind := range appliers() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.client.List(ctx, list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // Flux, or this part of it, is not installed
		}
		if err != nil {
			return fmt.Errorf("list each %s of namespace %s: %w", kind.Kind, namespace, err)
		}
		for i := range list.Items {
			c.applier(tenant, &list.Items[i])
		}
	}
	return nil
}

// applier checks one object of Flux.
func (c *checker) applier(tenant *v1beta1.Tenant, object *unstructured.Unstructured) {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, append([]string{"spec"}, path...)...)
		return value
	}
	where := policy.ObjectRef{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	other := cmp.Or(text("sourceRef", "namespace"), text("chartRef", "namespace"), text("chart", "spec", "sourceRef", "namespace"))
	if other != "" && other != object.GetNamespace() {
		c.add(tenant.Name, findingSharedSource, where,
			"applies a source of namespace %s, which needs Flux with --no-cross-namespace-refs=false: copy the source into the home namespace", other)
	}
	want := cmp.Or(onboard.Account(tenant), tenant.Name)
	_, remote, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "kubeConfig")
	account, home := text("serviceAccountName"), object.GetNamespace() == tenant.Spec.HomeNamespace
	switch {
	case remote:
		c.add(tenant.Name, findingOtherAccount, where, "acts with the credentials of spec.kubeConfig, which no rule of the Tenant bounds: remove them")
	case account == "":
		c.add(tenant.Name, findingOtherAccount, where, "names no account, so Flux acts as its own, or as the one of --default-service-account: set spec.serviceAccountName")
	case account != want && home:
		c.add(tenant.Name, findingOtherAccount, where, "acts as ServiceAccount %s and not as the team's: set spec.serviceAccountName to %s", account, want)
	case account != want:
		c.add(tenant.Name, findingOtherAccount, where, "acts as ServiceAccount %s, which whoever may edit the namespace may use: move it to the home namespace %s, where it acts as %s", account, tenant.Spec.HomeNamespace, want)
	}
}
