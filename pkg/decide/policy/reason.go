package policy

// Reason is a CamelCase word that explains a rejected piece of evidence, a registry
// error or a resource condition. Programs may depend on these words;
// docs/reference/reasons.md explains each one.
type Reason string

// Reasons of the condition Ready.
const (
	ReasonPending           Reason = "Pending"           // Landwaiter has not processed the resource yet
	ReasonValid             Reason = "Valid"             // the resource and everything it references can be used
	ReasonInvalid           Reason = "Invalid"           // the resource cannot be used as it is
	ReasonNotFound          Reason = "NotFound"          // a referenced object, image or credential does not exist
	ReasonReferenceNotReady Reason = "ReferenceNotReady" // a referenced resource cannot be used
	ReasonAccessDenied      Reason = "AccessDenied"      // Landwaiter cannot read a referenced object, or the registry refuses access
	ReasonUnreadable        Reason = "Unreadable"        // a referenced object, or the spec itself, cannot be read now
	ReasonLimitExceeded     Reason = "LimitExceeded"     // there is more evidence, or more to compile, than the limit
	ReasonDuplicate         Reason = "Duplicate"         // several files declare the same object
	ReasonIgnored           Reason = "Ignored"           // a file declares an object that Landwaiter does not use
	ReasonConflict          Reason = "Conflict"          // another Tenant or ClusterQuota has what this one claims
	ReasonNotDelegated      Reason = "NotDelegated"      // no ClusterException delegates to the namespace what an Exception is for
	ReasonTooLong           Reason = "TooLong"           // an exception would last longer than it may
	ReasonNeverReached      Reason = "NeverReached"      // a ClusterQuota gives more than a flag of serve allows
	ReasonUnwatched         Reason = "Unwatched"         // changes of files are only detected by rescans
)

// Reasons of the condition Effective.
const (
	ReasonInForce        Reason = "InForce"        // the resource is used for decisions
	ReasonOnlyWarns      Reason = "OnlyWarns"      // the policy adds warnings and denies nothing
	ReasonDenies         Reason = "Denies"         // the resource cannot be used, so every image that depends on it is denied
	ReasonOverridden     Reason = "Overridden"     // a namespace's own resources, or ones earlier by name, apply instead
	ReasonUnused         Reason = "Unused"         // nothing references the resource
	ReasonAppliesNowhere Reason = "AppliesNowhere" // the resource matches nothing that exists
	ReasonUnsatisfiable  Reason = "Unsatisfiable"  // no image can meet what the policy requires
	ReasonNotInForce     Reason = "NotInForce"     // the exception cannot be used, so it allows nothing
	// ReasonMandatoryHolds: a mandatory policy judges the images of the exception, which does not override it.
	ReasonMandatoryHolds Reason = "MandatoryHolds"
)

// Reasons of the condition Provisioned.
const (
	ReasonProvisioned  Reason = "Provisioned"  // everything that the Tenant stands for exists
	ReasonNotOwned     Reason = "NotOwned"     // a namespace or object exists and is not the Tenant's
	ReasonReserved     Reason = "Reserved"     // a namespace that no Tenant may have is listed
	ReasonNotInstalled Reason = "NotInstalled" // the cluster does not know a kind of object
	// the API server did not answer, something waits for what comes first, or Landwaiter had no time or capacity
	ReasonUnfinished Reason = "Unfinished"
)

// Reasons of the condition ExpiresSoon.
const (
	ReasonExpiring    Reason = "Expiring"    // something in the resource expires within its notice
	ReasonExpired     Reason = "Expired"     // something in the resource has expired
	ReasonNotExpiring Reason = "NotExpiring" // nothing in the resource expires within its notice
	ReasonNoExpiry    Reason = "NoExpiry"    // nothing in the resource expires
	// ReasonExpiryUnknown: the trust material, or its expiry, cannot be read.
	ReasonExpiryUnknown Reason = "ExpiryUnknown"
)

// Reasons of the condition NeedsReview.
const (
	ReasonIdentityForAnyone     Reason = "IdentityForAnyone"     // anyone can get the identity
	ReasonIdentityTooBroad      Reason = "IdentityTooBroad"      // others of the same organization have the identity too
	ReasonIdentityMatchesNobody Reason = "IdentityMatchesNobody" // no signer can have the identity
	ReasonRuleTooBroad          Reason = "RuleTooBroad"          // every image is allowed
	ReasonRuleNeverReached      Reason = "RuleNeverReached"      // earlier rules match all images of the rule
	ReasonPublishedKey          Reason = "PublishedKey"          // the key is an example of Landwaiter's documentation
	ReasonPlaceholder           Reason = "Placeholder"           // a name is an example of Landwaiter's documentation
)

