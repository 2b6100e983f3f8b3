package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// ErrNoTenant says that there is no Tenant with a name.
var ErrNoTenant = errors.New("there is no such Tenant")

// Away configures how [Engine.TakeAway] deletes a Tenant.
type Away struct {
	// Namespaces deletes the namespaces that were created for the Tenant, whatever its policy
	// says.
	Namespaces bool
	// OperatorGone says that no operator runs: TakeAway then does its work, and removes its finalizer.
	OperatorGone bool
}

// TakeAway deletes a Tenant and everything provisioned for it, and waits until it is gone. If the operator runs,
// it does the work. In a dry run the Deletion says what would happen. The returned Tenant is in its previous
// state, with the effective namespaceReclaimPolicy.
//
// The error is [ErrNoTenant] if there is neither a Tenant nor remains of one, an error of the API
// server, or an [UnfinishedError].
func (e *Engine) TakeAway(ctx context.Context, name string, how Away) (*v1beta1.Tenant, *Deletion, error) {
	tenant := &v1beta1.Tenant{}
	missing := e.client.Get(ctx, client.ObjectKey{Name: name}, tenant)
	if client.IgnoreNotFound(missing) != nil {
		return nil, nil, fmt.Errorf("get Tenant %s: %w", name, missing)
	}
	if missing != nil { // an earlier run may have left objects
		tenant = &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1beta1.TenantSpec{NamespaceReclaimPolicy: v1beta1.NamespaceReclaimPolicyRetain}}
	}
	if how.Namespaces {
		tenant.Spec.NamespaceReclaimPolicy = v1beta1.NamespaceReclaimPolicyDeleteCreated
	}
	operated := missing == nil && slices.Contains(tenant.Finalizers, Finalizer)
	if operated && !how.OperatorGone && !e.options.DryRun {
		deletion, err := e.awayByOperator(ctx, tenant, how.Namespaces)
		if err == nil {
			err = e.endReader(ctx, name)
		}
		return tenant, deletion, err
	}
	if operated { // if an operator runs after all, it must not create deleted objects again
		if err := e.deleteTenant(ctx, tenant); err != nil {
			return nil, nil, err
		}
	}
	deletion, err := e.deleteAll(ctx, tenant)
	switch {
	case err != nil:
		return nil, nil, err
	case missing != nil && len(deletion.Outcomes) == 0 && len(deletion.Deleted) == 0:
		return nil, nil, ErrNoTenant
	case missing == nil:
		if err := e.deleteTenant(ctx, tenant); err != nil {
			return nil, nil, err
		}
		if deletion.Freed = operated && how.OperatorGone; deletion.Freed {
			if err := e.free(ctx, tenant); err != nil {
				return nil, nil, err
			}
		}
		deletion.Outcomes = append(deletion.Outcomes, Outcome{Object: policy.ObjectRef{Kind: v1beta1.KindTenant, Name: name}, Result: Removed})
	}
	return tenant, deletion, e.awaitEnd(ctx, deletion.Deleted)
}

// endReader deletes the binding that lets the people of a Tenant read it, which the operator may not: another Tenant
// of that name would give it to them again.
func (e *Engine) endReader(ctx context.Context, tenant string) error {
	for _, kind := range []string{kindClusterRoleBinding, kindClusterRole} {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		err := e.client.Get(ctx, client.ObjectKey{Name: onboard.TenantReader(tenant)}, object)
		if err == nil && object.Labels[v1beta1.LabelTenant] == tenant && object.Labels[v1beta1.LabelOwner] == v1beta1.OwnerPlatform {
			err = e.client.Delete(ctx, object)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", kind, onboard.TenantReader(tenant), err)
		}
	}
	return nil
}

// deleteTenant deletes the Tenant itself, unless this is a dry run.
func (e *Engine) deleteTenant(ctx context.Context, tenant *v1beta1.Tenant) error {
	if e.options.DryRun {
		return nil
	}
	if err := e.client.Delete(ctx, tenant); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Tenant %s: %w", tenant.Name, err)
	}
	return nil
}

