package controller

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// fieldManager owns the fields of statuses that the controller applies. Others may own
// further conditions.
const fieldManager = "landwaiter"

// own returns the part of an object that the controller applies: its status with the
// conditions that are the controller's.
func own(source policy.ObjectRef, object v1beta1.Object) (*unstructured.Unstructured, error) {
	copied, ok := object.DeepCopyObject().(v1beta1.Object)
	if !ok {
		return nil, fmt.Errorf("its copy is a %T", object)
	}
	status := copied.CommonStatus()
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Type != v1beta1.ConditionReady && c.Type != v1beta1.ConditionEffective && c.Type != v1beta1.ConditionExpiresSoon
	})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(copied)
	if err != nil {
		return nil, err
	}
	applied := &unstructured.Unstructured{Object: map[string]any{"status": content["status"]}}
	applied.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(source.Kind))
	applied.SetNamespace(object.GetNamespace())
	applied.SetName(object.GetName())
	applied.SetUID(object.GetUID()) // an object that was made again since is refused
	return applied, nil
}

// applyStatus writes the controller's part of a status.
func (w *statusWriter) applyStatus(ctx context.Context, source policy.ObjectRef, object v1beta1.Object) error {
	applied, err := own(source, object)
	if err != nil {
		return fmt.Errorf("write status of %s: %w", source, err)
	}
	if err := w.writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write status of %s: %w", source, err)
	}
	return nil
}
