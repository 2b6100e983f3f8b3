package resource_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// policyOf makes a policy whose spec has about as many bytes.
func policyOf(bytes int) *v1beta1.VerificationPolicy {
	p := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "strict", UID: "1", Generation: 3, ResourceVersion: "7"}}
	p.Spec.Rules = []v1beta1.PolicyRule{{Images: []string{"**"}, Require: []v1beta1.Requirement{{Expression: strings.Repeat("<", bytes)}}}}
	return p
}

func TestASpecWithinTheLimitIsKept(t *testing.T) {
	kept, same := policyOf(resource.MaxSpecBytes-200), policyOf(resource.MaxSpecBytes-200)
	require.NoError(t, resource.Keep(kept))
	require.NoError(t, resource.Oversized(kept))
	require.Equal(t, same, kept)
}

func TestASpecPastTheLimitIsDroppedAndItsSizeIsNamed(t *testing.T) {
	p := policyOf(100_000)
	require.NoError(t, resource.Keep(p))
	require.Empty(t, p.Spec)
	require.ErrorContains(t, resource.Oversized(p), "the limit is 65536: split it into several resources")
	require.Regexp(t, `^the spec has 100\d{3} bytes`, resource.Oversized(p).Error())
	require.EqualValues(t, 3, p.Generation, "its status is written for this generation")
	require.NoError(t, resource.Keep(p), "what was kept is kept as it is")
	require.Error(t, resource.Oversized(p), "a second look does not forget the size")
}

func TestATrustStoreMayHoldARootAndACertificate(t *testing.T) {
	for _, object := range []v1beta1.Object{
		&v1beta1.TrustStore{Spec: v1beta1.TrustStoreSpec{Source: v1beta1.TrustSource{Inline: strings.Repeat("x", 90_000)}}},
		&v1beta1.ClusterTrustStore{Spec: v1beta1.TrustStoreSpec{Source: v1beta1.TrustSource{Inline: strings.Repeat("x", 90_000)}}},
	} {
		require.NoError(t, resource.Keep(object))
		require.NoError(t, resource.Oversized(object))
	}
	large := &v1beta1.TrustStore{Spec: v1beta1.TrustStoreSpec{Source: v1beta1.TrustSource{Inline: strings.Repeat("x", 100_000)}}}
	require.NoError(t, resource.Keep(large))
	require.ErrorContains(t, resource.Oversized(large), "the limit is 98304")
}

func TestMetadataOfOthersIsDropped(t *testing.T) {
	p := policyOf(10)
	p.Annotations = map[string]string{"example.com/a": "b", "landwaiter.dev/c": "d"}
	p.Labels, p.Finalizers = map[string]string{"a": "b"}, []string{"example.com/f"}
	p.OwnerReferences, p.ManagedFields = []metav1.OwnerReference{{Name: "o"}}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
	require.NoError(t, resource.Keep(p))
	require.Equal(t, policyOf(10), p)
}

func TestAStatusPastTheLimitIsForgotten(t *testing.T) {
	p := policyOf(10)
	for range 40 {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: "Ready", Message: strings.Repeat("x", 2_000)})
	}
	require.NoError(t, resource.Keep(p))
	require.Equal(t, policyOf(10), p)
}

// Anyone who may write statuses may add conditions, and each has 32 KiB.
func TestOfAStatusWhatLandwaiterWritesIsKept(t *testing.T) {
	long := strings.Repeat("x", 30_000)
	ready := metav1.Condition{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Invalid", Message: strings.Repeat("x", 2<<10) + "…",
		ObservedGeneration: 3}
	p := policyOf(10)
	p.Status.Conditions = []metav1.Condition{{Type: "example.com/X", Message: long}, ready, {Type: "example.com/Y", Reason: "X"},
		{Type: v1beta1.ConditionEffective, Status: metav1.ConditionTrue, Reason: strings.Repeat("x", 1000), Message: long}}
	p.Status.ObservedGeneration = 3
	want := policyOf(10)
	want.Status.Conditions = []metav1.Condition{ready, {Type: v1beta1.ConditionEffective, Status: metav1.ConditionTrue}}
	want.Status.ObservedGeneration = 3
	require.NoError(t, resource.Keep(p))
	require.Equal(t, want, p)
	require.NoError(t, resource.Keep(p))
	require.Equal(t, want, p, "what was kept is kept as it is")

	at := metav1.Now()
	prints := []string{"sha256:" + strings.Repeat("0", 64)}
	store := &v1beta1.TrustStore{Status: v1beta1.TrustStoreStatus{Fingerprints: prints, FetchedAt: &at}}
	same := store.DeepCopy()
	require.NoError(t, resource.Keep(store))
	require.Equal(t, same, store)
	for _, forged := range [][]string{make([]string, 17), {long}} {
		store.Status.Fingerprints = forged
		require.NoError(t, resource.Keep(store))
		require.Empty(t, store.Status.Fingerprints)
		verifier := &v1beta1.ClusterVerifier{Status: v1beta1.VerifierStatus{Fingerprints: forged}}
		require.NoError(t, resource.Keep(verifier))
		require.Empty(t, verifier.Status.Fingerprints)
	}

	empty := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "strict",
		Annotations: map[string]string{"landwaiter.dev/a": long}}}
	empty.Status.Conditions = []metav1.Condition{{Type: "example.com/X", Message: long}}
	require.NoError(t, resource.Keep(empty))
	require.Empty(t, empty.Status)
	require.Empty(t, empty.Annotations, "the annotation is none of ours")
}

func TestATenantKeepsAllButManagedFields(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris", Annotations: map[string]string{"a": strings.Repeat("x", 100_000)},
		Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	want := tenant.DeepCopy()
	want.ManagedFields = nil
	require.NoError(t, resource.Keep(tenant))
	require.Equal(t, want, tenant)
}
