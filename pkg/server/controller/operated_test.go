package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Where a Tenant that ends were listed as one that is there, the operator's account could let it
// go and write what no Tenant bounds any more.
func TestATenantThatEndsIsListedApart(t *testing.T) {
	tenant := func(name, namespaceReclaimPolicy string, ends bool) unstructured.Unstructured {
		// A time that Go cannot read in the status of one must not hide the others.
		object := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"namespaceReclaimPolicy": namespaceReclaimPolicy},
			"status": map[string]any{"conditions": []any{map[string]any{"lastTransitionTime": "2026-01-01t00:00:00z"}}}}}
		object.SetName(name)
		if ends {
			now := metav1.Now()
			object.SetDeletionTimestamp(&now)
		}
		return object
	}
	rule := func(verb string, names ...any) map[string]any {
		return map[string]any{"apiGroups": []any{"landwaiter.dev"}, "resources": []any{"tenants"}, "resourceNames": names, "verbs": []any{verb}}
	}
	for about, c := range map[string]struct {
		tenants []unstructured.Unstructured
		rules   []any
	}{
		"none, and no rule that would cover all": {nil, []any{}},
		"those that are there": {[]unstructured.Unstructured{tenant("b", "DeleteCreated", false), tenant("a", "Retain", false)},
			[]any{rule("operate", "a", "b")}},
		"one that ends and keeps its namespaces": {[]unstructured.Unstructured{tenant("a", "Retain", true)}, []any{rule("end", "a")}},
		"one whose namespaces go, too": {[]unstructured.Unstructured{tenant("a", "DeleteCreated", true), tenant("b", "", false)},
			[]any{rule("operate", "b"), rule("end", "a"), rule("purge", "a")}},
	} {
		t.Run(about, func(t *testing.T) {
			require.Equal(t, c.rules, operatedRules(c.tenants))
		})
	}
}
