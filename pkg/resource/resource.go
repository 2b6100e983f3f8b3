// Package resource holds resources as they were read, from an API server or from
// files, before they are compiled: objects, those that could not be read, and what
// their owners should correct. It reads nothing itself.
package resource

import (
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// Objects is everything that verdicts depend on, as read from an API server or
// from files. The order of a slice means nothing.
type Objects struct {
	Namespaces []corev1.Namespace
	Secrets    []corev1.Secret
	ConfigMaps []corev1.ConfigMap

	Verifiers                   []v1alpha1.Verifier
	ClusterVerifiers            []v1alpha1.ClusterVerifier
	Stores                      []v1alpha1.Store
	ClusterStores               []v1alpha1.ClusterStore
	TrustStores                 []v1alpha1.TrustStore
	ClusterTrustStores          []v1alpha1.ClusterTrustStore
	VerificationPolicies        []v1alpha1.VerificationPolicy
	ClusterVerificationPolicies []v1alpha1.ClusterVerificationPolicy
	ClusterLimits               []v1alpha1.ClusterLimits

	// Broken objects are known to be there although their content could not be
	// read. They deny where they would have applied.
	Broken []Broken
}

// Add takes an object of one of the kinds above. It returns an error for others.
func (o *Objects) Add(object runtime.Object) error {
	switch object := object.(type) {
	case *corev1.Namespace:
		o.Namespaces = append(o.Namespaces, *object)
	case *corev1.Secret:
		o.Secrets = append(o.Secrets, *object)
	case *corev1.ConfigMap:
		o.ConfigMaps = append(o.ConfigMaps, *object)
	case *v1alpha1.Verifier:
		o.Verifiers = append(o.Verifiers, *object)
	case *v1alpha1.ClusterVerifier:
		o.ClusterVerifiers = append(o.ClusterVerifiers, *object)
	case *v1alpha1.Store:
		o.Stores = append(o.Stores, *object)
	case *v1alpha1.ClusterStore:
		o.ClusterStores = append(o.ClusterStores, *object)
	case *v1alpha1.TrustStore:
		o.TrustStores = append(o.TrustStores, *object)
	case *v1alpha1.ClusterTrustStore:
		o.ClusterTrustStores = append(o.ClusterTrustStores, *object)
	case *v1alpha1.VerificationPolicy:
		o.VerificationPolicies = append(o.VerificationPolicies, *object)
	case *v1alpha1.ClusterVerificationPolicy:
		o.ClusterVerificationPolicies = append(o.ClusterVerificationPolicies, *object)
	case *v1alpha1.ClusterLimits:
		o.ClusterLimits = append(o.ClusterLimits, *object)
	default:
		return fmt.Errorf("objects of type %T are not read", object)
	}
	return nil
}

// Each calls do for every resource of landwaiter.dev, but not for what is broken.
func (o *Objects) Each(do func(policy.ObjectRef, v1alpha1.Object)) {
	each(o.Verifiers, do)
	each(o.ClusterVerifiers, do)
	each(o.Stores, do)
	each(o.ClusterStores, do)
	each(o.TrustStores, do)
	each(o.ClusterTrustStores, do)
	each(o.VerificationPolicies, do)
	each(o.ClusterVerificationPolicies, do)
	each(o.ClusterLimits, do)
}

func each[T any, P interface {
	*T
	v1alpha1.Object
}](list []T, do func(policy.ObjectRef, v1alpha1.Object)) {
	for i := range list {
		do(RefOf(P(&list[i])), P(&list[i]))
	}
}

// RefOf returns the kind, namespace and name of a resource.
func RefOf(object v1alpha1.Object) policy.ObjectRef {
	// A kind is called as its Go type, as the API machinery has it.
	return policy.ObjectRef{Kind: reflect.TypeOf(object).Elem().Name(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Broken is an object whose kind, namespace and name are known, but not its
// content. Secrets, ConfigMaps and Namespaces may be broken too. Reason is that
// of the problems that follow from it; empty it is [policy.ReasonInvalid].
type Broken struct {
	Source policy.ObjectRef
	Reason policy.Reason
	Err    error
}

// Reasoned gives err a reason of its own, for [ReasonOf].
func Reasoned(reason policy.Reason, err error) error { return reasoned{reason: reason, error: err} }

type reasoned struct {
	reason policy.Reason
	error
}

func (r reasoned) Unwrap() error { return r.error }

// ReasonOf returns the reason that an error in the chain of err was given, else
// [policy.ReasonInvalid].
func ReasonOf(err error) policy.Reason {
	var r reasoned
	if errors.As(err, &r) && r.reason != "" {
		return r.reason
	}
	return policy.ReasonInvalid
}

// Problem is something that the owner of a resource should correct. Reason is
// one word in CamelCase, as in a Kubernetes condition.
type Problem struct {
	Source  policy.ObjectRef
	Reason  policy.Reason
	Message string
}
