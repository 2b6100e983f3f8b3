package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// prune removes objects that a Tenant no longer has, and releases namespaces that left it. It
// keeps objects of other tools.
func (e *Engine) prune(ctx context.Context, w *world, tenant *v1beta1.Tenant, rendered []*unstructured.Unstructured, existing *inventory,
	report *Report) error {
	wanted := map[policy.ObjectRef]bool{}
	for _, object := range rendered {
		wanted[refOf(object)] = true
	}
	for _, found := range existing.items {
		if wanted[refOf(found)] || found.kind.mutation || !applied(found) {
			continue
		}
		left := false
		if namespace := found.Namespace; namespace != "" {
			at := w.namespace(namespace)
			left = w.tenants.Holder(namespace) == nil || w.tenants.Holder(namespace).Name != tenant.Name
			if at != nil && at.DeletionTimestamp != nil || !left && !slices.Contains(report.Namespaces, namespace) {
				continue // it is deleted with its namespace, or waits until that belongs to the Tenant again
			}
		}
		if err := e.drop(ctx, found, left, report); err != nil {
			return err
		}
	}
	for i := range w.namespaces {
		namespace := &w.namespaces[i]
		holder := w.tenants.Holder(namespace.Name)
		if namespace.Labels[v1beta1.LabelTenant] != tenant.Name || namespace.DeletionTimestamp != nil || holder != nil &&
			holder.Name == tenant.Name {
			continue
		}
		if err := e.releaseNamespace(ctx, namespace, tenant.Name, report); err != nil {
			return err
		}
	}
	return nil
}

// withdraw removes a Tenant's bindings in namespaces that have become reserved: anyone bound
// there could change what the whole cluster trusts. The binding by which Landwaiter reads
// there stays: the chart needs one of the same name.
func (e *Engine) withdraw(ctx context.Context, existing *inventory, report *Report) error {
	for _, found := range existing.items {
		if found.kind.Kind != kindRoleBinding || !e.reserved(found.Namespace) || !applied(found) || found.Name == onboard.RoleReferenceReader {
			continue
		}
		if err := e.drop(ctx, found, false, report); err != nil {
			return err
		}
	}
	return nil
}

// drop removes an object, or releases it if it restricts a remaining namespace.
func (e *Engine) drop(ctx context.Context, found *item, stays bool, report *Report) error {
	if stays && found.kind.restricts {
		return e.release(ctx, found, nil, report, v1beta1.LabelTenant, v1beta1.LabelOwner)
	}
	// Not as metadata: the answer is the object itself if it has finalizers.
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(found.GroupVersionKind())
	object.SetNamespace(found.Namespace)
	object.SetName(found.Name)
	if err := e.client.Delete(ctx, object, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
		if apierrors.IsForbidden(err) {
			report.refused = report.refused || refusedByPolicy(err)
			report.problem(policy.ReasonAccessDenied, refOf(found), "%s cannot be removed: %s", refOf(found), err)
			report.lacks(err, Removed)
			return nil
		}
		return fmt.Errorf("remove %s: %w", refOf(found), err)
	}
	report.add(found, Removed)
	return nil
}

// releaseNamespace removes a Tenant's labels from a namespace, so that the next Tenant may
// have it. Its pod security level stays: it only restricts.
func (e *Engine) releaseNamespace(ctx context.Context, namespace *corev1.Namespace, tenant string, report *Report) error {
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindNamespace))
	labels := []string{v1beta1.LabelTenant, v1beta1.LabelHomeNamespace}
	for _, name := range []string{v1beta1.LabelFluxTenant, onboard.LabelDemo} {
		if namespace.Labels[name] == tenant {
			labels = append(labels, name)
		}
	}
	return e.release(ctx, namespace, []string{v1beta1.AnnotationCreated, v1beta1.AnnotationAdopted}, report, labels...)
}

// release removes labels and annotations from a remaining object.
func (e *Engine) release(ctx context.Context, object client.Object, annotations []string, report *Report, labels ...string) error {
	none := func(names []string) map[string]any {
		made := map[string]any{}
		for _, name := range names {
			made[name] = nil
		}
		return made
	}
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "labels": none(labels), "annotations": none(annotations)}})
	if err != nil {
		return fmt.Errorf("release %s: %w", refOf(object), err)
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	live.SetNamespace(object.GetNamespace())
	live.SetName(object.GetName())
	switch err := e.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch)); {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		report.refused = report.refused || refusedByPolicy(err)
		report.problem(policy.ReasonAccessDenied, refOf(object), "%s cannot be released: %s", refOf(object), err)
		report.lacks(err, Released)
		return nil
	case err != nil:
		return fmt.Errorf("release %s: %w", refOf(object), err)
	}
	report.add(object, Released)
	return nil
}
