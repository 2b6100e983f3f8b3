package v1alpha1

// NotationLevel is a notation verification level. The levels audit and skip do
// not exist here because they accept untrusted signatures.
// +kubebuilder:validation:Enum=Strict;Permissive
type NotationLevel string

// The notation levels.
const (
	NotationLevelStrict     NotationLevel = "Strict"
	NotationLevelPermissive NotationLevel = "Permissive"
)

// RevocationMode says whether certificates are checked for revocation.
// +kubebuilder:validation:Enum=Ignore;Check
type RevocationMode string

// The modes of revocation.
const (
	RevocationModeIgnore RevocationMode = "Ignore"
	RevocationModeCheck  RevocationMode = "Check"
)

// TimestampMode says when a signature needs a timestamp.
// +kubebuilder:validation:Enum=Always;AfterCertificateExpiry
type TimestampMode string

// The modes of verifyTimestamp.
const (
	TimestampModeAlways                 TimestampMode = "Always"
	TimestampModeAfterCertificateExpiry TimestampMode = "AfterCertificateExpiry"
)

// OverrideAction says what a failed check does: deny, or only report.
// +kubebuilder:validation:Enum=Enforce;Log
type OverrideAction string

// The actions of overrides.
const (
	OverrideActionEnforce OverrideAction = "Enforce"
	OverrideActionLog     OverrideAction = "Log"
)

// NotationVerifier says which Notary Project signatures are valid.
type NotationVerifier struct {
	// TrustStoreRefs name trust stores of type Certificates, to one of which the
	// signer's certificate must lead.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TrustStoreRefs []TrustStoreRef `json:"trustStoreRefs"`

	// TrustedIdentities are the subjects of signing certificates, such as
	// "x509.subject: C=DE, O=Example, CN=release"; "*" alone trusts every
	// certificate that leads to a trust store.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!('*' in self) || self.size() == 1",message="\"*\" trusts every identity, so it must be the only entry of trustedIdentities"
	TrustedIdentities []string `json:"trustedIdentities"`

	// Level is Strict, or Permissive, which tolerates expired signatures and
	// certificates, missing timestamps and revoked certificates.
	// +optional
	// +kubebuilder:default=Strict
	Level NotationLevel `json:"level,omitempty"`

	// Overrides of single checks of the level.
	// +optional
	Overrides *NotationOverrides `json:"overrides,omitempty"`

	// Timestamps says whose RFC 3161 timestamps are trusted. With one, certificates
	// need to have been valid only when the signature was made.
	// +optional
	Timestamps *NotationTimestamps `json:"timestamps,omitempty"`

	// Revocation of certificates is Ignore or Check: by OCSP and revocation lists, of
	// the signer and of timestamp authorities. Responders are asked ahead of requests,
	// and only those that a cluster admin lists.
	// +optional
	// +kubebuilder:default=Ignore
	Revocation RevocationMode `json:"revocation,omitempty"`
}

// NotationTimestamps says whose timestamps are trusted, and when one is needed.
type NotationTimestamps struct {
	// TrustStoreRefs name trust stores of type TimestampAuthorities.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TrustStoreRefs []TrustStoreRef `json:"trustStoreRefs"`

	// VerifyTimestamp says when a signature needs a timestamp: Always or
	// AfterCertificateExpiry.
	// +optional
	// +kubebuilder:default=Always
	VerifyTimestamp TimestampMode `json:"verifyTimestamp,omitempty"`
}

// NotationOverrides replace what the level says of single checks. Integrity and
// authenticity are always enforced. What is omitted is as the level has it.
type NotationOverrides struct {
	// Expiry of the signature, which its signer chose.
	// +optional
	Expiry OverrideAction `json:"expiry,omitempty"`
	// AuthenticTimestamp is whether certificates were valid when the signature was
	// made or, without a timestamp, are valid now.
	// +optional
	AuthenticTimestamp OverrideAction `json:"authenticTimestamp,omitempty"`
	// Revocation of certificates, where it is checked.
	// +optional
	Revocation OverrideAction `json:"revocation,omitempty"`
}
