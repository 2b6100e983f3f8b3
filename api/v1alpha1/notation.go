package v1alpha1

// NotationLevel is a notation verification level; audit and skip do not exist
// here because they accept untrusted signatures.
// +kubebuilder:validation:Enum=Strict;Permissive
type NotationLevel string

// The notation levels.
const (
	LevelStrict     NotationLevel = "Strict"
	LevelPermissive NotationLevel = "Permissive"
)

// RevocationMode says whether certificates are checked for revocation.
// +kubebuilder:validation:Enum=Ignore;Check
type RevocationMode string

// The modes of revocation.
const (
	RevocationIgnore RevocationMode = "Ignore"
	RevocationCheck  RevocationMode = "Check"
)

// TimestampMode says when a signature needs a timestamp.
// +kubebuilder:validation:Enum=Always;AfterCertificateExpiry
type TimestampMode string

// The modes of verifyTimestamp.
const (
	TimestampAlways      TimestampMode = "Always"
	TimestampAfterExpiry TimestampMode = "AfterCertificateExpiry"
)

// OverrideAction says what a failed check does: it denies, or is told and let pass.
// +kubebuilder:validation:Enum=Enforce;Log
type OverrideAction string

// The actions of overrides.
const (
	OverrideEnforce OverrideAction = "Enforce"
	OverrideLog     OverrideAction = "Log"
)

// NotationVerifier says which Notary Project signatures are valid.
// +kubebuilder:validation:XValidation:rule="!has(self.verifyTimestamp) || has(self.timestampAuthorities)",message="spec.notation.verifyTimestamp is for spec.notation.timestampAuthorities; remove it or name authorities"
type NotationVerifier struct {
	// TrustStores of type Certificates, to one of which the signer's certificate
	// must lead.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TrustStores []TrustStoreRef `json:"trustStores"`

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

	// Level is Strict (the default) or Permissive, which tolerates expired
	// signatures and certificates, missing timestamps and revoked certificates.
	// +optional
	Level NotationLevel `json:"level,omitempty"`

	// Overrides of single checks of the level.
	// +optional
	Overrides *NotationOverrides `json:"overrides,omitempty"`

	// TimestampAuthorities are trust stores of type TimestampAuthorities. With a
	// timestamp of one of them, certificates need to have been valid only when
	// the signature was made.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TimestampAuthorities []TrustStoreRef `json:"timestampAuthorities,omitempty"`

	// VerifyTimestamp says when a timestamp is needed: Always (the default, where
	// there are authorities) or AfterCertificateExpiry.
	// +optional
	VerifyTimestamp TimestampMode `json:"verifyTimestamp,omitempty"`

	// Revocation of certificates is Ignore (the default) or Check, by OCSP and
	// revocation lists, of the signer and of timestamp authorities. Responders are
	// asked ahead of requests, and only those that a cluster admin lists.
	// +optional
	Revocation RevocationMode `json:"revocation,omitempty"`
}

// NotationOverrides replace what the level says of single checks. Integrity and
// authenticity are always enforced.
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
