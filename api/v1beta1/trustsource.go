package v1beta1

// TrustSource is the source of trust material.
// +kubebuilder:validation:ExactlyOneOf=inline;secretKeyRef;configMapKeyRef;kms;vault;tuf
type TrustSource struct {
	// Inline contains the text itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretKeyRef references the text in a key of a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef references the text in a key of a ConfigMap.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
	// KMS references a key in a key management service. It requires an image whose tag ends in -full.
	// +optional
	KMS *KMSSource `json:"kms,omitempty"`
	// Vault references a key, or certificates, in HashiCorp Vault.
	// +optional
	Vault *VaultSource `json:"vault,omitempty"`
	// TUF references a Sigstore TUF repository. {} selects Sigstore's public-good repository.
	// +optional
	TUF *TUFSource `json:"tuf,omitempty"`
}

// KMSSource is a key in a key management service. If a ClusterTrustStore sets neither secretRef
// nor serviceAccount, Landwaiter reads the key with the identity of its own pod.
// +kubebuilder:validation:AtMostOneOf=secretRef;serviceAccount
// +kubebuilder:validation:XValidation:rule="!self.uri.startsWith('awskms:') || !has(self.serviceAccount) || has(self.serviceAccount.aws)",message="a uri of awskms needs serviceAccount.aws if it has a serviceAccount"
// +kubebuilder:validation:XValidation:rule="!self.uri.startsWith('azurekms:') || !has(self.serviceAccount) || has(self.serviceAccount.azure)",message="a uri of azurekms needs serviceAccount.azure if it has a serviceAccount"
// +kubebuilder:validation:XValidation:rule="!self.uri.startsWith('gcpkms:') || !has(self.serviceAccount) || has(self.serviceAccount.google)",message="a uri of gcpkms needs serviceAccount.google if it has a serviceAccount"
type KMSSource struct {
	// URI of the key, such as "awskms:///alias/release", "azurekms://vault.vault.azure.net/key" or
	// "gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(awskms|azurekms|gcpkms)://`
	URI string `json:"uri"`
	// SecretRef references a Secret with credentials: accessKeyID, secretAccessKey and region for
	// AWS; tenantID, clientID and clientSecret for Azure; credentials.json for Google Cloud.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// ServiceAccount to read the key with, using short-lived tokens.
	// +optional
	ServiceAccount *CloudServiceAccount `json:"serviceAccount,omitempty"`
}

// VaultSource is a key, or certificates, in HashiCorp Vault.
// +kubebuilder:validation:ExactlyOneOf=tokenSecretKeyRef;serviceAccount
type VaultSource struct {
	// Address of the server, beginning with https://.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https://`
	Address string `json:"address"`
	// Path to read, including the mount, such as "transit/keys/release" for keys or
	// "pki/cert/ca_chain" for certificates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// VaultNamespace is the namespace in Vault, if Vault has namespaces.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	VaultNamespace string `json:"vaultNamespace,omitempty"`
	// TokenSecretKeyRef references a token in a key of a Secret.
	// +optional
	TokenSecretKeyRef *KeyReference `json:"tokenSecretKeyRef,omitempty"`
	// ServiceAccount to log in with, using short-lived tokens.
	// +optional
	ServiceAccount *VaultServiceAccount `json:"serviceAccount,omitempty"`
	// CABundle is trusted for the server, in addition to the system's certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
}

// VaultServiceAccount logs in to Vault as a ServiceAccount, with the auth method kubernetes.
type VaultServiceAccount struct {
	Reference `json:",inline"`
	// Role in Vault to log in with. It must be bound to the ServiceAccount, and have the audience
	// vault://HOST, where HOST is the host in address.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Role string `json:"role"`
	// Mount path of the auth method.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:default=kubernetes
	Mount string `json:"mount,omitempty"`
}

// TUFSource references a TUF repository with a trusted_root.json. The default is Sigstore's
// public-good repository.
// +kubebuilder:validation:XValidation:rule="has(self.mirror) == has(self.root)",message="mirror and root go together; leave out both for the public-good repository"
type TUFSource struct {
	// Mirror is the https address of the repository.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https://`
	Mirror string `json:"mirror,omitempty"`
	// Root is the repository's initial root.json.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Root string `json:"root,omitempty"`
	// CABundle is trusted for the mirror, in addition to the system's certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
}
