package registry

import (
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Limits on what a registry can make us do. Whoever names an image chooses the registry,
// so each may be hostile.
const (
	// maxManifestBytes bounds manifests and referrers lists; signature manifests
	// are a few KiB.
	maxManifestBytes = verify.MaxManifestBytes
	// scannedAtOnce is how many bytes of JSON are looked at without a turn: some ten microseconds.
	scannedAtOnce = 4 << 10
	// maxChallenges and maxChallengeParameters bound what is read of a WWW-Authenticate header.
	maxChallenges, maxChallengeParameters = 16, 16
	// maxAnswersBytes is the memory for manifests, lists and tokens that are being read, of
	// all accounts, and decodedListBytes how much a byte of a list takes once it is decoded.
	maxAnswersBytes, decodedListBytes = 64 << 20, 16
	// maxReferrers is how many referrers are taken from a list.
	maxReferrers = verify.MaxReferrers
	// maxReferrerPages bounds pagination, which the registry drives.
	maxReferrerPages = 8
	// maxDescriptorText is longer than every media type (RFC 6838, section 4.2) and digest.
	maxDescriptorText = 256
	// maxFirstRead bounds what is allocated before content comes, for evidence of the
	// usual size.
	maxFirstRead = 64 << 10
	// hashedAtOnce is how much is hashed without a turn, or between two steps of one: tens of
	// microseconds.
	hashedAtOnce = 64 << 10
	// maxRedirects is enough for a blob that lives in object storage behind a
	// content network.
	maxRedirects = 3
	// maxDockerConfigBytes is the size of a pull secret that is parsed.
	maxDockerConfigBytes = 256 << 10
	// maxDockerConfigHosts is the number of entries of one pull secret, and maxWildLogins of those of a store
	// with wildcards, each of which is compared with a host for up to a microsecond.
	maxDockerConfigHosts, maxWildLogins = 256, 32
	// maxIgnored is how many ignored entries of a pull secret are named.
	maxIgnored = 4
	// maxLoginKeyBytes is longer than a host and a path, and maxHostBytes than a host with its port (RFC 1035, section 2.3.4).
	maxLoginKeyBytes, maxHostBytes = 512, 261
	// maxLogins is how many logins are tried for one repository.
	maxLogins = 8
	// maxWorked bounds the repositories for which a namespace remembers which login worked.
	maxWorked = 1024

	// maxClientChainBytes bounds the client certificate with its chain, maxClientKeyBytes
	// and maxClientKeyBits its key, which signs once a connection: an RSA key of 4096 bits
	// has 3.2 KiB.
	maxClientChainBytes, maxClientKeyBytes, maxClientKeyBits = 64 << 10, 8 << 10, 4096

	// maxTransports bounds the connection pools, one per CA bundle, client certificate and
	// proxy.
	maxTransports = 256
	// maxTokenCaches bounds the token caches, one per tenant, host and credential.
	maxTokenCaches = 16_384
	// maxHosts bounds the states of hosts, and what else is kept per host or account.
	maxHosts = 16_384

	// tokenCacheLifetime bounds how many scopes one token cache can collect. Tokens
	// rarely live longer.
	tokenCacheLifetime = 10 * time.Minute
	// capabilityLifetime is how long the fallback tag is not read in parallel after a
	// registry has shown that it has the referrers API.
	capabilityLifetime = 10 * time.Minute
	// maxQueue is how many requests of one account may wait for one host. An image needs
	// some twenty at a time.
	maxQueue = 4096
	// maxUnread is how much of an answer is read to keep its connection.
	maxUnread = 4096
	// maxBackOff bounds how long a host's Retry-After is honoured.
	maxBackOff = 30 * time.Second
	// othersFirst is how much longer the account that was refused waits than the others.
	othersFirst = 50 * time.Millisecond
	// minRate is the lowest rate of requests a second that refusals lead to at a host, for all
	// accounts together. If a registry takes fewer, pauses are enough.
	minRate = 50
	// recoveryPerSecond is how much the rate grows each second. Faster, and a registry that
	// takes 200 requests a second would refuse some every few seconds.
	recoveryPerSecond = 5
	// maxLate is how much time without requests the rate makes up for, as timers are late.
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
