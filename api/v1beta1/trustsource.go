package v1beta1

// TrustSource is the source of a namespace's trust material.
// +kubebuilder:validation:ExactlyOneOf=inline;secretKeyRef;configMapKeyRef;kms;vault;tuf
type TrustSource struct {
	// Inline is the text itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretKeyRef names a key of a Secret with the text.
	// +optional
	SecretKeyRef *KeyRef `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef names a key of a ConfigMap with the text.
	// +optional
	ConfigMapKeyRef *KeyRef `json:"configMapKeyRef,omitempty"`
	// KMS names a key in a key management service. It requires the image
	// landwaiter:full.
	// +optional
	KMS *KMSSource `json:"kms,omitempty"`
	// Vault names a key, or certificates, in HashiCorp Vault.
	// +optional
	Vault *VaultSource `json:"vault,omitempty"`
	// TUF names a Sigstore TUF repository. {} is the public-good one.
	// +optional
	TUF *TUFSource `json:"tuf,omitempty"`
}

// ClusterTrustSource is the source of the cluster's trust material.
// +kubebuilder:validation:ExactlyOneOf=inline;secretKeyRef;configMapKeyRef;kms;vault;tuf
type ClusterTrustSource struct {
	// Inline is the text itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretKeyRef names a key of a Secret with the text.
	// +optional
	SecretKeyRef *ClusterKeyRef `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef names a key of a ConfigMap with the text.
	// +optional
	ConfigMapKeyRef *ClusterKeyRef `json:"configMapKeyRef,omitempty"`
	// KMS names a key in a key management service. It requires the image
	// landwaiter:full.
	// +optional
	KMS *ClusterKMSSource `json:"kms,omitempty"`
	// Vault names a key, or certificates, in HashiCorp Vault.
	// +optional
	Vault *ClusterVaultSource `json:"vault,omitempty"`
	// TUF names a Sigstore TUF repository. {} is the public-good one.
	// +optional
	TUF *ClusterTUFSource `json:"tuf,omitempty"`
}

// KMSKey is a key in a key management service.
type KMSKey struct {
	// URI such as "awskms:///alias/release", "azurekms://vault.vault.azure.net/key" or
	// "gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(awskms|azurekms|gcpkms)://`
	URI string `json:"uri"`
}

// KMSSource is a key in a key management service, read with a namespace's own
// credentials.
// +kubebuilder:validation:ExactlyOneOf=secretRef;serviceAccount
type KMSSource struct {
	KMSKey `json:",inline"`
	// SecretRef names a Secret with credentials: accessKeyID, secretAccessKey and
	// region for AWS; tenantID, clientID and clientSecret for Azure; credentials.json for
	// Google Cloud.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`
	// ServiceAccount reads the key as a ServiceAccount of the namespace, with a
	// short-lived token.
	// +optional
	ServiceAccount *ServiceAccountIdentity `json:"serviceAccount,omitempty"`
}

// ClusterKMSSource is a key in a key management service.
// +kubebuilder:validation:AtMostOneOf=secretRef;serviceAccount
type ClusterKMSSource struct {
	KMSKey `json:",inline"`
	// SecretRef names a Secret with credentials, as for a TrustStore. The default is
	// the identity of Landwaiter's own pod.
	// +optional
	SecretRef *ClusterSecretRef `json:"secretRef,omitempty"`
	// ServiceAccount reads the key as a ServiceAccount, with a short-lived token.
	// +optional
	ServiceAccount *ClusterServiceAccountIdentity `json:"serviceAccount,omitempty"`
}

// VaultPath is a path in HashiCorp Vault.
type VaultPath struct {
	// Address of the server, https.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https://`
	Address string `json:"address"`
	// Path to read, with its mount, such as "transit/keys/release" for keys or
	// "pki/cert/ca_chain" for certificates.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// VaultNamespace is the namespace in Vault, if Vault has namespaces.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	VaultNamespace string `json:"vaultNamespace,omitempty"`
}

// VaultLogin is how Vault's auth method kubernetes is used.
type VaultLogin struct {
	// Role in Vault to log in with. It must be bound to the ServiceAccount and have the
	// audience vault://HOST, with the host of the address.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Role string `json:"role"`
	// Mount of the auth method.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:default=kubernetes
	Mount string `json:"mount,omitempty"`
}

