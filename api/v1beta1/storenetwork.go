package v1beta1

// ImagePullSecretsFrom references the object that lists the pull secrets.
type ImagePullSecretsFrom struct {
	// ServiceAccount that lists the imagePullSecrets to use.
	ServiceAccount Reference `json:"serviceAccount"`
}

// ClientCertificate is a client certificate for registries that require one.
type ClientCertificate struct {
	// SecretRef references a Secret of type kubernetes.io/tls.
	SecretRef Reference `json:"secretRef"`
}

// Proxy is an HTTP proxy that opens tunnels (CONNECT) to registries. The proxy resolves host
// names, so Landwaiter's address guard cannot check the addresses.
// +kubebuilder:validation:XValidation:rule="has(self.url) || !(has(self.secretRef) || has(self.caBundle) || has(self.noProxy))",message="spec.proxy.url is missing: secretRef, caBundle and noProxy are for it"
type Proxy struct {
	// URL of the proxy, such as "http://proxy.example.com:3128". The default is the proxy in the
	// environment.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^@/]+/?$`
	URL string `json:"url,omitempty"`
	// SecretRef references a Secret with username and password for the proxy.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// CABundle is trusted for an https proxy, in addition to the system's certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// NoProxy lists hosts of this store that Landwaiter contacts directly. As in the environment
	// variable NO_PROXY, it can contain hosts, domains with a leading dot, addresses and CIDR
	// blocks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[^, \t]+$`
	NoProxy []string `json:"noProxy,omitempty"`
	// AdditionalHosts lists further hosts, by name or pattern, that Landwaiter contacts through the
	// proxy: token servers, and hosts that registries redirect to. Landwaiter sends no credentials
	// to these hosts.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^((([A-Za-z0-9][A-Za-z0-9-]*)?(\*[A-Za-z0-9-]+)*(\*?[A-Za-z0-9]|\*)\.)*[A-Za-z0-9]+(-+[A-Za-z0-9]+)*\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(:[1-9][0-9]{0,4})?|[A-Za-z0-9]+(-+[A-Za-z0-9]+)*:[1-9][0-9]{0,4}|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])$`
	AdditionalHosts []string `json:"additionalHosts,omitempty"`
}
