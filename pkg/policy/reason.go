package policy

// Reason is one word in CamelCase that says why evidence does not count, why a
// registry refused, or what a condition of a resource means. Programs may depend
// on these words; docs/troubleshooting.md explains each one.
type Reason string

// Reasons of conditions.
const (
	ReasonInForce      Reason = "InForce"      // the resource is used as it is
	ReasonInvalid      Reason = "Invalid"      // the resource cannot be used as it is
	ReasonNotFound     Reason = "NotFound"     // an object, image or credential that is named does not exist
	ReasonAccessDenied Reason = "AccessDenied" // Landwaiter may not read what the resource names
	ReasonDuplicate    Reason = "Duplicate"    // several files have the same object
	ReasonIgnored      Reason = "Ignored"      // a file holds an object that Landwaiter does not use
	ReasonUnwatched    Reason = "Unwatched"    // changes of files are noticed late
	ReasonUnreadable   Reason = "Unreadable"   // what the resource names cannot be read now
)

// Reasons of failures to read evidence.
const (
	ReasonUnreachable              Reason = "Unreachable"              // the registry did not answer, or not in time
	ReasonUnauthorized             Reason = "Unauthorized"             // the registry wants credentials that the Store does not have
	ReasonForbidden                Reason = "Forbidden"                // the registry, or a rule on addresses, refuses
	ReasonUntrustedRegistry        Reason = "UntrustedRegistry"        // the certificate of the registry is not trusted
	ReasonInvalidAnswer            Reason = "InvalidAnswer"            // the answer is not as the OCI distribution specification says
	ReasonUntrustedTokenServer     Reason = "UntrustedTokenServer"     // the registry sends credentials to a host that no Store lists
	ReasonContentMismatch          Reason = "ContentMismatch"          // the registry sent bytes that do not match their digest
	ReasonLimitExceeded            Reason = "LimitExceeded"            // there is more evidence than is read
	ReasonNoRegistry               Reason = "NoRegistry"               // the configuration has no way to a registry
	ReasonNoDigest                 Reason = "NoDigest"                 // the reference has no digest where one is needed
	ReasonNamespaceNotFound        Reason = "NamespaceNotFound"        // the namespace does not exist
	ReasonRevocationHostNotAllowed Reason = "RevocationHostNotAllowed" // the certificate names a revocation server that is not allowed
	ReasonInternalError            Reason = "InternalError"            // a fault in Landwaiter
)

// Reasons of evidence that does not count, whatever its format.
const (
	ReasonBrokenResource  Reason = "BrokenResource"  // the Verifier cannot be used
	ReasonNoSuchVerifier  Reason = "NoSuchVerifier"  // the policy names a Verifier that does not exist
	ReasonNotForThisImage Reason = "NotForThisImage" // the Verifier that the policy names is for other images
	ReasonMalformed       Reason = "Malformed"       // the signature is not well-formed
	ReasonNoLayers        Reason = "NoLayers"        // the signature's manifest holds no signature
	ReasonWrongDigest     Reason = "WrongDigest"     // another image was signed
)

// Reasons of cosign signatures and attestations that do not count.
const (
	ReasonWrongKey         Reason = "WrongKey"         // no trusted key verifies the signature
	ReasonWrongRepository  Reason = "WrongRepository"  // the image was signed for another repository
	ReasonWrongAnnotations Reason = "WrongAnnotations" // a wanted annotation was not signed
	ReasonWrongPredicate   Reason = "WrongPredicate"   // the statement is not an image signature
	ReasonPredicate        Reason = "Predicate"        // the attestation does not say what is required
	ReasonTamperedPayload  Reason = "TamperedPayload"  // content was changed after it was signed or stored
	ReasonNoSignature      Reason = "NoSignature"      // a payload comes without a signature
	ReasonKeyless          Reason = "Keyless"          // signed with a certificate, where a key is wanted
	ReasonKeyed            Reason = "Keyed"            // signed with a key, where an identity is wanted
	ReasonWrongIdentity    Reason = "WrongIdentity"    // the Verifier does not trust who signed
	ReasonUntrusted        Reason = "Untrusted"        // a certificate, log entry or timestamp does not lead to the trusted root
	ReasonUnsupported      Reason = "Unsupported"      // the signature is of a form that cannot be checked
)

// Reasons of Notary Project signatures that do not count.
const (
	ReasonUntrustedCertificate     Reason = "UntrustedCertificate"     // the chain does not lead to a trust anchor
	ReasonInvalidCertificate       Reason = "InvalidCertificate"       // the chain is broken, or not for signing images
	ReasonUntrustedIdentity        Reason = "UntrustedIdentity"        // the signer's subject is not trusted
	ReasonExpiredCertificate       Reason = "ExpiredCertificate"       // a certificate of the chain has expired
	ReasonFutureCertificate        Reason = "FutureCertificate"        // a certificate of the chain is not valid yet
	ReasonExpiredSignature         Reason = "ExpiredSignature"         // the signature has expired
	ReasonNoTimestamp              Reason = "NoTimestamp"              // a timestamp is required and there is none
	ReasonInvalidTimestamp         Reason = "InvalidTimestamp"         // no trusted authority made the timestamp for this signature
	ReasonTimestampOutOfTime       Reason = "TimestampOutOfTime"       // a certificate was not valid at the timestamp
	ReasonRevokedCertificate       Reason = "RevokedCertificate"       // an authority has revoked a certificate
	ReasonRevocationUnknown        Reason = "RevocationUnknown"        // the revocation status cannot be known
	ReasonTamperedEnvelope         Reason = "TamperedEnvelope"         // content was changed after it was signed or stored
	ReasonUnknownCriticalAttribute Reason = "UnknownCriticalAttribute" // the signer requires an attribute that is not known
	ReasonPluginRequired           Reason = "PluginRequired"           // the signer requires a plugin
)
