package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	wanted := fieldsOf(applied)
	if err := w.writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write status of %s: %w", source, err)
	}
	// An apply removes only what its manager alone owned. Earlier versions updated statuses,
	// so they own fields too, under another manager that nobody can give up.
	stale := map[string]any{}
	for name := range fieldsOf(applied) { // now what the API server answered
		if _, ok := wanted[name]; !ok {
			stale[name] = nil
		}
	}
	if len(stale) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": stale})
	if err != nil {
		return fmt.Errorf("remove fields from the status of %s: %w", source, err)
	}
	if err := w.writer.Status().Patch(ctx, applied, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("remove fields from the status of %s: %w", source, err)
	}
	return nil
}

// fieldsOf returns the fields of a status.
func fieldsOf(object *unstructured.Unstructured) map[string]any {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	return maps.Clone(status)
}
