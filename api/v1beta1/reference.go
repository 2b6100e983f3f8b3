package v1beta1

// TrustStoreKind is the kind of a referenced trust store.
// +kubebuilder:validation:Enum=TrustStore;ClusterTrustStore
type TrustStoreKind string

// The kinds of trust stores.
const (
	TrustStoreKindTrustStore        TrustStoreKind = KindTrustStore
	TrustStoreKindClusterTrustStore TrustStoreKind = KindClusterTrustStore
)

// TrustStoreRef references a trust store.
type TrustStoreRef struct {
	// Name of the trust store.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Kind is TrustStore (in the namespace of the Verifier) or ClusterTrustStore. The default is
	// TrustStore in a Verifier, and ClusterTrustStore in a ClusterVerifier. A ClusterVerifier
	// cannot reference a TrustStore.
	// +optional
	Kind TrustStoreKind `json:"kind,omitempty"`
}

// Reference references a Secret or a ServiceAccount in the namespace of the resource. For
// Cluster kinds, the object is in the namespace of --cluster-resource-namespace, by default
// Landwaiter's own. For a Tenant, the object is in the home namespace.
type Reference struct {
	// Name of the object in the resource's namespace (for Cluster kinds, in
	// --cluster-resource-namespace; for a Tenant, in its home namespace).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KeyReference references a key of a Secret or ConfigMap. The object is in the namespace that
// [Reference] describes.
type KeyReference struct {
	// Name of the object in the resource's namespace (for Cluster kinds, in
	// --cluster-resource-namespace; for a Tenant, in its home namespace).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key in the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// CABundle contains PEM certificates that are trusted in addition to the system's certificates.
// +kubebuilder:validation:ExactlyOneOf=inline;secretKeyRef;configMapKeyRef
type CABundle struct {
	// Inline contains the certificates as PEM text.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretKeyRef references PEM text in a key of a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef references PEM text in a key of a ConfigMap.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}
