package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/spf13/pflag"
)

// KeyFileUsage is the text of --redis-key-file.
const KeyFileUsage = "file with the keys that seal entries in Redis: one per line, 32 bytes in base64; the first key seals new entries"

// Redis are the flags of the cache in Redis that replicas share.
type Redis struct {
	url, urlFile, mode, keyFile, caFile string
	certFile, certKeyFile               string
	// first is the connection that Options returned.
	first cache.Connection
}

// Register declares the flags.
func (r *Redis) Register(f *pflag.FlagSet) {
	r.RegisterConnection(f)
	f.StringVar(&r.keyFile, "redis-key-file", "", KeyFileUsage)
}

// RegisterConnection declares the flags of the connection to Redis.
func (r *Redis) RegisterConnection(f *pflag.FlagSet) {
	f.StringVar(&r.url, "redis-url", "", "URL of the Redis in which replicas share verdicts and evidence, such as "+
		"rediss://host:6379/0 (empty: none)")
	f.StringVar(&r.urlFile, "redis-url-file", "", "file with the URL of Redis; use it for a URL with a password")
	RegisterNamed(f, "redis-option", "connection option of Redis: mode, ca, client-cert or client-key (repeatable)", func(v *pflag.FlagSet) {
		v.StringVar(&r.mode, "mode", standalone, "standalone, sentinel or cluster")
		v.StringVar(&r.caFile, "ca", "", "file with CA certificates (PEM) for Redis, instead of the system's certificates")
		v.StringVar(&r.certFile, "client-cert", "", "file with a client certificate (PEM) for Redis")
		v.StringVar(&r.certKeyFile, "client-key", "", "file with the key of the client certificate (PEM)")
	})
}

// standalone is the mode of one Redis.
const standalone = "standalone"

// maxSettingBytes bounds a file that a flag names.
const maxSettingBytes = 1 << 20

// Options returns the options for reaching Redis and sealing entries, nil without Redis.
func (r *Redis) Options() (*service.Redis, error) {
	if r.url == "" && r.urlFile == "" {
		if r.keyFile+r.caFile+r.certFile+r.certKeyFile != "" || r.mode != "" && r.mode != standalone {
			return nil, errors.New("--redis-key-file and --redis-option require --redis-url or --redis-url-file")
		}
		return nil, nil
	}
	connection, err := r.Connection()
	if err != nil {
		return nil, err
	}
	if r.keyFile == "" {
		return nil,
			errors.New("Redis requires --redis-key-file: without a key, anyone who can write to Redis could allow images; create one with: " +
				"openssl rand -base64 32")
	}
	keys, err := ReadSetting("--redis-key-file", r.keyFile)
	if err != nil {
		return nil, err
	}
	r.first = connection
	return &service.Redis{Connection: connection, Keys: keys}, nil
}

// Connection returns the connection that the flags describe.
func (r *Redis) Connection() (cache.Connection, error) {
	switch {
	case r.url == "" && r.urlFile == "":
		return cache.Connection{}, errors.New("no Redis is given: use --redis-url or --redis-url-file")
	case r.url != "" && r.urlFile != "":
		return cache.Connection{}, errors.New("--redis-url and --redis-url-file cannot be used together")
	case (r.certFile == "") != (r.certKeyFile == ""):
		return cache.Connection{}, errors.New("--redis-option client-cert and client-key must be used together")
	}
	authorities, err1 := ReadSetting("--redis-option ca", r.caFile)
	certificate, err2 := ReadSetting("--redis-option client-cert", r.certFile)
	key, err3 := ReadSetting("--redis-option client-key", r.certKeyFile)
	url, err4 := ReadSetting("--redis-url-file", r.urlFile)
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return cache.Connection{}, err
	}
	return cache.Connection{URL: cmp.Or(r.url, strings.TrimSpace(string(url))), Mode: r.mode, RootCAs: authorities,
		Certificate: certificate, Key: key}, nil
}

// followEvery is how often files are read.
const followEvery = 10 * time.Second

// Follow reads the files of the connection regularly until ctx ends. It calls use when they have changed, or failed
// with why they cannot be read. It does not repeat a call for the same reason.
func (r *Redis) Follow(ctx context.Context, every time.Duration, use func(cache.Connection) error, failed func(error)) {
	if r.urlFile+r.caFile+r.certFile+r.certKeyFile == "" {
		return
	}
	said, was := "", r.first
	var err error
	for tick := time.NewTicker(cmp.Or(every, followEvery)); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		var now cache.Connection
		if now, err = r.Connection(); err == nil && !reflect.DeepEqual(now, was) {
			if err = use(now); err == nil {
				was = now
			}
		}
		if err != nil && err.Error() != said {
			failed(err)
		}
		if said = ""; err != nil {
			said = err.Error()
		}
	}
}

// ReadSetting returns the content of the file that a flag names, if any: 1 MiB at most.
func ReadSetting(flag, name string) (text []byte, err error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name) //nolint:gosec // the path is an operator's setting
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	text, err = io.ReadAll(io.LimitReader(file, maxSettingBytes+1))
	if err == nil && len(text) > maxSettingBytes {
		err = fmt.Errorf("it is larger than %d bytes", maxSettingBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, name, err)
	}
	return text, nil
}
