package operator

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// An auditor may read everything and write nothing, and a dry run is a write. That says nothing of the cluster.
func TestWhatAnAuditorMayNotTryIsUncheckedAndNoFinding(t *testing.T) {
	forbidden := func(verb, resource, group string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "x",
			fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q", "ann", verb, resource, group, "green"))
	}
	reads := interceptor.Funcs{Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
		kind := ""
		if u, ok := object.(interface{ GetKind() string }); ok {
			kind = u.GetKind()
		}
		switch kind {
		case kindNamespace:
			return forbidden("patch", "namespaces", "")
		case kindRoleBinding:
			return apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "x",
				errors.New(`user "ann" (groups=["a"]) is attempting to grant RBAC permissions not currently held:`))
		}
		return forbidden("patch", "networkpolicies", "networking.k8s.io")
	}}
	e := New(fakeClient(t, reads, team("green", "web"), namespaceOf("green", "green"), namespaceOf("green", "web")), Options{})
	findings, unchecked, err := e.Check(t.Context(), "green")
	require.NoError(t, err)
	for _, f := range findings {
		require.NotContains(t, []string{string(policy.ReasonAccessDenied), string(policy.ReasonUnfinished)}, f.ID, f.String())
	}
	require.Len(t, unchecked, 1, "all of them at once")
	require.Equal(t, []string{findingDrift}, unchecked[0].IDs)
	require.Equal(t, "bind roles with more permissions than your own, patch namespaces, patch networkpolicies.networking.k8s.io", unchecked[0].Missing)
	require.Contains(t, unchecked[0].Why, "ask somebody with ClusterRole cluster-admin")

	// What a guardrail or another policy refuses is a finding.
	refuses := interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "x",
			errors.New("ValidatingAdmissionPolicy 'mine' with binding 'mine' denied request: no"))
	}}
	findings, unchecked, err = New(fakeClient(t, refuses, team("green", "web"), namespaceOf("green", "green"), namespaceOf("green", "web")), Options{}).
		Check(t.Context(), "green")
	require.NoError(t, err)
	require.Empty(t, unchecked)
	found := false
	for _, f := range findings {
		found = found || f.ID == string(policy.ReasonAccessDenied)
	}
	require.True(t, found)
}

func TestAnObjectThatATenantNoLongerHasIsADifferenceForAnAuditorToo(t *testing.T) {
	report := &Report{}
	report.problem(policy.ReasonAccessDenied, policy.ObjectRef{Kind: kindRoleBinding, Namespace: "web", Name: "old"}, "cannot be removed")
	report.lacks(errors.New(`rolebindings "old" is forbidden: User "ann" cannot delete resource "rolebindings" in API group "rbac.authorization.k8s.io" in the `+
		`namespace "web"`), Removed)
	require.Equal(t, "delete rolebindings.rbac.authorization.k8s.io", report.Problems[0].lacks)
	c := &checker{}
	c.incomparable(report.Problems)
	require.Empty(t, c.unchecked(), "it is known")
	report.lacks(errors.New("conflict"), "")
	require.Equal(t, Removed, report.Problems[0].would)
}
