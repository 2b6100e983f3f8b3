package resource_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestARefusedResourceKeepsIdentityStatusAndSizeWithoutItsSpec(t *testing.T) {
	for _, kind := range v1beta1.Kinds() {
		object := kind.New()
		object.SetName("x")
		object.SetUID("1")
		object.SetGeneration(7)
		object.CommonStatus().Conditions = []metav1.Condition{{Type: "Ready"}}
		made := resource.Refuse(object, errors.New("why"))
		require.ErrorContains(t, resource.Missing(made), "why")
		require.Equal(t, policy.ReasonInvalid, resource.ReasonOf(resource.Missing(made)))
		require.NoError(t, resource.Missing(object), "what is refused may belong to a cache")
		require.Equal(t, resource.RefOf(object), resource.RefOf(made))
		require.EqualValues(t, 7, made.GetGeneration())
		require.Equal(t, resource.Size(object), resource.Size(made))
		require.Equal(t, object.CommonStatus(), made.CommonStatus())
	}
}

func TestOfWhatIsRefusedOnlyWhatSaysWhoseImagesItDeniesIsKept(t *testing.T) {
	tenant := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "iris"}}
	made, ok := resource.Refuse(tenant, errors.New("why")).(*v1beta1.Tenant)
	require.True(t, ok)
	require.Equal(t, tenant.Spec, made.Spec)
	store := &v1beta1.ClusterStore{Spec: v1beta1.StoreSpec{Registries: []string{"r.example.com"}, Proxy: &v1beta1.Proxy{URL: "http://proxy"},
		InsecurePlainHTTP: true}}
	kept, ok := resource.Refuse(store, errors.New("why")).(*v1beta1.ClusterStore)
	require.True(t, ok)
	require.Equal(t, v1beta1.StoreSpec{Registries: store.Spec.Registries, Proxy: store.Spec.Proxy}, kept.Spec)
	own, ok := resource.Refuse(&v1beta1.Store{Spec: store.Spec}, errors.New("why")).(*v1beta1.Store)
	require.True(t, ok)
	require.Equal(t, v1beta1.StoreSpec{Registries: store.Spec.Registries}, own.Spec)
	spec := v1beta1.VerificationPolicySpec{DefaultAction: v1beta1.DefaultActionAllow, Rules: []v1beta1.PolicyRule{{}}, Scope: v1beta1.PolicyScopeMandatory,
		EnforcementAction: v1beta1.EnforcementActionWarn, Tags: v1beta1.TagActionPin}
	p, ok := resource.Refuse(&v1beta1.ClusterVerificationPolicy{Spec: spec}, errors.New("why")).(*v1beta1.ClusterVerificationPolicy)
	require.True(t, ok)
	require.Equal(t, v1beta1.VerificationPolicySpec{Scope: spec.Scope, EnforcementAction: spec.EnforcementAction, Tags: spec.Tags}, p.Spec)
	verifier, ok := resource.Refuse(&v1beta1.Verifier{Spec: v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign}}, errors.New("why")).(*v1beta1.Verifier)
	require.True(t, ok)
	require.Zero(t, verifier.Spec)
}
