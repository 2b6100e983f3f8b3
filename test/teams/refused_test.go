//go:build e2e

package teams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The status says how many namespaces a Tenant has, and Landwaiter keeps it.
func TestAnAccountMakesNoMoreNamespacesThanATenantMayHave(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	count := func(n int) {
		t.Helper()
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name":"iris-green-%d","state":"Active"}`, i)
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"namespaces":[`+strings.Join(list, ",")+`]}}`))
		require.NoError(t, w.Client.SubResource("status").Patch(suite.Within(t), named("Tenant", "", "iris-green"), patch))
	}
	makes := create("{apiVersion: v1, kind: Namespace, metadata: {name: iris-green-new, labels: {landwaiter.dev/tenant: iris-green}}}")
	count(256)
	t.Cleanup(func() {
		require.NoError(t,
			w.Client.SubResource("status").Patch(suite.Within(t), named("Tenant", "", "iris-green"),
				client.RawPatch(types.MergePatchType, []byte(`{"status":{"namespaces":null}}`))))
	})
	suite.Eventually(t, func(ctx context.Context) error {
		if err := makes(ctx, w.as(t, green())); err == nil || !strings.Contains(err.Error(), "Tenant iris-green has 256 namespaces") {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	})
	require.NoError(t, makes(suite.Within(t), w.as(t, platform())), "a cluster admin may")
	count(255)
	suite.Eventually(t, func(ctx context.Context) error { return makes(ctx, w.as(t, green())) })
}

// Who works in a team cannot take the default-deny away, whatever they may do otherwise.
func TestDefaultDenyCannotBeRemoved(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	for _, who := range []persona{greenAdmin(), green()} {
		for _, namespace := range []string{"iris-green", "iris-green-web"} {
			err := w.as(t, who).Delete(suite.Within(t), named("NetworkPolicy", namespace, "default-deny"))
			require.True(t, refusedBy(err, "platform-objects"), "%s: %v", who.user, err)
			require.NoError(t,
				w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: namespace, Name: "default-deny"}, named("NetworkPolicy", namespace, "default-deny")))
		}
	}
}

func TestEveryAttackIsRefusedByItsRuleAndSucceedsWithoutIt(t *testing.T) {
	w := attacked(t)
	byRule := map[string][]attack{}
	for _, a := range attacks() {
		byRule[a.rule] = append(byRule[a.rule], a)
	}
	w.allRefuse(t)
	policies := w.ofKind("ValidatingAdmissionPolicy")
	require.Len(t, policies, len(byRule), "a guardrail has no attack")
	for _, policy := range policies {
		rule := strings.TrimPrefix(policy.GetName(), "landwaiter-")
		require.NotEmpty(t, byRule[rule], rule)
		t.Run(rule, func(t *testing.T) {
			w.without(t, rule, func() {
				for _, a := range byRule[rule] {
					if a.also != "" {
						w.without(t, a.also, func() { w.succeeds(t, a) })
						continue
					}
					w.succeeds(t, a)
				}
			})
		})
	}
	w.allRefuse(t)
	t.Logf("%d attacks on %d guardrails", len(attacks()), len(policies))
}

// without takes a guardrail out while f runs.
func (w *arena) without(t *testing.T, rule string, f func()) {
	t.Helper()
	binding := w.bindingOf("landwaiter-" + rule)
	require.NoError(t, w.Client.Delete(suite.Within(t), binding.DeepCopy()))
	defer func() { require.NoError(t, w.Apply(suite.Within(t), binding)) }()
	f()
}

func (w *arena) succeeds(t *testing.T, a attack) {
	t.Helper()
	c := w.as(t, a.who)
	suite.Eventually(t, func(ctx context.Context) error {
		if err := a.try(ctx, c); err != nil {
			return fmt.Errorf("%s without %s: %w", a.name, a.rule, err)
		}
		return nil
	})
}

// The API server checks the types of expressions and says so in the status.
func TestExpressionsOfGuardrailsHaveNoWarnings(t *testing.T) {
	w := attacked(t)
	for _, policy := range w.ofKind("ValidatingAdmissionPolicy") {
		suite.Eventually(t, func(ctx context.Context) error {
			var found admissionv1.ValidatingAdmissionPolicy
			err := w.Client.Get(ctx, client.ObjectKeyFromObject(policy), &found)
			if err == nil && found.Status.ObservedGeneration == found.Generation && found.Status.TypeChecking != nil {
				for _, warning := range found.Status.TypeChecking.ExpressionWarnings {
					t.Errorf("%s %s: %s", policy.GetName(), warning.FieldRef, warning.Warning)
				}
				return nil
			}
			return errors.Join(err, fmt.Errorf("%s has not been checked", policy.GetName()))
		})
		fails, _, err := unstructured.NestedString(policy.Object, "spec", "failurePolicy")
		require.NoError(t, err)
		require.Equal(t, "Fail", fails, policy.GetName())
	}
}
