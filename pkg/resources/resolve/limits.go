package resolve

const (
	// maxResources is the limit of resources per namespace, so that one tenant cannot
	// delay the changes of others.
	maxResources = 256
	// maxWeight bounds the memory of a namespace's compiled resources, in bytes, and with it the
	// time to compile them: about half a second at worst. A namespace with 30 Verifiers and as
	// many expressions takes half of it. Cluster resources are compiled once for all namespaces,
	// so they may take more.
	maxWeight        = 8 << 20
	maxClusterWeight = 4 * maxWeight
	// maxAccountWeight bounds the namespaces of a Tenant together, in memory and at startup:
	// they keep about 5 MiB at worst. 100 namespaces may have 50 resources each.
	maxAccountWeight = 4 * maxWeight
	// maxPlanSteps bounds the search for the rules and Verifiers of one image, for which a
	// request waits: 50,000 steps of 20 ns are a millisecond. A common pattern takes 2 steps.
	maxPlanSteps = 50_000
	// maxExceptions is the number of exceptions of a namespace that are in force. A denied image
	// is compared with all of them: maxExceptionSteps of 20 ns are a fifth of a millisecond.
	// maxExceptionWeight bounds their memory, and maxAccountExceptionWeight the memory of those
	// of all namespaces of a Tenant. Admins write the cluster's exceptions.
	maxExceptions             = 64
	maxClusterExceptions      = 1024
	maxExceptionSteps         = 10_000
	maxClusterExceptionSteps  = 50_000
	maxExceptionWeight        = 1 << 20
	maxAccountExceptionWeight = 4 << 20
	maxClusterExceptionWeight = 4 << 20
	// maxUndeclared bounds the memory for namespaces without objects: their names
	// come from requests.
	maxUndeclared = 10_000
)

// The weight of each part of a resource, in bytes: measured, and rounded up. The test of the
// weights compares them with the memory of compiled namespaces.
const (
	resourceWeight      = 6 << 10 // any resource
	patternWeight       = 128     // an image pattern, besides its text
	ruleWeight          = 768     // a rule of a policy
	requireWeight       = 256     // a requirement of a rule
	itemWeight          = 64      // a name, host or other text in a list, besides its text
	placeWeight         = 512     // a mirror or evidence repository, in each namespace
	keylessWeight       = 16 << 10
	keyWeight           = 2 << 10 // a key, in each Verifier that uses it
	keyByteWeight       = 16      // a byte of a key: signatures are tried with each key, and long ones take longest
	anchorWeight        = 8 << 10 // a certificate, in each Verifier that uses it: some are verified at compile time
	trustMaterialWeight = 16      // a byte of keys, certificates or a Sigstore root
	loginWeight         = 32      // a byte of a pull secret: the shortest entries have seven
)
