package registry

import (
	"time"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Limits on what a registry can make us do. Registries are chosen by whoever
// names an image, so every one of them may be hostile.
const (
	// maxManifestBytes bounds manifests and referrers lists; signature manifests
	// are a few KiB.
	maxManifestBytes = verify.MaxManifestBytes
	// maxReferrers is how many referrers are taken from a list.
	maxReferrers = verify.MaxReferrers
	// maxReferrerPages bounds pagination, which the registry drives.
	maxReferrerPages = 8
	// maxRedirects is enough for a blob that lives in object storage behind a
	// content network.
	maxRedirects = 3
	// maxResponseHeaderBytes bounds the header of one answer.
	maxResponseHeaderBytes = 64 << 10
	// maxDockerConfigBytes is the size of a pull secret that is parsed.
	maxDockerConfigBytes = 256 << 10
	// maxDockerConfigHosts is the number of hosts in one pull secret.
	maxDockerConfigHosts = 256

	// maxTransports bounds the pools of connections, one for each CA bundle.
	maxTransports = 256
	// maxTokenCaches bounds the caches of tokens, one for each tenant, host and
	// credential.
	maxTokenCaches = 16_384
	// maxHosts bounds what is remembered about hosts.
	maxHosts = 16_384

	// tokenCacheLifetime bounds how many scopes one token cache can gather; tokens
	// rarely live longer.
	tokenCacheLifetime = 10 * time.Minute
	// capabilityLifetime is how long a host is taken to have, or not to have, the
	// referrers API.
	capabilityLifetime = 10 * time.Minute
	// maxInLine is how many requests of one namespace may wait for one host; an image
	// has some twenty at a time.
	maxInLine = 4096
	// maxBackOff bounds how long a host's Retry-After is honoured for.
	maxBackOff = 30 * time.Second
	// retryPause is waited before the one retry of a transient failure.
	retryPause = 50 * time.Millisecond
)

// Defaults of [Options].
const (
	defaultDialTimeout    = 2 * time.Second
	defaultRequestTimeout = 5 * time.Second
	DefaultPerHost        = 64
	DefaultPerSecond      = 500
)
