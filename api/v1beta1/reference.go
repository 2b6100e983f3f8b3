package v1beta1

// TrustStoreKind is the kind of a referenced trust store.
// +kubebuilder:validation:Enum=TrustStore;ClusterTrustStore
type TrustStoreKind string

// The kinds of trust stores.
const (
	TrustStoreKindTrustStore        TrustStoreKind = KindTrustStore
	TrustStoreKindClusterTrustStore TrustStoreKind = KindClusterTrustStore
)

// TrustStoreRef names a trust store.
type TrustStoreRef struct {
	// Name of the trust store.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Kind is TrustStore, in the resource's own namespace, or ClusterTrustStore. The
	// default has the scope of the resource: TrustStore in a Verifier,
	// ClusterTrustStore in a ClusterVerifier, which cannot reference a TrustStore.
	// +optional
	Kind TrustStoreKind `json:"kind,omitempty"`
}

// Reference names a Secret or a ServiceAccount in the resource's own namespace. Those of
// Cluster kinds are in the namespace that --cluster-resource-namespace names, by default
// Landwaiter's own, and those of a Tenant in its home namespace.
type Reference struct {
	// Name of the object, in the resource's namespace (Cluster kinds:
	// --cluster-resource-namespace; a Tenant: its home namespace).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KeyReference names a key of a Secret or ConfigMap, which is where that of a [Reference] is.
type KeyReference struct {
	// Name of the object, in the resource's namespace (Cluster kinds:
	// --cluster-resource-namespace; a Tenant: its home namespace).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key in the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// CABundle holds PEM certificates that are trusted in addition to the system's.
// +kubebuilder:validation:ExactlyOneOf=inline;secretKeyRef;configMapKeyRef
type CABundle struct {
	// Inline is PEM text.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretKeyRef names a key of a Secret with PEM text.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef names a key of a ConfigMap with PEM text.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}
