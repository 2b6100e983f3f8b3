package check_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// ofTeam reads as a person who may list only in the namespaces of one team.
func ofTeam(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	types := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(types))
	require.NoError(t, v1beta1.AddToScheme(types))
	return fake.NewClientBuilder().WithScheme(types).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var given client.ListOptions
			given.ApplyOptions(options)
			if given.Namespace != "tides" && given.Namespace != "tides-home" {
				return apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("things").GroupResource(), "", nil)
			}
			return c.List(ctx, list, options...)
		}}).Build()
}

func TestATeamChecksTheRulesOfItsNamespaceAndItsHomeNamespace(t *testing.T) {
	made := func(namespace string) *v1beta1.Verifier {
		v := &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "anyone"}}
		v.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionNeedsReview, Status: metav1.ConditionTrue, Reason: string(policy.ReasonIdentityForAnyone),
			Message: "anyone can sign"}}
		return v
	}
	c := ofTeam(t, made("tides"), made("tides-home"), made("other"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tides", Labels: map[string]string{v1beta1.LabelTenant: "tides"}}},
		&v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "tides"}, Spec: v1beta1.TenantSpec{HomeNamespace: "tides-home"}})
	for name, only := range map[string][]string{"everything": nil, "as for --tenant": check.ResourceIDs()} {
		inventory, err := check.Read(t.Context(), c, check.Options{Namespace: "landwaiter-system", Within: "tides", Only: only}, now())
		require.NoError(t, err, name)
		report := check.Examine(inventory, schema.Embedded())
		var found []policy.ObjectRef
		for _, f := range report.Findings {
			if f.ID == string(policy.ReasonIdentityForAnyone) {
				require.Equal(t, resource.Error, f.Severity)
				found = append(found, f.Object)
			}
		}
		require.Equal(t, []policy.ObjectRef{{Kind: "Verifier", Namespace: "tides-home", Name: "anyone"}, {Kind: "Verifier", Namespace: "tides", Name: "anyone"}},
			found, name)
		unchecked := map[string]string{}
		for _, u := range report.Unchecked {
			for _, id := range u.IDs {
				unchecked[id] += u.Why
			}
		}
		require.Contains(t, unchecked[string(policy.ReasonIdentityForAnyone)], "only in tides and tides-home, and cannot list clusterverifiers.landwaiter.dev", name)
	}
}
