package compile

import (
	"time"
)

const (
	// maxDelegationSteps bounds the comparison of an Exception's images with the delegated ones,
	// whose result is in its status: 64 Exceptions in each of 256 namespaces take a third of a
	// second at worst. Beyond it, the status does not say that no image is delegated.
	maxDelegationSteps = 1_000
	// maxOverrideSteps bounds the comparison of an exception's images with the rules of mandatory
	// policies, for its status, which names the policies that still apply. Beyond it, the status
	// names them all.
	maxOverrideSteps = 1_000
	// maxExceptionReason and maxExceptionTicket match the CRDs, for resources from files.
	maxExceptionReason = 512
	maxExceptionTicket = 256
	// maxContact is the length of a contact in denials, in bytes.
	maxContact = 256
	// maxAuthorityBytes is the size of all CA bundles of one store.
	maxAuthorityBytes = 512 << 10
	// maxIgnored is the number of ignored pull secret entries that a Store names.
	maxIgnored = 8
	// maxProxyLogin is the size of a proxy's username and password.
	maxProxyLogin = 1 << 10
	// ecrAccountDigits is the length of the account in an ECR host.
	ecrAccountDigits = 12
	// maxReferencedBytes is the maximum size of a key, certificate bundle or pull
	// secret. Kubernetes allows 1 MiB for the whole object.
	maxReferencedBytes = 256 << 10
	// failingFor is how long fetching may fail before the condition ExpiresSoon reports it. The
	// public-good root is fetched once an hour, so this is one missed fetch.
	failingFor = 2 * time.Hour
	// maxFingerprints is the number of fingerprints in a status.
	maxFingerprints = 16
	// maxNames is the number of resource names in a message.
	maxNames = 8
	// maxMessage is the length of a message in bytes. The API server accepts 32 KiB in
	// a condition; nobody reads that much.
	maxMessage = 2 << 10
)
