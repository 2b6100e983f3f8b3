package compile

import (
	"time"
)

const (
	// MaxExceptionImages is how many images an exception may have.
	MaxExceptionImages = 64
	// maxDelegationSteps bounds how long the images of an Exception are compared with those that
	// are delegated, to say in its status that it is for none of them: 64 Exceptions in each of
	// 256 namespaces take a third of a second at worst. Past it the status does not say so.
	maxDelegationSteps = 1_000
	// maxOverrideSteps bounds how long the images of an exception are compared with the rules of
	// mandatory policies, to say in its status which of them hold. Past it the status names them all.
	maxOverrideSteps = 1_000
	// maxExceptionReason and maxExceptionTicket are as in the CRDs, for resources that
	// come from files.
	maxExceptionReason = 512
	maxExceptionTicket = 256
	// maxContact is how much of a contact denials show, in bytes.
	maxContact = 256
	// maxPlaces is the number of mirrors of a Store, and of its evidence repositories. Each
	// is asked for every image that is not cached.
	maxPlaces = 4
	// maxAuthorityBytes is the size of all CA bundles of one store.
	maxAuthorityBytes = 512 << 10
	// maxIgnored is how many ignored entries of its pull secrets a Store names.
	maxIgnored = 8
	// maxProxyLogin is the size of a proxy's username and password.
	maxProxyLogin = 1 << 10
	// ecrAccountDigits is how long the account is in a host of ECR.
	ecrAccountDigits = 12
	// maxReferencedBytes is the maximum size of a key, certificate bundle or pull
	// secret. Kubernetes allows 1 MiB for the whole object.
	maxReferencedBytes = 256 << 10
	// failingFor is how long fetching may fail before the condition ExpiresSoon says so. The
	// public-good root is asked for once an hour, so this is one fetch that was missed.
	failingFor = 2 * time.Hour
	// maxFingerprints is the number of fingerprints in a status.
	maxFingerprints = 16
	// maxNames is the number of resource names in a message.
	maxNames = 8
	// maxMessage is the length of a message in bytes. The API server accepts 32 KiB in
	// a condition; nobody reads that much.
	maxMessage = 2 << 10
)