// Reasons of failures to read evidence.
const (
	ReasonUnreachable              Reason = "Unreachable"              // the registry did not answer in time, securely and in full
	ReasonForbidden                Reason = "Forbidden"                // the registry or an address rule refuses access
	ReasonUntrustedTokenServer     Reason = "UntrustedTokenServer"     // the registry sends credentials to a host that no Store lists
	ReasonContentMismatch          Reason = "ContentMismatch"          // the registry sent bytes that do not match their digest
	ReasonNoRegistry               Reason = "NoRegistry"               // no registry client is configured
	ReasonNoDigest                 Reason = "NoDigest"                 // the reference has no digest, but one is required
	ReasonNamespaceNotFound        Reason = "NamespaceNotFound"        // the namespace does not exist
	ReasonRevocationHostNotAllowed Reason = "RevocationHostNotAllowed" // the certificate names a revocation server that is not allowed
	ReasonInternalError            Reason = "InternalError"            // a bug in Landwaiter
)

// Reasons of rejected evidence of any format.
const (
	ReasonBrokenResource  Reason = "BrokenResource"  // the Verifier cannot be used
	ReasonNoSuchVerifier  Reason = "NoSuchVerifier"  // the policy names a Verifier that does not exist
	ReasonNotForThisImage Reason = "NotForThisImage" // the Verifier that the policy names does not match the image
	ReasonNoEvidence      Reason = "NoEvidence"      // the image has no evidence that the Verifier could check
	ReasonMalformed       Reason = "Malformed"       // the signature is not well-formed
	ReasonNoLayers        Reason = "NoLayers"        // the manifest contains no signature
	ReasonWrongDigest     Reason = "WrongDigest"     // another image was signed
)

// Reasons of rejected cosign signatures and attestations.
const (
	ReasonWrongKey         Reason = "WrongKey"         // no trusted key verifies the signature
	ReasonWrongRepository  Reason = "WrongRepository"  // the image was signed for another repository
	ReasonWrongAnnotations Reason = "WrongAnnotations" // a required annotation was not signed
	ReasonWrongPredicate   Reason = "WrongPredicate"   // the statement is not an image signature
	ReasonPredicate        Reason = "Predicate"        // the attestation does not meet the Verifier's expression
	ReasonTamperedPayload  Reason = "TamperedPayload"  // content was changed after it was signed or stored
	ReasonNoSignature      Reason = "NoSignature"      // a payload has no signature
	ReasonKeyless          Reason = "Keyless"          // signed with a certificate, but a key is required
	ReasonKeyed            Reason = "Keyed"            // signed with a key, but an identity is required
	ReasonWrongIdentity    Reason = "WrongIdentity"    // the Verifier does not trust the signer
	ReasonUntrusted        Reason = "Untrusted"        // a certificate, log entry or timestamp does not chain to the trusted root
	ReasonUnsupported      Reason = "Unsupported"      // the signature has an unsupported form
)

// Reasons of rejected Notary Project signatures.
const (
	ReasonUntrustedCertificate     Reason = "UntrustedCertificate"     // the chain does not end in a trust anchor
	ReasonInvalidCertificate       Reason = "InvalidCertificate"       // the chain is broken or not meant for code signing
	ReasonUntrustedIdentity        Reason = "UntrustedIdentity"        // the signer's subject is not trusted
	ReasonExpiredCertificate       Reason = "ExpiredCertificate"       // a certificate of the chain has expired
	ReasonFutureCertificate        Reason = "FutureCertificate"        // a certificate of the chain is not valid yet
	ReasonExpiredSignature         Reason = "ExpiredSignature"         // the signature has expired
	ReasonNoTimestamp              Reason = "NoTimestamp"              // a timestamp is required and there is none
	ReasonInvalidTimestamp         Reason = "InvalidTimestamp"         // no trusted authority made the timestamp for this signature
	ReasonTimestampOutOfTime       Reason = "TimestampOutOfTime"       // a certificate was not valid at the timestamp
	ReasonRevokedCertificate       Reason = "RevokedCertificate"       // an authority has revoked a certificate
	ReasonRevocationUnknown        Reason = "RevocationUnknown"        // the revocation status could not be determined
	ReasonTamperedEnvelope         Reason = "TamperedEnvelope"         // content was changed after it was signed or stored
	ReasonUnknownCriticalAttribute Reason = "UnknownCriticalAttribute" // the signer requires an unknown attribute
	ReasonPluginRequired           Reason = "PluginRequired"           // the signer requires a plugin
	ReasonInvalidAttribute         Reason = "InvalidAttribute"         // a signed attribute of AWS Signer is missing or malformed
	ReasonUntrustedProfile         Reason = "UntrustedProfile"         // AWS Signer signed for a profile that is not trusted
	ReasonRevokedSignature         Reason = "RevokedSignature"         // AWS Signer has revoked the signature or its profile
)
