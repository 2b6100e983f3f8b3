package v1beta1

// NotationLevel is a notation verification level. The levels audit and skip are not
// supported because they accept untrusted signatures.
// +kubebuilder:validation:Enum=Strict;Permissive
type NotationLevel string

// The notation levels.
const (
	NotationLevelStrict     NotationLevel = "Strict"
	NotationLevelPermissive NotationLevel = "Permissive"
)

// RevocationMode selects whether certificates are checked for revocation.
// +kubebuilder:validation:Enum=Ignore;Check
type RevocationMode string

// The modes of revocation.
const (
	RevocationModeIgnore RevocationMode = "Ignore"
	RevocationModeCheck  RevocationMode = "Check"
)

// TimestampMode selects when a signature requires a timestamp.
// +kubebuilder:validation:Enum=Always;AfterCertificateExpiry
type TimestampMode string

// The modes of verifyTimestamp.
const (
	TimestampModeAlways                 TimestampMode = "Always"
	TimestampModeAfterCertificateExpiry TimestampMode = "AfterCertificateExpiry"
)

// OverrideAction selects whether a failed check denies the image or is only reported.
// +kubebuilder:validation:Enum=Enforce;Log
type OverrideAction string

// The actions of overrides.
const (
	OverrideActionEnforce OverrideAction = "Enforce"
	OverrideActionLog     OverrideAction = "Log"
)

// NotationVerifier defines which Notary Project signatures are valid.
// +kubebuilder:validation:XValidation:rule="!has(self.revocationListTrustStoreRefs) || (has(self.revocation) ? self.revocation == 'Check' : !has(self.awsSigner))",message="revocationListTrustStoreRefs needs revocation: Check"
// +kubebuilder:validation:XValidation:rule="has(self.trustStoreRefs) || has(self.signingAuthorities)",message="spec.notation needs trustStoreRefs or signingAuthorities"
// +kubebuilder:validation:XValidation:rule="has(self.trustedIdentities) || has(self.awsSigner)",message="spec.notation.trustedIdentities is missing; only awsSigner can stand in for it"
// +kubebuilder:validation:XValidation:rule="!has(self.awsSigner) || (has(self.signingAuthorities) && !has(self.trustStoreRefs))",message="spec.notation.awsSigner needs signingAuthorities with AWS's root and no trustStoreRefs"
// +kubebuilder:validation:XValidation:rule="!has(self.timestamps) || has(self.trustStoreRefs)",message="spec.notation.timestamps is for trustStoreRefs: a signing authority states the time itself"
type NotationVerifier struct {
	// TrustStoreRefs reference trust stores of type Certificates. The signer's certificate must
	// chain to one of their certificates (signing scheme notary.x509).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TrustStoreRefs []TrustStoreRef `json:"trustStoreRefs,omitempty"`

	// SigningAuthorities sign on behalf of others and certify the signing time (signing scheme
	// notary.x509.signingAuthority). trustStoreRefs and signingAuthorities each apply only to
	// signatures with their own signing scheme.
	// +optional
	SigningAuthorities *NotationSigningAuthorities `json:"signingAuthorities,omitempty"`

	// AWSSigner accepts only signatures that AWS Signer made with these signing profiles.
	// +optional
	AWSSigner *AWSSignerProfiles `json:"awsSigner,omitempty"`

	// TrustedIdentities are the subjects of signing certificates, such as "x509.subject: C=DE,
	// O=Example, CN=release"; a single "*" trusts every certificate that chains to a trust store.
	// With awsSigner, the default is "*", because the signing profile identifies the signer.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^(\*$|x509\.subject:)`
	// +kubebuilder:validation:XValidation:rule="!('*' in self) || self.size() == 1",message="\"*\" trusts every identity, so it must be the only entry of trustedIdentities"
	TrustedIdentities []string `json:"trustedIdentities,omitempty"`

	// Level is Strict or Permissive. Permissive tolerates expired signatures and certificates,
	// missing timestamps and revoked certificates.
	// +optional
	// +kubebuilder:default=Strict
	Level NotationLevel `json:"level,omitempty"`

	// Overrides of individual checks of the level.
	// +optional
	Overrides *NotationOverrides `json:"overrides,omitempty"`

	// Timestamps configures trust in RFC 3161 timestamps. If a signature has a trusted timestamp,
	// its certificates only need to have been valid when the signature was made.
	// +optional
	Timestamps *NotationTimestamps `json:"timestamps,omitempty"`

	// Revocation is Check or Ignore. Check uses OCSP and revocation lists to check the certificates
	// of signers and timestamp authorities. The level Strict enforces the result; Permissive only
	// reports it. Landwaiter prefetches answers, and only from responders that a cluster admin
	// lists. The default is Check. With awsSigner, the default is Ignore, because Landwaiter
	// queries AWS Signer instead.
	// +optional
	Revocation RevocationMode `json:"revocation,omitempty"`

	// RevocationListTrustStoreRefs reference trust stores of type RevocationLists. If revocation is
	// Check and one of these lists covers a certificate, Landwaiter uses the newest such list and
	// sends no request.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	RevocationListTrustStoreRefs []TrustStoreRef `json:"revocationListTrustStoreRefs,omitempty"`
}

