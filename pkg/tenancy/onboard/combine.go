package onboard

import (
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Combine returns a Tenant with the request added to it: lists grow, other values are
// replaced, and unmentioned fields stay.
func Combine(live, asked *v1beta1.Tenant) (*v1beta1.Tenant, error) {
	if asked.Spec.HomeNamespace == asked.Name { // what a command fills in if nobody says which
		asked = asked.DeepCopy()
		asked.Spec.HomeNamespace = live.Spec.HomeNamespace
	}
	if asked.Spec.HomeNamespace != live.Spec.HomeNamespace {
		return nil,
			apierrors.NewBadRequest(fmt.Sprintf("the home namespace of Tenant %s is %s, and cannot be changed to %s: leave homeNamespace out, or "+
				"make another Tenant", live.Name, live.Spec.HomeNamespace, asked.Spec.HomeNamespace))
	}
	convert := runtime.DefaultUnstructuredConverter
	base, err := convert.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("read Tenant %s: %w", live.Name, err)
	}
	wish, err := convert.ToUnstructured(asked)
	if err != nil {
		return nil, fmt.Errorf("read Tenant %s: %w", asked.Name, err)
	}
	merged := &v1beta1.Tenant{}
	if err := convert.FromUnstructured(overlay(base, wish), merged); err != nil {
		return nil, fmt.Errorf("merge Tenant %s: %w", asked.Name, err)
	}
	return merged, nil
}

// overlay returns base with the values of top: maps are merged, lists united.
func overlay(base, top map[string]any) map[string]any {
	made := map[string]any{}
	if base != nil {
		made = runtime.DeepCopyJSON(base)
	}
	for name, value := range top {
		switch value := value.(type) {
		case map[string]any:
			below, _ := made[name].(map[string]any)
			made[name] = overlay(below, value)
		case []any:
			below, _ := made[name].([]any)
			for _, entry := range value {
				if !slices.ContainsFunc(below, func(x any) bool { return reflect.DeepEqual(x, entry) }) {
					below = append(below, entry)
				}
			}
			made[name] = below
		case nil:
		default:
			if value == "" {
				continue // a required field that nobody mentions has this text
			}
			made[name] = value
		}
	}
	return made
}

// Restate sets settings in a Tenant with which a [Description] of them was combined: [Combine] cannot
// distinguish false from an unmentioned field. Without settings it changes nothing.
func Restate(tenant *v1beta1.Tenant, settings Settings) error {
	if len(settings.Values) == 0 {
		return nil
	}
	if err := Set(&tenant.Spec, settings); err != nil {
		return err
	}
	withoutHome(&tenant.Spec)
	return nil
}
