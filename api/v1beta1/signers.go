package v1beta1

// Signers defines whose signatures count: those by keys, or those by identities.
type Signers struct {
	// Keys trusts signatures by these keys.
	// +optional
	Keys *Keys `json:"keys,omitempty"`

	// Keyless trusts identities instead of keys.
	// +optional
	Keyless *Keyless `json:"keyless,omitempty"`
}

// Keys trusts signatures by public keys.
// +kubebuilder:validation:ExactlyOneOf=inline;trustStoreRefs
// +kubebuilder:validation:XValidation:rule="!has(self.rootTrustStoreRef) || !has(self.insecureIgnoreTransparencyLog) || !self.insecureIgnoreTransparencyLog",message="rootTrustStoreRef names the transparency logs, and insecureIgnoreTransparencyLog ignores them; remove one"
type Keys struct {
	// Inline holds the keys themselves, 1 to 16 as PEM text. A signature by any of them is
	// valid.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Inline string `json:"inline,omitempty"`

	// TrustStoreRefs reference trust stores of type PublicKeys. A signature by any of their keys is
	// valid.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TrustStoreRefs []TrustStoreRef `json:"trustStoreRefs,omitempty"`

	TransparencyLog `json:",inline"`
}

// TransparencyLog defines which transparency log must contain a signature.
type TransparencyLog struct {
	// RootTrustStoreRef names a trust store of type SigstoreRoot, with the transparency
	// logs and, for keyless, the CAs that are trusted. The default is Sigstore's
	// public-good root.
	// +optional
	RootTrustStoreRef *TrustStoreRef `json:"rootTrustStoreRef,omitempty"`

	// InsecureIgnoreTransparencyLog accepts signatures that are not in a transparency log.
	// Keyless signatures then need a trusted timestamp. Signatures by keys need none, so
	// nobody can tell when they were made.
	// +optional
	InsecureIgnoreTransparencyLog bool `json:"insecureIgnoreTransparencyLog,omitempty"`
}

// Keyless trusts signers by the identity that an identity provider vouches for.
type Keyless struct {
	// Identities that are trusted. A signer must match at least one.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Identities []Identity `json:"identities"`

	TransparencyLog `json:",inline"`

	// InsecureIgnoreSCT accepts certificates without a signed certificate timestamp,
	// for a CA without a certificate transparency log.
	// +optional
	InsecureIgnoreSCT bool `json:"insecureIgnoreSCT,omitempty"`

	// Expression in CEL that must be true of the signer. Its variables are issuer,
	// subject and claims: the certificate's extensions, such as
	// claims.sourceRepositoryURI.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression,omitempty"`

	// Thresholds set how many different logs and timestamp authorities are required.
	// +optional
	// +kubebuilder:default={}
	Thresholds *Thresholds `json:"thresholds,omitempty"`
}

// Thresholds are numbers of different logs and timestamp authorities.
type Thresholds struct {
	// TransparencyLogs that must have the signature.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +kubebuilder:default=1
	TransparencyLogs *int32 `json:"transparencyLogs,omitempty"`
	// SignedCertificateTimestamps that the certificate must have.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +kubebuilder:default=1
	SignedCertificateTimestamps *int32 `json:"signedCertificateTimestamps,omitempty"`
	// Timestamps, of logs or timestamp authorities, that the signature must have.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +kubebuilder:default=1
	Timestamps *int32 `json:"timestamps,omitempty"`
}

// Identity matches a signer's certificate.
// +kubebuilder:validation:ExactlyOneOf=issuer;issuerRegExp
// +kubebuilder:validation:ExactlyOneOf=subject;subjectRegExp
type Identity struct {
	// Issuer is the identity provider's URL.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer,omitempty"`
	// IssuerRegExp is an anchored RE2 expression for the issuer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	IssuerRegExp string `json:"issuerRegExp,omitempty"`
	// Subject is the signer's name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject,omitempty"`
	// SubjectRegExp is an anchored RE2 expression for the subject.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}
