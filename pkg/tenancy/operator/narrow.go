package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// exclusive returns the fields of a kind in which nobody else's entries may stay: what
// others allow in a network policy, and entries under the platform's name.
func exclusive(kind string) []string {
	return map[string][]string{kindNetworkPolicy: {"spec"}, "ConfigMap": {"data"}, kindResourceQuota: {"spec", "hard"}}[kind]
}

// narrow takes out of an object what somebody else added to it: applying keeps fields that
// it does not name. It reports whether there was anything.
func (e *Engine) narrow(ctx context.Context, object, live *unstructured.Unstructured) (bool, error) {
	path := exclusive(object.GetKind())
	if len(path) == 0 {
		return false, nil
	}
	wanted, _, _ := unstructured.NestedMap(object.Object, path...)
	there, _, _ := unstructured.NestedMap(live.Object, path...)
	maps.DeleteFunc(there, func(field string, _ any) bool { _, ok := wanted[field]; return ok })
	if len(there) == 0 || e.options.DryRun {
		return len(there) > 0, nil
	}
	for field := range there {
		there[field] = nil
	}
	patch := map[string]any{"metadata": map[string]any{"uid": live.GetUID()}}
	if err := unstructured.SetNestedMap(patch, there, path...); err != nil {
		return false, fmt.Errorf("take out what others added to %s: %w", refOf(object), err)
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("take out what others added to %s: %w", refOf(object), err)
	}
	return true, e.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, text))
}
