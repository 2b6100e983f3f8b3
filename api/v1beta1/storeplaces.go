package v1beta1

// MirrorFallback selects what happens if a mirror does not have an image or does not respond.
// +kubebuilder:validation:Enum=Never;Origin
type MirrorFallback string

// The fallbacks of mirrors.
const (
	// MirrorFallbackNever reads only mirrors.
	MirrorFallbackNever MirrorFallback = "Never"
	// MirrorFallbackOrigin also reads the registry that the image names.
	MirrorFallbackOrigin MirrorFallback = "Origin"
)

// Mirror is a registry that contains copies of images.
type Mirror struct {
	// Host of the mirror, as host or host:port without scheme and path, such as
	// "mirror.example.com:5000". If a store lists this host in registries, the
	// login, certificates and proxy of that store apply. Otherwise, the pull secrets and CA bundles
	// of this store apply.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)+(:[1-9][0-9]{0,4})?|[A-Za-z0-9]+(-+[A-Za-z0-9]+)*:[1-9][0-9]{0,4}|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])$`
	Host string `json:"host"`

	// Path is the path of the repository on the mirror. Landwaiter replaces {repository} with the
	// image's repository, and {registry} with the image's host, with "_" before a port. Otherwise, the
	// path is in lower case, such as "hub/{repository}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^([a-z0-9]|\{(repository|registry)\})+(([._/]|__|-+)([a-z0-9]|\{(repository|registry)\})+)*$`
	// +kubebuilder:default="{repository}"
	Path string `json:"path,omitempty"`

	// Fallback is Never or Origin. Origin also reads the registry that the image names if the
	// mirror does not have an image or a signature, or does not respond.
	// +optional
	// +kubebuilder:default=Never
	Fallback MirrorFallback `json:"fallback,omitempty"`
}

// Evidence defines where Landwaiter looks for signatures and attestations of images.
type Evidence struct {
	// Repositories in which Landwaiter also looks for evidence. Signatures apply to a digest, so
	// any repository can contain them.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Repositories []EvidenceRepository `json:"repositories"`

	// Exclusive excludes the image's own repository and its mirrors.
	// +optional
	Exclusive bool `json:"exclusive,omitempty"`
}

// EvidenceRepository is a repository with signatures and attestations, under tags or as OCI
// referrers.
type EvidenceRepository struct {
	// Repository with its host, such as "registry.example.com/signatures/{repository}". {repository} is
	// replaced with the image's repository, and
	// {registry} with the image's host. Without these placeholders, all images share the
	// repository, as with COSIGN_REPOSITORY.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)+(:[1-9][0-9]{0,4})?|[A-Za-z0-9]+(-+[A-Za-z0-9]+)*:[1-9][0-9]{0,4}|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])/([a-z0-9]|\{(repository|registry)\})+(([._/]|__|-+)([a-z0-9]|\{(repository|registry)\})+)*$`
	Repository string `json:"repository"`
}
