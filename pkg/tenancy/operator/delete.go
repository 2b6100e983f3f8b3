package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// orphan makes Flux keep the objects that it applied: suspend is for versions that do not
// know deletionPolicy.
const orphan = `{"spec":{"suspend":true,"deletionPolicy":"Orphan"}}`

// Finalizer keeps a Tenant until the operator has removed everything provisioned for it.
// Without an operator no Tenant has it.
const Finalizer = v1beta1.FinalizerOperator

// Deletion is the outcome of [Engine.Delete].
type Deletion struct {
	Report
	// Pending are objects whose finalizers have not ended: call Delete again.
	Pending []policy.ObjectRef
	// Deleted, Kept and Adopted are the Tenant's namespaces, by outcome.
	Deleted, Kept, Adopted []string
	// Freed says that no operator runs, so the operator's finalizer is removed as well.
	Freed bool
}

// Delete removes everything provisioned for a Tenant, but not the Tenant itself. It works from
// labels, so it may be repeated, and finishes an earlier call. It removes objects of Flux
// first and completely, while their account still has its permissions. A namespace that has
// become reserved stays, with the binding by which Landwaiter reads there.
func (e *Engine) Delete(ctx context.Context, tenant *v1beta1.Tenant) (*Deletion, error) {
	deletion := &Deletion{}
	existing, err := e.owned(ctx, tenant.Name)
	if err != nil {
		return nil, err
	}
	var namespaces corev1.NamespaceList
	if err := e.client.List(ctx, &namespaces, client.MatchingLabels{v1beta1.LabelTenant: tenant.Name}); err != nil {
		return nil, fmt.Errorf("list namespaces of Tenant %s: %w", tenant.Name, err)
	}
	doomed := map[string]bool{}
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		deletes := tenant.Spec.NamespaceReclaimPolicy == v1beta1.NamespaceReclaimPolicyDeleteCreated && !e.reserved(namespace.Name)
		doomed[namespace.Name] = namespace.DeletionTimestamp != nil || deletes && made(namespace, tenant.Name)
	}
	for _, flux := range []bool{true, false} {
		for _, found := range existing.items {
			if found.kind.flux() != flux || found.kind.restricts && doomed[found.Namespace] || e.reserved(found.Namespace) &&
				found.Name == onboard.RoleReferenceReader {
				continue
			}
			if err := e.take(ctx, tenant, found, deletion); err != nil {
				return nil, err
			}
		}
		if !flux {
			if err := e.endMaker(ctx, tenant, &deletion.Report); err != nil {
				return nil, err
			}
		}
		if len(deletion.Pending) > 0 || len(deletion.Problems) > 0 {
			return deletion, nil
		}
	}
	for i := range namespaces.Items {
		if err := e.leave(ctx, tenant, &namespaces.Items[i], doomed[namespaces.Items[i].Name], deletion); err != nil {
			return nil, err
		}
	}
	return deletion, nil
}

// endMaker removes the binding that lets the account create namespaces, whoever created it,
// or reports it: without its Tenant no guardrail limits the account to the prefix.
func (e *Engine) endMaker(ctx context.Context, tenant *v1beta1.Tenant, report *Report) error {
	binding, err := e.makerOf(ctx, tenant)
	if binding == nil || err != nil {
		return err
	}
	if e.options.DryRun && binding.Labels[v1beta1.LabelOwner] == v1beta1.OwnerPlatform {
		return nil // it was in the inventory, and a dry run leaves it
	}
	if !e.options.ClusterBindings {
		report.problem(policy.ReasonAccessDenied, refOf(binding), "%s lets an account make and delete namespaces, and the operator cannot "+
			"remove it: kubectl delete clusterrolebinding %s", refOf(binding), binding.Name)
		return nil
	}
	return e.drop(ctx, &item{PartialObjectMetadata: metadata(binding)}, false, report)
}

// take removes one object. An object of Flux is pending until its finalizers have ended.
func (e *Engine) take(ctx context.Context, tenant *v1beta1.Tenant, found *item, deletion *Deletion) error {
	if found.kind.Kind == kindKustomization && tenant.Spec.NamespaceReclaimPolicy != v1beta1.NamespaceReclaimPolicyDeleteCreated &&
		!e.options.DryRun && found.DeletionTimestamp == nil {
		object := found.DeepCopy()
		if err := e.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(orphan))); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("make Flux leave alone what %s applied: %w", refOf(found), err)
		}
	}
	if err := e.drop(ctx, found, true, &deletion.Report); err != nil {
		return err
	}
	if !found.kind.flux() || e.options.DryRun {
		return nil
	}
	key := client.ObjectKeyFromObject(found)
	switch err := e.client.Get(ctx, key, found.DeepCopy()); {
	case err == nil:
		deletion.Pending = append(deletion.Pending, refOf(found))
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("see whether %s is gone: %w", refOf(found), err)
	}
	return nil
}

// leave deletes a namespace that was created for the Tenant, or releases it.
func (e *Engine) leave(ctx context.Context, tenant *v1beta1.Tenant, namespace *corev1.Namespace, doomed bool, deletion *Deletion) error {
	switch {
	case doomed:
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindNamespace))
		deletion.Deleted = append(deletion.Deleted, namespace.Name)
		if namespace.DeletionTimestamp != nil {
			return nil
		}
		return e.drop(ctx, &item{PartialObjectMetadata: metadata(namespace)}, false, &deletion.Report)
	case namespace.Annotations[v1beta1.AnnotationCreated] == "":
		deletion.Adopted = append(deletion.Adopted, namespace.Name)
	default:
		deletion.Kept = append(deletion.Kept, namespace.Name)
	}
	return e.releaseNamespace(ctx, namespace, tenant.Name, &deletion.Report)
}
