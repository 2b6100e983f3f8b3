package operator

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// applying records what is applied, as "Kind namespace/name", and answers some of it
// with an error.
func applying(t *testing.T, refuse map[string]error, applied *[]string) interceptor.Funcs {
	t.Helper()
	return interceptor.Funcs{Apply: func(_ context.Context, _ client.WithWatch, configuration runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
		text, err := json.Marshal(configuration)
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal(text, object))
		ref := refOf(object).String()
		if refuse[ref] != nil {
			return refuse[ref]
		}
		*applied = append(*applied, ref)
		return nil
	}}
}

func TestNobodyGetsRightsWhereARestrictionFailed(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "x", errors.New("no"))
	bindings := []string{"RoleBinding green/green-admins", "RoleBinding green/landwaiter-reference-reader", "RoleBinding web/green-admins",
		"RoleBinding web/green-developers"}
	for about, c := range map[string]struct {
		refuse  string
		err     error
		want    []string // bindings that are made
		reasons []policy.Reason
	}{
		"all restrictions are there":  {"", nil, bindings, nil},
		"pod security of a namespace": {"Namespace web", forbidden, bindings[:2], []policy.Reason{policy.ReasonAccessDenied}},
		"a network policy of a namespace": {"NetworkPolicy web/default-deny", forbidden, bindings[:2],
			[]policy.Reason{policy.ReasonAccessDenied, policy.ReasonUnfinished, policy.ReasonUnfinished}},
		"the quota of a namespace": {"ResourceQuota web/tenant", forbidden, bindings[:2],
			[]policy.Reason{policy.ReasonAccessDenied, policy.ReasonUnfinished, policy.ReasonUnfinished}},
		"a network policy of the home namespace": {"NetworkPolicy green/default-deny", forbidden, bindings[2:],
			[]policy.Reason{policy.ReasonAccessDenied, policy.ReasonUnfinished, policy.ReasonUnfinished}},
		"registries without the template": {"TenantAllowedRegistries green", &meta.NoKindMatchError{}, nil,
			[]policy.Reason{policy.ReasonNotInstalled, policy.ReasonUnfinished, policy.ReasonUnfinished, policy.ReasonUnfinished, policy.ReasonUnfinished}},
		"registries whose template has just gone": {"TenantAllowedRegistries green", apierrors.NewNotFound(schema.GroupResource{}, ""), nil,
			[]policy.Reason{policy.ReasonNotInstalled, policy.ReasonUnfinished, policy.ReasonUnfinished, policy.ReasonUnfinished, policy.ReasonUnfinished}},
	} {
		t.Run(about, func(t *testing.T) {
			tenant := team("green", "web")
			tenant.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "admins"}}
			tenant.Spec.Access.Developers = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "devs"}}
			tenant.Spec.Isolation.Registries = []string{"registry.example.com/green/"}
			tenant.Spec.Isolation.Quota = quotaOf("5")
			var applied []string
			e := New(fakeClient(t, applying(t, map[string]error{c.refuse: c.err}, &applied)), Options{Onboard: onboard.Options{Constraints: true}})
			report, err := e.Apply(t.Context(), tenant)
			require.NoError(t, err)
			var made []string
			for _, ref := range applied {
				if slices.Contains(bindings, ref) {
					made = append(made, ref)
				}
				if c.refuse == "Namespace web" {
					require.NotContains(t, ref, " web/", "there is no such namespace")
				}
			}
			require.Equal(t, c.want, made)
			var reasons []policy.Reason
			for _, problem := range report.Problems {
				reasons = append(reasons, problem.Reason)
			}
			require.Equal(t, c.reasons, reasons, "%+v", report.Problems)
		})
	}
}

func TestWhoLosesRightsLosesThemThoughARestrictionFails(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "networkpolicies"}, "default-deny", errors.New("no"))
	tenant := team("green", "web")
	tenant.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "those who stay"}}
	there := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "green-admins",
		Labels: map[string]string{v1beta1.LabelTenant: "green", v1beta1.LabelOwner: v1beta1.OwnerPlatform}}}
	var applied []string
	e := New(fakeClient(t, applying(t, map[string]error{"NetworkPolicy web/default-deny": refused}, &applied), namespaceOf("green", "green"),
		namespaceOf("green", "web"), there), Options{})
	_, err := e.Apply(t.Context(), tenant)
	require.NoError(t, err)
	require.Contains(t, applied, "RoleBinding web/green-admins")
}

func quotaOf(pods string) map[corev1.ResourceName]resource.Quantity {
	return map[corev1.ResourceName]resource.Quantity{corev1.ResourcePods: resource.MustParse(pods)}
}
