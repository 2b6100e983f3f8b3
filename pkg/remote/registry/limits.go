package registry

import (
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Limits on what a registry can make us do. The author of a pod chooses the registry, so each
// may be hostile.
const (
	// maxManifestBytes bounds manifests and referrers lists; signature manifests
	// are a few KiB.
	maxManifestBytes = verify.MaxManifestBytes
	// scannedAtOnce is how many bytes of JSON are scanned without a turn: about ten microseconds.
	scannedAtOnce = 4 << 10
	// maxChallenges and maxChallengeParameters bound the parts of a WWW-Authenticate header that
	// are read.
	maxChallenges, maxChallengeParameters = 16, 16
	// maxAnswersBytes is the memory for manifests, lists and tokens that are being read, of all
	// accounts, and decodedListBytes the memory per byte of a decoded list.
	maxAnswersBytes, decodedListBytes = 64 << 20, 16
	// maxReferrers is the number of referrers that are read from a list.
	maxReferrers = verify.MaxReferrers
	// maxReferrerPages bounds pagination, which the registry controls.
	maxReferrerPages = 8
	// maxDescriptorText is longer than every media type (RFC 6838, section 4.2) and digest.
	maxDescriptorText = 256
	// maxFirstRead bounds the memory that is allocated before content arrives, for evidence of
	// the usual size.
	maxFirstRead = 64 << 10
	// hashedAtOnce is how much is hashed without a turn, or between two steps of one: tens of
	// microseconds.
	hashedAtOnce = 64 << 10
	// maxRedirects is enough for a blob in object storage behind a content delivery network.
	maxRedirects = 3
	// maxDockerConfigBytes is the largest pull secret that is parsed.
	maxDockerConfigBytes = 256 << 10
	// maxDockerConfigHosts is the number of entries of one pull secret, and maxWildLogins the number of a
	// store's entries with wildcards, each of which is compared with a host for up to a microsecond.
	maxDockerConfigHosts, maxWildLogins = 256, 32
	// maxIgnored is the number of ignored entries of a pull secret that are named.
	maxIgnored = 4
	// maxLoginKeyBytes is longer than a host and a path, and maxHostBytes than a host with its port (RFC 1035, section 2.3.4).
	maxLoginKeyBytes, maxHostBytes = 512, 261
	// maxLogins is the number of logins that are tried for one repository.
	maxLogins = 8
	// maxWorked bounds the repositories for which a namespace remembers which login worked.
	maxWorked = 1024

	// maxClientChainBytes bounds the client certificate with its chain, maxClientKeyBytes and
	// maxClientKeyBits its key, which signs once per connection: an RSA key of 4096 bits has 3.2
	// KiB.
	maxClientChainBytes, maxClientKeyBytes, maxClientKeyBits = 64 << 10, 8 << 10, 4096

	// maxTransports bounds the connection pools, one per CA bundle, client certificate and
	// proxy.
	maxTransports = 256
	// maxTokenCaches bounds the token caches, one per tenant, host and credential.
	maxTokenCaches = 16_384
	// maxHosts bounds the states of hosts, and other state per host or account.
	maxHosts = 16_384

	// tokenCacheLifetime bounds the scopes that one token cache can collect. Tokens rarely live
	// longer.
	tokenCacheLifetime = 10 * time.Minute
	// capabilityLifetime is how long the fallback tag is not read in parallel after a registry
	// has shown that it has the referrers API.
	capabilityLifetime = 10 * time.Minute
	// maxQueue is how many requests of one account may wait for one host. An image needs about
	// twenty at a time.
	maxQueue = 4096
	// maxUnread is how much of an unread answer is discarded to keep its connection.
	maxUnread = 4096
	// maxBackOff bounds how long a host's Retry-After is honoured.
	maxBackOff = 30 * time.Second
	// othersFirst is how much longer the refused account waits than the others.
	othersFirst = 50 * time.Millisecond
	// minRate is the lowest rate of requests per second to which refusals reduce a host, for all
	// accounts together. If a registry takes fewer, pauses are enough.
	minRate = 50
	// recoveryPerSecond is how much the rate grows each second. If it grew faster, a registry
	// with a limit of 200 requests per second would refuse some every few seconds.
	recoveryPerSecond = 5
	// maxLate is how much time without requests the rate makes up for, because timers are late.
	maxLate = 20 * time.Millisecond
	// retryPause precedes the one retry of a transient failure.
	retryPause = 50 * time.Millisecond
)

// Defaults of [Options].
const (
	defaultDialTimeout    = 2 * time.Second
	defaultRequestTimeout = 5 * time.Second
	DefaultPerHost        = 64
	DefaultPerSecond      = 500
	DefaultBytesPerSecond = 32 << 20
)
