package v1beta1

// MirrorFallback says what happens if a mirror lacks an image or does not answer.
// +kubebuilder:validation:Enum=Never;Origin
type MirrorFallback string

// The fallbacks of mirrors.
const (
	// MirrorFallbackNever only reads mirrors.
	MirrorFallbackNever MirrorFallback = "Never"
	// MirrorFallbackOrigin also reads the registry that the image names.
	MirrorFallbackOrigin MirrorFallback = "Origin"
)

// Mirror is a registry that has copies of images.
type Mirror struct {
	// Host of the mirror, as host or host:port. Its login, certificates and proxy are
	// those of the store that lists it among its registries; without one, this store's
	// pull secrets and CA bundles count for it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^{}/]+$`
	Host string `json:"host"`

	// Path is the repository at the mirror. {repository} stands for the image's
	// repository, {registry} for its host, with "_" before a port.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:default="{repository}"
	Path string `json:"path,omitempty"`

	// Fallback is Never, or Origin. Origin also reads the registry that the image names if the
	// mirror lacks an image or a signature, or does not answer.
	// +optional
	// +kubebuilder:default=Never
	Fallback MirrorFallback `json:"fallback,omitempty"`
}

// Evidence says where signatures and attestations of images are.
type Evidence struct {
	// Repositories that are also read. Signatures are about a digest, so any repository may
	// contain them.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Repositories []EvidenceRepository `json:"repositories"`

	// Exclusive leaves out the image's own repository and its mirrors.
	// +optional
	Exclusive bool `json:"exclusive,omitempty"`
}

// EvidenceRepository is a repository with signatures and attestations, by tag or as OCI
// referrers.
type EvidenceRepository struct {
	// Repository with its host. {repository} stands for the image's repository,
	// {registry} for its host. Without either, all images share the repository, as with
	// COSIGN_REPOSITORY.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^{}/]+/.+$`
	Repository string `json:"repository"`
}
