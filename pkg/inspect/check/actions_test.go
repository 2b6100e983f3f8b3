package check

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestTheStrongestConstraintThatMatchesAllPodsOfANamespaceCounts(t *testing.T) {
	made := func(action string, match map[string]any) unstructured.Unstructured {
		spec := map[string]any{"match": match}
		if action != "" {
			spec["enforcementAction"] = action
		}
		return unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
	scoped := made("scoped", map[string]any{})
	scoped.Object["spec"].(map[string]any)["scopedEnforcementActions"] = []any{
		map[string]any{"action": "warn", "enforcementPoints": []any{map[string]any{"name": "validation.gatekeeper.sh"}}}}
	list := func(names ...any) []any { return names }
	for name, c := range map[string]struct {
		constraints []unstructured.Unstructured
		shop, bank  string
	}{
		"no constraint":   {nil, ActionNone, ActionNone},
		"one that denies": {[]unstructured.Unstructured{made("", map[string]any{})}, ActionDeny, ActionDeny},
		"the stronger of two": {[]unstructured.Unstructured{made("dryrun", map[string]any{}), made("warn", map[string]any{"namespaces": list("sh*")})},
			ActionWarn, ActionDryRun},
		"scoped actions":        {[]unstructured.Unstructured{scoped}, ActionWarn, ActionWarn},
		"an excluded namespace": {[]unstructured.Unstructured{made("deny", map[string]any{"excludedNamespaces": list("*ank")})}, ActionDeny, ActionNone},
		"a selector of namespaces": {
			[]unstructured.Unstructured{
				made("deny", map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "bank"}}})},
			ActionNone, ActionDeny},
		"only some pods": {
			[]unstructured.Unstructured{made("deny", map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}})}, ActionNone, ActionNone},
		"cluster-scoped objects": {[]unstructured.Unstructured{made("deny", map[string]any{"scope": "Cluster"})}, ActionNone, ActionNone},
		"no pods": {
			[]unstructured.Unstructured{made("deny", map[string]any{"kinds": list(map[string]any{"apiGroups": list("apps"), "kinds": list("Deployment")})})},
			ActionNone, ActionNone},
		"a word that nobody knows":      {[]unstructured.Unstructured{made("later", map[string]any{})}, ActionNone, ActionNone},
		"a part in the middle of names": {[]unstructured.Unstructured{made("deny", map[string]any{"namespaces": list("*an*")})}, ActionNone, ActionDeny},
	} {
		t.Run(name, func(t *testing.T) {
			i := &Inventory{Constraints: c.constraints, Unread: map[Source]Unread{}, Namespaces: []corev1.Namespace{
				{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, {ObjectMeta: metav1.ObjectMeta{Name: "bank"}},
				{ObjectMeta: metav1.ObjectMeta{Name: "free", Labels: map[string]string{v1beta1.LabelGatekeeperIgnore: "x"}}}}}
			require.Equal(t, map[string]string{"shop": c.shop, "bank": c.bank, "free": ActionNone}, i.Actions())
		})
	}
}

func TestActionsAreUnknownWithoutPermission(t *testing.T) {
	for _, source := range []Source{SourceConstraints, SourceNamespaces} {
		require.Nil(t, (&Inventory{Unread: map[Source]Unread{source: {}}}).Actions())
	}
}

func TestWhatGatekeeperDoesIsUnknownWithoutPermission(t *testing.T) {
	ignored := map[string]string{v1beta1.LabelGatekeeperIgnore: "x"}
	for _, readable := range []bool{true, false} {
		made := interceptor.NewClient(installed(t, "h:1", false).(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error { //nolint:forcetypeassert // the fake can watch
			if !readable {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "verifiedimages"}, "", nil)
			}
			return c.List(ctx, list, options...)
		}})
		does, err := ReadActions(t.Context(), made)
		require.NoError(t, err)
		action, exempt, images := does("shop", nil)
		require.Equal(t, map[bool]string{true: ActionDeny, false: ""}[readable], action)
		require.False(t, exempt)
		require.Zero(t, images)
		action, exempt, _ = does("kube-system", ignored)
		require.Equal(t, ActionNone, action)
		require.True(t, exempt)
	}
}
