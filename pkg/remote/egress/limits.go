package egress

import "time"

const (
	// defaultTimeout bounds one request with its body.
	defaultTimeout = 20 * time.Second
	// defaultDialTimeout bounds connecting, and the TLS handshake.
	defaultDialTimeout = 5 * time.Second
	// defaultMaxBytes is the size of one answer's body; keys, certificates and roots are much
	// smaller.
	defaultMaxBytes = 1 << 20
	// maxResponseHeaderBytes bounds the header of one answer.
	maxResponseHeaderBytes = 64 << 10
	// maxAddresses is the number of addresses of one name that are tried, so that a name server
	// cannot make us scan ports.
	maxAddresses = 8
	// maxHostBytes is the longest host name (RFC 1035 section 2.3.4).
	maxHostBytes = 253
	// maxLabelBytes is the longest label of a host name.
	maxLabelBytes = 63
	// keepAlive is the interval of TCP probes.
	keepAlive = 30 * time.Second
	// idleTimeout is how long an idle connection is kept.
	idleTimeout = 90 * time.Second
	// maxIdleConns bounds the idle connections of one transport.
	maxIdleConns = 256
)
