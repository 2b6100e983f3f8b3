package v1beta1

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Names of the kinds.
const (
	KindVerifier                  = "Verifier"
	KindClusterVerifier           = "ClusterVerifier"
	KindStore                     = "Store"
	KindClusterStore              = "ClusterStore"
	KindTrustStore                = "TrustStore"
	KindClusterTrustStore         = "ClusterTrustStore"
	KindVerificationPolicy        = "VerificationPolicy"
	KindClusterVerificationPolicy = "ClusterVerificationPolicy"
	KindException                 = "Exception"
	KindClusterException          = "ClusterException"
	KindClusterQuota              = "ClusterQuota"
	KindTenant                    = "Tenant"
)

// Categories of kubectl: all namespaced kinds, and all cluster-scoped kinds.
const (
	CategoryNamespaced = "landwaiter"
	CategoryCluster    = "landwaiter-cluster"
)

// Object is a resource of this package, of either scope.
// +kubebuilder:object:generate=false
type Object interface {
	runtime.Object
	metav1.Object
	// CommonStatus returns the conditions, to read or to change in place.
	CommonStatus() *Status
}

// List is a list of resources of one kind.
// +kubebuilder:object:generate=false
type List interface {
	runtime.Object
	metav1.ListInterface
}

// Kind is one row of the table of kinds.
// +kubebuilder:object:generate=false
type Kind struct {
	Name       string
	Plural     string // in URLs and in RBAC rules
	Namespaced bool
	New        func() Object
	NewList    func() List
}

// Kinds returns the table of kinds. All code that reads, watches, decodes or grants
// access to resources uses it.
func Kinds() []Kind {
	return []Kind{
		{KindVerifier, "verifiers", true, func() Object { return &Verifier{} }, func() List { return &VerifierList{} }},
		{KindClusterVerifier, "clusterverifiers", false, func() Object { return &ClusterVerifier{} },
			func() List { return &ClusterVerifierList{} }},
		{KindStore, "stores", true, func() Object { return &Store{} }, func() List { return &StoreList{} }},
		{KindClusterStore, "clusterstores", false, func() Object { return &ClusterStore{} }, func() List { return &ClusterStoreList{} }},
		{KindTrustStore, "truststores", true, func() Object { return &TrustStore{} }, func() List { return &TrustStoreList{} }},
		{KindClusterTrustStore, "clustertruststores", false, func() Object { return &ClusterTrustStore{} },
			func() List { return &ClusterTrustStoreList{} }},
		{KindVerificationPolicy, "verificationpolicies", true, func() Object { return &VerificationPolicy{} },
			func() List { return &VerificationPolicyList{} }},
		{KindClusterVerificationPolicy, "clusterverificationpolicies", false, func() Object { return &ClusterVerificationPolicy{} },
			func() List { return &ClusterVerificationPolicyList{} }},
		{KindException, "exceptions", true, func() Object { return &Exception{} }, func() List { return &ExceptionList{} }},
		{KindClusterException, "clusterexceptions", false, func() Object { return &ClusterException{} },
			func() List { return &ClusterExceptionList{} }},
		{KindClusterQuota, "clusterquotas", false, func() Object { return &ClusterQuota{} }, func() List { return &ClusterQuotaList{} }},
		{KindTenant, "tenants", false, func() Object { return &Tenant{} }, func() List { return &TenantList{} }},
	}
}

// KindOf returns the kind of an object, which may not say it itself: a kind is named like its Go type, as the API
// machinery requires.
func KindOf(object Object) string { return reflect.TypeOf(object).Elem().Name() }

// KindNamed returns the row of a kind, and whether it exists.
func KindNamed(name string) (Kind, bool) {
	for _, kind := range Kinds() {
		if kind.Name == name {
			return kind, true
		}
	}
	return Kind{}, false
}
