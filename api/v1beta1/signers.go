package v1beta1

// Signers defines which signers are trusted, by keys or by identities.
type Signers struct {
	// Keys trusts signatures made with these keys.
	// +optional
	Keys *Keys `json:"keys,omitempty"`

	// Keyless trusts signers by their identities instead of keys.
	// +optional
	Keyless *Keyless `json:"keyless,omitempty"`
}

// Keys trusts signatures that match public keys.
// +kubebuilder:validation:ExactlyOneOf=inline;trustStoreRefs
// +kubebuilder:validation:XValidation:rule="!has(self.rootTrustStoreRef) || !has(self.insecureIgnoreTransparencyLog) || !self.insecureIgnoreTransparencyLog",message="rootTrustStoreRef names the transparency logs, and insecureIgnoreTransparencyLog ignores them; remove one"
type Keys struct {
	// Inline contains 1 to 16 public keys as PEM text. A signature made with any of these keys is
	// valid.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Inline string `json:"inline,omitempty"`

	// TrustStoreRefs reference trust stores of type PublicKeys. A signature made with any of their
	// keys is valid.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TrustStoreRefs []TrustStoreRef `json:"trustStoreRefs,omitempty"`

	TransparencyLog `json:",inline"`
}

// TransparencyLog defines which transparency log must contain a signature.
type TransparencyLog struct {
	// RootTrustStoreRef references a trust store of type SigstoreRoot. It contains the trusted
	// transparency logs and, for keyless, the trusted CAs. The default is Sigstore's public-good
	// root.
	// +optional
	RootTrustStoreRef *TrustStoreRef `json:"rootTrustStoreRef,omitempty"`

	// InsecureIgnoreTransparencyLog accepts signatures that are not in a transparency log. Keyless
	// signatures then need a trusted timestamp. Signatures made with keys need no timestamp, so
	// their signing time is unknown.
	// +optional
	InsecureIgnoreTransparencyLog bool `json:"insecureIgnoreTransparencyLog,omitempty"`
}

// Keyless trusts signers by an identity that an identity provider confirmed.
// +kubebuilder:validation:XValidation:rule="has(self.rootTrustStoreRef) || self.identities.all(i, !has(i.insecureIgnoreIssuer) || !i.insecureIgnoreIssuer)",message="insecureIgnoreIssuer requires rootTrustStoreRef: anyone can get a certificate of Sigstore's public CA; remove insecureIgnoreIssuer, or set rootTrustStoreRef to your CA's root"
type Keyless struct {
	// Identities that are trusted. A signer must match at least one.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Identities []Identity `json:"identities"`

	TransparencyLog `json:",inline"`

	// InsecureIgnoreSCT accepts certificates without a signed certificate timestamp. Use it for a
	// CA without a certificate transparency log.
	// +optional
	InsecureIgnoreSCT bool `json:"insecureIgnoreSCT,omitempty"`

	// Expression is a CEL expression that must be true for the signer. Its variables are issuer,
	// subject and claims. The extensions of the certificate are in claims, such as
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

// Thresholds are minimum numbers of different logs and timestamp authorities.
type Thresholds struct {
	// TransparencyLogs is the number of transparency logs that must contain the signature.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +kubebuilder:default=1
	TransparencyLogs *int32 `json:"transparencyLogs,omitempty"`
	// SignedCertificateTimestamps is the number of these timestamps that the certificate must have.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +kubebuilder:default=1
	SignedCertificateTimestamps *int32 `json:"signedCertificateTimestamps,omitempty"`
	// Timestamps is the number of timestamps (by logs or timestamp authorities) that the signature
	// must have.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +kubebuilder:default=1
	Timestamps *int32 `json:"timestamps,omitempty"`
}

// Identity matches a signer's certificate.
// +kubebuilder:validation:XValidation:rule="!has(self.subjectRegExp) || (has(self.insecureAllowAnySubject) && self.insecureAllowAnySubject) || !((has(self.issuer) ? self.issuer == 'https://token.actions.githubusercontent.com' : has(self.issuerRegExp) && 'https://token.actions.githubusercontent.com'.matches('^(?:' + self.issuerRegExp + ')$')) && 'https://github.com/somebody-else/another-repository/.github/workflows/another.yml@refs/pull/1/merge'.matches('^(?:' + self.subjectRegExp + ')$') || (has(self.issuer) ? self.issuer == 'https://gitlab.com' : has(self.issuerRegExp) && 'https://gitlab.com'.matches('^(?:' + self.issuerRegExp + ')$')) && 'https://gitlab.com/somebody-else/another-project//another.yml@refs/merge-requests/1/merge'.matches('^(?:' + self.subjectRegExp + ')$') || (has(self.issuer) ? self.issuer == 'https://agent.buildkite.com' : has(self.issuerRegExp) && 'https://agent.buildkite.com'.matches('^(?:' + self.issuerRegExp + ')$')) && 'https://buildkite.com/somebody-else/another-pipeline'.matches('^(?:' + self.subjectRegExp + ')$') || (has(self.issuer) ? self.issuer in ['https://accounts.google.com', 'https://github.com/login/oauth', 'https://login.microsoftonline.com', 'https://oauth2.sigstore.dev/auth'] : has(self.issuerRegExp) && 'https://accounts.google.com'.matches('^(?:' + self.issuerRegExp + ')$')) && 'somebody-else@gmail.com'.matches('^(?:' + self.subjectRegExp + ')$'))",message="subjectRegExp matches signers who have nothing in common with you, of an identity provider where anyone can get an account: write your own signer instead, such as subject https://github.com/OWNER/REPOSITORY/.github/workflows/release.yml@refs/heads/main on GitHub, https://gitlab.com/GROUP/PROJECT//.gitlab-ci.yml@refs/heads/main on GitLab, or one e-mail address; only if keyless.expression narrows it, set insecureAllowAnySubject to true"
// +kubebuilder:validation:ExactlyOneOf=issuer;issuerRegExp;insecureIgnoreIssuer
// +kubebuilder:validation:ExactlyOneOf=subject;subjectRegExp
type Identity struct {
	// Issuer is the URL of the identity provider.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer,omitempty"`
	// IssuerRegExp is an RE2 expression that must match the whole issuer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	IssuerRegExp string `json:"issuerRegExp,omitempty"`
	// InsecureIgnoreIssuer accepts certificates whatever identity provider they name, and those that
	// name none. Use it for a CA other than Fulcio, whose certificates lack Fulcio's issuer extension.
	// It requires a root other than Sigstore's public one: anyone can get a certificate of that.
	// +optional
	InsecureIgnoreIssuer bool `json:"insecureIgnoreIssuer,omitempty"`
	// Subject is the name of the signer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject,omitempty"`
	// SubjectRegExp is an RE2 expression that must match the whole subject.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
	// InsecureAllowAnySubject permits a subjectRegExp that everyone with an account of a public
	// identity provider matches. Use it only if keyless.expression says whose signatures count.
	// +optional
	InsecureAllowAnySubject bool `json:"insecureAllowAnySubject,omitempty"`
}
