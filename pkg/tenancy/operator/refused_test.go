package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// The condition of the Tenant names the object and what to do. What a guardrail refused is tried
// again soon, because the API server may not know the Tenant's last change yet.
func TestWhatAGuardrailRefusesIsSaidAndTriedAgain(t *testing.T) {
	const by = "ValidatingAdmissionPolicy 'landwaiter-operator-guardrail' with binding 'landwaiter-operator-guardrail' denied request: "
	for about, c := range map[string]struct {
		why    string
		reason policy.Reason
		says   string
		soon   bool
	}{
		"somebody else's object": {by + "the operator takes over no object: configmaps tenant-vars is not a Tenant's", policy.ReasonNotOwned,
			"ConfigMap green/tenant-vars exists and is somebody else's (it does not have the labels of the Tenant): delete it, or `landwaiter tenant add --set " +
				"adopt=true` takes it over", false},
		"a Tenant that is not listed": {by + "ClusterRole landwaiter-operated-tenants does not list Tenant green", policy.ReasonUnfinished,
			"waits until Landwaiter has listed the Tenant", true},
		"something else":               {by + "Tenant green has no configmaps tenant-vars", policy.ReasonAccessDenied, "cannot be applied", true},
		"a permission that is missing": {"User \"x\" cannot patch resource", policy.ReasonAccessDenied, "cannot be applied", false},
	} {
		t.Run(about, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			object.SetNamespace("green")
			object.SetName("tenant-vars")
			report := &Report{}
			err := New(fakeClient(t, interceptor.Funcs{}), Options{}).
				refused(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "tenant-vars", errors.New(c.why)), object, report)
			require.NoError(t, err)
			require.Len(t, report.Problems, 1)
			require.Equal(t, c.reason, report.Problems[0].Reason)
			require.Contains(t, report.Problems[0].Message, c.says)
			require.Equal(t, c.soon, report.refused)
		})
	}
}
