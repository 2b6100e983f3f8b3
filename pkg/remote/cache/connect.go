package cache

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Connection configures the connection to Redis.
type Connection struct {
	// URL such as rediss://user:password@host:6379/0, in the forms of go-redis: for Redis
	// Cluster with addr parameters, for Sentinel with a master_name and addr parameters. With
	// Sentinel, host, user and password apply to the Sentinels, and the username and password
	// parameters to Redis. rediss means TLS.
	URL string
	// Mode is "standalone" (the default), "sentinel" or "cluster".
	Mode string
	// RootCAs are PEM certificates to trust instead of the system's.
	RootCAs []byte
	// Certificate and Key are the client certificate, in PEM; both or neither.
	Certificate, Key []byte
}

// Connect returns a client for c. It connects on first use, so a Redis that is down is not
// an error. Errors never contain the URL, which may hold a password.
func Connect(c Connection) (redis.UniversalClient, error) {
	unreadable := errors.New("the Redis URL cannot be read; it must look like rediss://user:password@host:6379/0")
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch c.Mode {
	case "", "standalone":
		options, err := redis.ParseURL(c.URL)
		if err != nil {
			return nil, unreadable
		}
		options.MaintNotificationsConfig, options.DisableIdentity = quiet, true
		bound(&options.ContextTimeoutEnabled, &options.MaxRetries, &options.DialerRetries, &options.DialTimeout, &options.ReadTimeout,
			&options.WriteTimeout)
		if options.TLSConfig, err = c.secure(options.TLSConfig); err != nil {
			return nil, err
		}
		return redis.NewClient(options), nil
	case "sentinel":
		options, err := redis.ParseFailoverURL(c.URL)
		if err != nil {
			return nil, unreadable
		}
		// go-redis accepts such a URL, and then panics.
		if options.MasterName == "" {
			return nil, errors.New("the Redis URL for Sentinel names no master: add ?master_name=NAME")
		}
		if err := onlyMasters(options.RouteByLatency || options.RouteRandomly || options.ReplicaOnly); err != nil {
			return nil, err
		}
		options.DisableIdentity = true
		bound(&options.ContextTimeoutEnabled, &options.MaxRetries, &options.DialerRetries, &options.DialTimeout, &options.ReadTimeout,
			&options.WriteTimeout)
		if options.TLSConfig, err = c.secure(options.TLSConfig); err != nil {
			return nil, err
		}
		return redis.NewFailoverClient(options), nil
	case "cluster":
		options, err := redis.ParseClusterURL(c.URL)
		if err != nil {
			return nil, unreadable
		}
		if err := onlyMasters(options.RouteByLatency || options.RouteRandomly || options.ReadOnly); err != nil {
			return nil, err
		}
		options.MaintNotificationsConfig, options.DisableIdentity = quiet, true
		// Routing policies only matter to commands without a key. They would send COMMAND before a
		// write, with its own timeout, and before every write if the user may not send it.
		options.DisableRoutingPolicies = true
		bound(&options.ContextTimeoutEnabled, &options.MaxRetries, &options.DialerRetries, &options.DialTimeout, &options.ReadTimeout,
			&options.WriteTimeout)
		if options.TLSConfig, err = c.secure(options.TLSConfig); err != nil {
			return nil, err
		}
		return redis.NewClusterClient(options), nil
	}
	return nil, fmt.Errorf("the Redis mode is %q, it must be standalone, sentinel or cluster", c.Mode)
}

// onlyMasters rejects reading from replicas: they lag behind, and their failures would
// count against their master.
func onlyMasters(elsewhere bool) error {
	if elsewhere {
		return errors.New("the Redis URL cannot have route_by_latency, route_randomly, read_only or replica_only: verdicts are read from and " +
			"written to masters")
	}
	return nil
}

// bound sets the options that keep a slow Redis within its budget. Each mode has its own type
// for them.
func bound(heedContext *bool, retries, dials *int, dial, read, write *time.Duration) {
	*heedContext, *retries = true, -1 // -1 means none
	// A second dial would come after a read's whole budget: a server that refuses would
	// use it up, and a cluster's next address would never be tried.
	*dials = 1
	*dial, *read, *write = dialTimeout, ioTimeout, ioTimeout
}

// secure adds CAs and a client certificate to a TLS configuration; nil
// means no TLS.
func (c Connection) secure(config *tls.Config) (*tls.Config, error) {
	switch {
	case config == nil && len(c.RootCAs)+len(c.Certificate)+len(c.Key) > 0:
		return nil, errors.New("a CA or a certificate for Redis is given, but its URL does not begin with rediss://")
	case config == nil:
		return nil, nil
	}
	config.MinVersion = tls.VersionTLS12
	if len(c.Certificate)+len(c.Key) > 0 {
		certificate, err := tls.X509KeyPair(c.Certificate, c.Key)
		if err != nil {
			return nil, errors.New("the client certificate for Redis and its key cannot be used together, or are not PEM")
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	if len(c.RootCAs) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(c.RootCAs) {
			return nil, errors.New("there is no certificate in the CA for Redis")
		}
	}
	return config, nil
}
