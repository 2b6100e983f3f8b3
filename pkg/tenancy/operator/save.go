package operator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Merge returns a Tenant with the requested changes on top of the existing one: lists grow,
// and unmentioned fields stay. It also returns the existing Tenant, nil if there is none.
func (e *Engine) Merge(ctx context.Context, asked *v1beta1.Tenant) (merged, live *v1beta1.Tenant, err error) {
	live = &v1beta1.Tenant{}
	err = e.client.Get(ctx, client.ObjectKeyFromObject(asked), live)
	if apierrors.IsNotFound(err) {
		return asked.DeepCopy(), nil, nil
	}
	if err != nil {
		return nil, nil, explained("get Tenant "+asked.Name, err)
	}
	merged, err = onboard.Combine(live, asked)
	if err != nil {
		return nil, nil, err
	}
	return merged, live, nil
}

// Save applies a Tenant; live is the existing one, if any. It returns the Tenant as completed
// by the API server.
func (e *Engine) Save(ctx context.Context, tenant, live *v1beta1.Tenant) (*v1beta1.Tenant, Result, error) {
	if live != nil {
		return e.replace(ctx, tenant, live)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tenant)
	if err != nil {
		return nil, "", fmt.Errorf("apply Tenant %s: %w", tenant.Name, err)
	}
	object := applyConfiguration(tenant)
	object.Object["spec"] = content["spec"]
	object.SetLabels(tenant.Labels)
	object.SetAnnotations(tenant.Annotations)
	if err := e.apply(ctx, object, true); err != nil {
		return nil, "", fmt.Errorf("apply Tenant %s: %w", tenant.Name, err)
	}
	saved := &v1beta1.Tenant{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, saved); err != nil {
		return nil, "", fmt.Errorf("read Tenant %s: %w", tenant.Name, err)
	}
	return saved, Created, nil
}

// replace updates the whole spec: server-side apply would keep others' entries, such as a
// namespace or a Git account that the file no longer names.
func (e *Engine) replace(ctx context.Context, tenant, live *v1beta1.Tenant) (*v1beta1.Tenant, Result, error) {
	saved := live.DeepCopy()
	saved.Spec = *tenant.Spec.DeepCopy()
	for name, value := range tenant.Labels {
		metav1.SetMetaDataLabel(&saved.ObjectMeta, name, value)
	}
	for name, value := range tenant.Annotations {
		metav1.SetMetaDataAnnotation(&saved.ObjectMeta, name, value)
	}
	wanted, err := onboard.Complete(saved)
	if err != nil {
		return nil, "", err
	}
	if had, err := onboard.Complete(live); err == nil && equality.Semantic.DeepEqual(wanted, had) {
		return live, Unchanged, nil // writing it would only make this command its author
	}
	if err := e.client.Update(ctx, saved); err != nil {
		return nil, "", fmt.Errorf("update Tenant %s: %w", tenant.Name, err)
	}
	return saved, Changed, nil
}
