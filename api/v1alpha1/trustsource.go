package v1alpha1

// TrustSource is where trust material comes from.
// +kubebuilder:validation:XValidation:rule="[has(self.inline), has(self.secretRef), has(self.configMapRef), has(self.kms), has(self.vault), has(self.tuf)].filter(x, x).size() == 1",message="set exactly one of inline, secretRef, configMapRef, kms, vault and tuf in spec.source"
type TrustSource struct {
	// Inline is the text itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretRef names a key of a Secret that holds the text.
	// +optional
	SecretRef *ObjectKeyRef `json:"secretRef,omitempty"`
	// ConfigMapRef names a key of a ConfigMap that holds the text.
	// +optional
	ConfigMapRef *ObjectKeyRef `json:"configMapRef,omitempty"`
	// KMS names a key in a key management service. It needs the image
	// landwaiter:full.
	// +optional
	KMS *KMSSource `json:"kms,omitempty"`
	// Vault names a key, or certificates, in HashiCorp Vault.
	// +optional
	Vault *VaultSource `json:"vault,omitempty"`
	// TUF names a Sigstore TUF repository: with {}, the public-good one.
	// +optional
	TUF *TUFSource `json:"tuf,omitempty"`
}

// KMSSource names a key in a key management service.
type KMSSource struct {
	// URI such as "awskms:///alias/release", "azurekms://vault.vault.azure.net/key" or
	// "gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(awskms|azurekms|gcpkms)://`
	URI string `json:"uri"`
	// SecretRef names a Secret with credentials: accessKeyID, secretAccessKey and
	// region for AWS, credentials.json for Google Cloud. Left out, a
	// ClusterTrustStore uses the identity of the pod.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`
}

// VaultSource names a key, or certificates, in HashiCorp Vault.
type VaultSource struct {
	// Address of the server, https.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https://`
	Address string `json:"address"`
	// Path that is read, with its mount: "transit/keys/release" for keys, such as
	// "pki/cert/ca_chain" for certificates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// Token names the key of a Secret that holds a token.
	Token ObjectKeyRef `json:"token"`
	// VaultNamespace is the namespace within Vault, where there are such.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	VaultNamespace string `json:"vaultNamespace,omitempty"`
	// CABundle is PEM certificates that are trusted for the server, besides the
	// system's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
}

// TUFSource names a TUF repository with a trusted_root.json. Left empty it is
// Sigstore's public-good one.
// +kubebuilder:validation:XValidation:rule="has(self.mirror) == has(self.root)",message="spec.source.tuf needs both mirror and root, or neither for the public-good repository"
type TUFSource struct {
	// Mirror is the address of the repository, https.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https://`
	Mirror string `json:"mirror,omitempty"`
	// Root is the repository's root.json, from which trust begins.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Root string `json:"root,omitempty"`
	// CABundle is PEM certificates that are trusted for the mirror, besides the
	// system's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
}
