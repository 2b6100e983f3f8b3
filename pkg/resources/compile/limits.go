package compile

import "time"

// DefaultMaxException is how long after its creation an exception may end,
// DefaultMaxDelegation the same for a delegation, and DefaultMaxBreakGlass how long
// break-glass may last, unless flags say otherwise: three months to replace an image, a year
// until somebody asks whether a team still needs exceptions, and a day to repair an outage.
const (
	DefaultMaxException  = 90 * 24 * time.Hour
	DefaultMaxDelegation = 365 * 24 * time.Hour
	DefaultMaxBreakGlass = 24 * time.Hour
)

const (
	// maxResources is the limit of resources per namespace, so that one tenant cannot
	// delay the changes of others.
	maxResources = 256
	// maxWeight bounds what the resources of a namespace keep in memory once they are
	// compiled, in bytes, and with it the time to compile them: about half a second at
	// worst. A namespace with 30 Verifiers and as many expressions takes half of it.
	// Cluster resources are compiled once for all namespaces, so they may take more.
	maxWeight        = 8 << 20
	maxClusterWeight = 4 * maxWeight
	// maxAccountWeight bounds all namespaces of a Tenant together, in memory and at a start:
	// they keep about 5 MiB at worst. 100 namespaces may have 50 resources each.
	maxAccountWeight = 4 * maxWeight
	// maxPlanSteps bounds the search for the rules and Verifiers of one image, which a
	// request waits for: 50,000 steps of 20 ns are a millisecond. A common pattern takes
	// 2 steps.
	maxPlanSteps = 50_000

	// maxExceptions is how many exceptions of a namespace are in force, and maxExceptionImages
	// how many images each may have. All of them are compared with an image that is denied:
	// maxExceptionSteps of 20 ns are a fifth of a millisecond. maxExceptionWeight bounds what
	// they keep in memory, and maxAccountExceptionWeight what those of all namespaces of a
	// Tenant do. The cluster's are written by admins.
	maxExceptions             = 64
	maxClusterExceptions      = 1024
	maxExceptionImages        = 64
	maxExceptionSteps         = 10_000
	maxClusterExceptionSteps  = 50_000
	maxExceptionWeight        = 1 << 20
	maxAccountExceptionWeight = 4 << 20
	maxClusterExceptionWeight = 4 << 20
	// maxDelegationSteps bounds how long the images of an Exception are compared with those that
	// are delegated, to say in its status that it is for none of them: 64 Exceptions in each of
	// 256 namespaces take a third of a second at worst. Past it the status does not say so.
	maxDelegationSteps = 1_000
	// maxExceptionReason and maxExceptionTicket are as in the CRDs, for resources that
	// come from files.
	maxExceptionReason = 512
	maxExceptionTicket = 256

	// maxPlaces is the number of mirrors of a Store, and of its evidence repositories. Each
	// is asked for every image that is not cached.
	maxPlaces = 4
	// maxAuthorityBytes is the size of all CA bundles of one store.
	maxAuthorityBytes = 512 << 10
	// maxProxyLogin is the size of a proxy's username and password.
	maxProxyLogin = 1 << 10
	// ecrAccountDigits is how long the account is in a host of ECR.
	ecrAccountDigits = 12
	// maxReferencedBytes is the maximum size of a key, certificate bundle or pull
	// secret. Kubernetes allows 1 MiB for the whole object.
	maxReferencedBytes = 256 << 10
	// maxShownTrust is how large a ClusterTrustStore may be that people without permissions to
	// it are shown.
	maxShownTrust = 96 << 10
	// maxVisibleHosts bounds the registries about which a namespace is shown what ClusterStores
	// say: its resources may name any number.
	maxVisibleHosts = 1000
	// failingFor is how long fetching may fail before the condition ExpiresSoon says so. The
	// public-good root is asked for once an hour, so this is one fetch that was missed.
	failingFor = 2 * time.Hour
	// maxUndeclared bounds the memory for namespaces without objects: their names
	// come from requests.
	maxUndeclared = 10_000
	// maxFingerprints is the number of fingerprints in a status.
	maxFingerprints = 16
	// maxNames is the number of resource names in a message.
	maxNames = 8
	// maxMessage is the length of a message in bytes. The API server accepts 32 KiB in
	// a condition; nobody reads that much.
	maxMessage = 2 << 10
)

// What a part of a resource weighs, in bytes: measured, and rounded up. The test of the
// weights compares them with the memory that compiled namespaces keep.
const (
	resourceWeight      = 6 << 10 // any resource
	patternWeight       = 128     // an image pattern, besides its text
	ruleWeight          = 768     // a rule of a policy
	requireWeight       = 256     // a requirement of a rule
	itemWeight          = 64      // a name, host or other text in a list, besides its text
	placeWeight         = 512     // a mirror or evidence repository, in each namespace
	keylessWeight       = 16 << 10
	keyWeight           = 2 << 10 // a key, in each Verifier that uses it
	keyByteWeight       = 16      // a byte of it: signatures are tried with each key, and long ones take longest
	anchorWeight        = 8 << 10 // a certificate, in each Verifier that uses it: some are verified when it is compiled
	trustMaterialWeight = 16      // a byte of keys, certificates or a Sigstore root
	loginWeight         = 8       // a byte of a pull secret
)
