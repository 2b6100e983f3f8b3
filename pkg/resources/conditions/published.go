package conditions

// published are the fingerprints of the example keys and certificates in our pages and samples.
func published() map[string]bool {
	return map[string]bool{
		"sha256:33f2008d34424dac4fd91f0d0fed62f61a5295243d7a4e9b004e285bd58a3e76": true,
		"sha256:74a2993031fa8134cb1dd197c238225a1d15176c7dd3c2df1b7438d4fc367c8d": true,
		"sha256:fd09075be90eb9263426dfefe74de60abc61dabbeefc8a8659c22c8f55a5d3de": true,
		"sha256:f2d97583d862e7d1aed938e0ea72fb190fb40c500b7e2cfa39d093438d493567": true,
	}
}
