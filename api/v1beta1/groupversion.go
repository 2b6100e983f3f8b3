// Package v1beta1 contains the resources of the group landwaiter.dev: verifiers, stores, trust
// stores and verification policies, each as a namespaced kind and a Cluster kind, and quotas for
// namespaces. It contains types only; package compile implements their semantics.
// +kubebuilder:object:generate=true
// +groupName=landwaiter.dev
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version of every kind in this package.
const (
	Group   = "landwaiter.dev"
	Version = "v1beta1"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: Group, Version: Version}
	// SchemeBuilder collects the types of this package.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers every kind and list of this package in a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	for _, kind := range Kinds() {
		scheme.AddKnownTypes(GroupVersion, kind.New(), kind.NewList())
	}
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
