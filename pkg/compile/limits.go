package compile

const (
	// maxResources is the limit of resources per namespace, so that one tenant cannot
	// delay the changes of others.
	maxResources = 256
	// maxMaterialBytes is the maximum size of a key, certificate bundle or pull
	// secret. Kubernetes allows 1 MiB for the whole object.
	maxMaterialBytes = 256 << 10
	// maxUndeclared bounds the memory for namespaces without objects: their names
	// come from requests.
	maxUndeclared = 10_000
	// maxFingerprints is the number of fingerprints in a status.
	maxFingerprints = 16
	// maxNames is the number of resource names in a message.
	maxNames = 8
)
