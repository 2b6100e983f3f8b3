package v1beta1

// ImagePullSecretsFrom names whose pull secrets are used.
type ImagePullSecretsFrom struct {
	// ServiceAccount whose imagePullSecrets are used.
	ServiceAccount Reference `json:"serviceAccount"`
}

// ClientCertificate is a client certificate for registries that ask for one.
type ClientCertificate struct {
	// SecretRef names a Secret of type kubernetes.io/tls.
	SecretRef Reference `json:"secretRef"`
}

// Proxy is an HTTP proxy that opens tunnels (CONNECT) to registries. It resolves their
// names, so the address guard does not see where connections lead.
// +kubebuilder:validation:XValidation:rule="has(self.url) || !(has(self.secretRef) || has(self.caBundle) || has(self.noProxy))",message="spec.proxy.url is missing: secretRef, caBundle and noProxy are for it"
type Proxy struct {
	// URL of the proxy, such as "http://proxy.example.com:3128". The default is the
	// proxy of the environment.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^@/]+/?$`
	URL string `json:"url,omitempty"`
	// SecretRef names a Secret with username and password for the proxy.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// CABundle is trusted for an https proxy, in addition to the system's certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// NoProxy lists hosts of this store that are reached directly, as in the
	// environment variable NO_PROXY: hosts, domains with a leading dot, addresses and
	// CIDR blocks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	NoProxy []string `json:"noProxy,omitempty"`
	// AdditionalHosts lists further hosts, by name or pattern, that are reached through the
	// proxy: token servers, and hosts that registries redirect to. Landwaiter sends them no
	// credentials.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	AdditionalHosts []string `json:"additionalHosts,omitempty"`
}