// NotationSigningAuthorities defines which signing authorities are trusted.
type NotationSigningAuthorities struct {
	// TrustStoreRefs reference trust stores of type SigningAuthorities.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TrustStoreRefs []TrustStoreRef `json:"trustStoreRefs"`
}

// AWSSignerProfiles selects signatures of AWS Signer. The same AWS root certifies the signatures
// of all AWS customers, so only the signing profile identifies the signer.
type AWSSignerProfiles struct {
	// Profiles are ARNs of signing profiles, such as
	// "arn:aws:signer:eu-west-1:123456789012:/signing-profiles/release". An ARN without a version
	// matches every version of the profile. Wildcards are not supported.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^arn:(aws|aws-cn|aws-us-gov):signer:[a-z]{2}(-[a-z]+)+-[0-9]{1,2}:[0-9]{12}:/signing-profiles/[a-zA-Z0-9_]{2,64}(/[a-zA-Z0-9]{10})?$`
	Profiles []string `json:"profiles"`

	// Revocation is Check (the default) or Ignore. With Check, Landwaiter asks AWS Signer whether
	// the signature, its profile or a certificate is revoked. Landwaiter prefetches the answers.
	// Check requires an image whose tag ends in -full, and awsSigner in one of the trust stores.
	// +optional
	// +kubebuilder:default=Check
	Revocation RevocationMode `json:"revocation,omitempty"`
}

// NotationTimestamps defines which timestamps are trusted, and when a signature requires a
// timestamp.
type NotationTimestamps struct {
	// TrustStoreRefs reference trust stores of type TimestampAuthorities.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TrustStoreRefs []TrustStoreRef `json:"trustStoreRefs"`

	// VerifyTimestamp selects when a signature requires a timestamp: Always or
	// AfterCertificateExpiry.
	// +optional
	// +kubebuilder:default=Always
	VerifyTimestamp TimestampMode `json:"verifyTimestamp,omitempty"`
}

// NotationOverrides override individual checks of the level. Integrity and authenticity are
// always enforced. The level applies to omitted checks.
type NotationOverrides struct {
	// Expiry checks the expiry that the signer set in the signature.
	// +optional
	Expiry OverrideAction `json:"expiry,omitempty"`
	// AuthenticTimestamp checks that certificates were valid when the signature was made. Without a
	// timestamp, they must be valid now.
	// +optional
	AuthenticTimestamp OverrideAction `json:"authenticTimestamp,omitempty"`
	// Revocation checks certificates for revocation, unless spec.notation.revocation is Ignore.
	// +optional
	Revocation OverrideAction `json:"revocation,omitempty"`
}