// VaultServiceAccount logs in at Vault as a ServiceAccount of the resource's own
// namespace.
type VaultServiceAccount struct {
	ServiceAccountRef `json:",inline"`
	VaultLogin        `json:",inline"`
}

// ClusterVaultServiceAccount logs in at Vault as a ServiceAccount.
type ClusterVaultServiceAccount struct {
	ClusterServiceAccountRef `json:",inline"`
	VaultLogin               `json:",inline"`
}

// VaultSource is a key, or certificates, in HashiCorp Vault.
// +kubebuilder:validation:ExactlyOneOf=tokenSecretKeyRef;serviceAccount
type VaultSource struct {
	VaultPath `json:",inline"`
	// TokenSecretKeyRef names the key of a Secret with a token.
	// +optional
	TokenSecretKeyRef *KeyRef `json:"tokenSecretKeyRef,omitempty"`
	// ServiceAccount logs in as a ServiceAccount of the namespace, with a short-lived
	// token.
	// +optional
	ServiceAccount *VaultServiceAccount `json:"serviceAccount,omitempty"`
	// CABundle is trusted for the server, in addition to the system's certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
}

// ClusterVaultSource is a key, or certificates, in HashiCorp Vault.
// +kubebuilder:validation:ExactlyOneOf=tokenSecretKeyRef;serviceAccount
type ClusterVaultSource struct {
	VaultPath `json:",inline"`
	// TokenSecretKeyRef names the key of a Secret with a token.
	// +optional
	TokenSecretKeyRef *ClusterKeyRef `json:"tokenSecretKeyRef,omitempty"`
	// ServiceAccount logs in as a ServiceAccount, with a short-lived token.
	// +optional
	ServiceAccount *ClusterVaultServiceAccount `json:"serviceAccount,omitempty"`
	// CABundle is trusted for the server, in addition to the system's certificates.
	// +optional
	CABundle *ClusterCABundle `json:"caBundle,omitempty"`
}

// TUFRepository is a TUF repository with a trusted_root.json. The default is
// Sigstore's public-good one.
type TUFRepository struct {
	// Mirror is the address of the repository, https.
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
}

// TUFSource names a TUF repository.
// +kubebuilder:validation:XValidation:rule="has(self.mirror) == has(self.root)",message="spec.source.tuf needs both mirror and root, or neither for the public-good repository"
type TUFSource struct {
	TUFRepository `json:",inline"`
	// CABundle is trusted for the mirror, in addition to the system's certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
}

// ClusterTUFSource names a TUF repository.
// +kubebuilder:validation:XValidation:rule="has(self.mirror) == has(self.root)",message="spec.source.tuf needs both mirror and root, or neither for the public-good repository"
type ClusterTUFSource struct {
	TUFRepository `json:",inline"`
	// CABundle is trusted for the mirror, in addition to the system's certificates.
	// +optional
	CABundle *ClusterCABundle `json:"caBundle,omitempty"`
}

// in returns s with each reference qualified with a namespace.
func (s TrustSource) in(namespace string) ClusterTrustSource {
	made := ClusterTrustSource{Inline: s.Inline, SecretKeyRef: s.SecretKeyRef.in(namespace), ConfigMapKeyRef: s.ConfigMapKeyRef.in(namespace)}
	if s.KMS != nil {
		made.KMS = &ClusterKMSSource{KMSKey: s.KMS.KMSKey, SecretRef: s.KMS.SecretRef.in(namespace), ServiceAccount: s.KMS.ServiceAccount.in(namespace)}
	}
	if s.Vault != nil {
		made.Vault = &ClusterVaultSource{VaultPath: s.Vault.VaultPath, TokenSecretKeyRef: s.Vault.TokenSecretKeyRef.in(namespace), ServiceAccount: s.Vault.ServiceAccount.in(namespace), CABundle: s.Vault.CABundle.in(namespace)}
	}
	if s.TUF != nil {
		made.TUF = &ClusterTUFSource{TUFRepository: s.TUF.TUFRepository, CABundle: s.TUF.CABundle.in(namespace)}
	}
	return made
}

func (a *VaultServiceAccount) in(namespace string) *ClusterVaultServiceAccount {
	if a == nil {
		return nil
	}
	return &ClusterVaultServiceAccount{ClusterServiceAccountRef: a.ServiceAccountRef.in(namespace), VaultLogin: a.VaultLogin}
}
