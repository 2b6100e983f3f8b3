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

// SecretRef names a Secret in the resource's own namespace.
type SecretRef struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KeyRef names a key of a Secret or ConfigMap in the resource's own namespace.
type KeyRef struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key in the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// ClusterSecretRef names a Secret for a cluster-scoped resource.
type ClusterSecretRef struct {
	// Namespace of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ClusterKeyRef names a key of a Secret or ConfigMap for a cluster-scoped resource.
type ClusterKeyRef struct {
	// Namespace of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Name of the object.
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
	SecretKeyRef *KeyRef `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef names a key of a ConfigMap with PEM text.
	// +optional
	ConfigMapKeyRef *KeyRef `json:"configMapKeyRef,omitempty"`
}

// ClusterCABundle holds PEM certificates that are trusted in addition to the
// system's, for a cluster-scoped resource.
// +kubebuilder:validation:ExactlyOneOf=inline;secretKeyRef;configMapKeyRef
type ClusterCABundle struct {
	// Inline is PEM text.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretKeyRef names a key of a Secret with PEM text.
	// +optional
	SecretKeyRef *ClusterKeyRef `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef names a key of a ConfigMap with PEM text.
	// +optional
	ConfigMapKeyRef *ClusterKeyRef `json:"configMapKeyRef,omitempty"`
}

// in returns r qualified with a namespace; nil stays nil.
func (r *KeyRef) in(namespace string) *ClusterKeyRef {
	if r == nil {
		return nil
	}
	return &ClusterKeyRef{Namespace: namespace, Name: r.Name, Key: r.Key}
}

func (r *SecretRef) in(namespace string) *ClusterSecretRef {
	if r == nil {
		return nil
	}
	return &ClusterSecretRef{Namespace: namespace, Name: r.Name}
}

func (b *CABundle) in(namespace string) *ClusterCABundle {
	if b == nil {
		return nil
	}
	return &ClusterCABundle{Inline: b.Inline, SecretKeyRef: b.SecretKeyRef.in(namespace), ConfigMapKeyRef: b.ConfigMapKeyRef.in(namespace)}
}
