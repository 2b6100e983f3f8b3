package v1alpha1

// Keyless trusts signers by what an identity provider said of them.
type Keyless struct {
	// Identities of which a signer must match one.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Identities []Identity `json:"identities"`

	// TrustStore of type SigstoreRoot. Left out it is Sigstore's public-good root.
	// +optional
	TrustStore *TrustStoreRef `json:"trustStore,omitempty"`

	// SignedCertificateTimestamps says whether certificates must be in a
	// certificate transparency log: Required (the default), or Ignore for a
	// certificate authority without one.
	// +optional
	SignedCertificateTimestamps TransparencyLogMode `json:"signedCertificateTimestamps,omitempty"`

	// Expression in CEL that must be true of the signer. It sees issuer, subject and
	// claims: the certificate's extensions, such as claims.sourceRepositoryURI.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression,omitempty"`

	// Thresholds are how many different logs and authorities must vouch; 1 each if
	// left out.
	// +optional
	Thresholds *Thresholds `json:"thresholds,omitempty"`
}

// Thresholds are numbers of different logs and authorities.
type Thresholds struct {
	// TransparencyLogs that must have the signature.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	TransparencyLogs *int32 `json:"transparencyLogs,omitempty"`
	// SignedCertificateTimestamps that the certificate must have.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	SignedCertificateTimestamps *int32 `json:"signedCertificateTimestamps,omitempty"`
	// Timestamps, of logs or timestamp authorities, that the signature must have.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Timestamps *int32 `json:"timestamps,omitempty"`
}

// Identity matches a signer's certificate.
// +kubebuilder:validation:XValidation:rule="has(self.issuer) != has(self.issuerRegExp)",message="set exactly one of issuer and issuerRegExp"
// +kubebuilder:validation:XValidation:rule="has(self.subject) != has(self.subjectRegExp)",message="set exactly one of subject and subjectRegExp"
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