// free removes the operator's finalizer from a Tenant that is being deleted, unless this is a dry run,
// and keeps others' finalizers.
func (e *Engine) free(ctx context.Context, deleted *v1beta1.Tenant) error {
	if e.options.DryRun {
		return nil
	}
	tenant, name := &v1beta1.Tenant{}, deleted.Name
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := e.client.Get(ctx, client.ObjectKey{Name: name}, tenant); err != nil {
			return err
		}
		was := tenant.DeepCopy()
		if tenant.UID != deleted.UID || tenant.DeletionTimestamp == nil || !controllerutil.RemoveFinalizer(tenant, Finalizer) {
			return nil // it may be another Tenant of that name
		}
		return e.client.Patch(ctx, tenant, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
	})
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("remove the finalizer %s of Tenant %s: %w", Finalizer, name, err)
	case err == nil && len(tenant.Finalizers) > 0:
		return unfinished("Tenant %s waits for the finalizers of others: %s", name, strings.Join(tenant.Finalizers, ", "))
	}
	return nil
}

// deleteAll removes everything provisioned for the Tenant, and waits for finalizers.
func (e *Engine) deleteAll(ctx context.Context, tenant *v1beta1.Tenant) (*Deletion, error) {
	var total Deletion
	err := poll(ctx, func() (bool, error) {
		deletion, err := e.Delete(ctx, tenant)
		if err != nil {
			return false, err
		}
		fresh := slices.DeleteFunc(deletion.Outcomes, func(o Outcome) bool {
			return slices.ContainsFunc(total.Outcomes, func(known Outcome) bool { return known.Object == o.Object })
		})
		deletion.Outcomes = append(total.Outcomes, fresh...)
		total = *deletion
		return len(deletion.Pending) == 0 || len(deletion.Problems) > 0, nil
	})
	switch {
	case len(total.Problems) > 0:
		return nil, unfinished("the Tenant stays: %s", total.Problems[0].Message)
	case err != nil && len(total.Pending) > 0:
		return nil,
			unfinished("the finalizers of %s have not ended (is Flux running?); the permissions of its account and the Tenant stay until then: %w",
				total.Pending[0], err)
	}
	return &total, err
}

// awayByOperator deletes a Tenant and waits until the operator has finished.
func (e *Engine) awayByOperator(ctx context.Context, tenant *v1beta1.Tenant, namespaces bool) (*Deletion, error) {
	if namespaces {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"namespaceReclaimPolicy":"DeleteCreated"}}`))
		if err := e.client.Patch(ctx, tenant.DeepCopy(), patch); err != nil {
			return nil, fmt.Errorf("set spec.namespaceReclaimPolicy of Tenant %s: %w", tenant.Name, err)
		}
	}
	// What will happen, in the words of a dry run.
	trial := *e
	trial.client, trial.options.DryRun = client.NewDryRunClient(e.client), true
	deletion, err := trial.Delete(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if err := e.deleteTenant(ctx, tenant); err != nil {
		return nil, err
	}
	if err := e.awaitGone(ctx, &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: tenant.Name}}); err != nil {
		return nil,
			unfinished("the operator has not finished to delete Tenant %s (is landwaiter-operator running?); to delete the Tenant without it, "+
				"scale landwaiter-operator to 0 replicas and repeat the command: %w", tenant.Name, err)
	}
	return deletion, e.awaitEnd(ctx, deletion.Deleted)
}

// awaitGone waits until no object has a name.
func (e *Engine) awaitGone(ctx context.Context, object client.Object) error {
	return poll(ctx, func() (bool, error) {
		err := e.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// awaitEnd waits until namespaces are gone, unless this is a dry run.
func (e *Engine) awaitEnd(ctx context.Context, namespaces []string) error {
	if e.options.DryRun {
		return nil
	}
	for _, name := range namespaces {
		if err := e.awaitGone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return unfinished("namespace %s is still ending; its status says what it waits for: %w", name, err)
		}
	}
	return nil
}
