// Package tuf provides a TUF repository for tests (The Update Framework specification
// v1.0), of the shape that Sigstore's and GitHub's have: consistent snapshots, several
// offline keys for root and targets, one online key for the rest, and an initial root that
// expired long ago and leads to the current one.
package tuf

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/stretchr/testify/require"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Target is the name of the only target.
const Target = "trusted_root.json"

// offlineKeys sign root and targets; threshold of them must.
const (
	offlineKeys = 4
	threshold   = 3
)

// Repository is a TUF repository with one target. It is safe for concurrent use.
type Repository struct {
	offline []signature.Signer
	online  signature.Signer

	mu      sync.Mutex
	files   map[string][]byte
	served  map[string]int
	version int64
	down    bool
}

// New makes a repository without a target. Its root has two versions: the first expired a
// year ago, the second is in force.
func New() (*Repository, error) {
	r := &Repository{files: map[string][]byte{}, served: map[string]int{}}
	keys := map[string][]*metadata.Key{}
	for range offlineKeys {
		signer, key, err := newSigner()
		if err != nil {
			return nil, err
		}
		r.offline = append(r.offline, signer)
		keys[metadata.ROOT], keys[metadata.TARGETS] = append(keys[metadata.ROOT], key), append(keys[metadata.TARGETS], key)
	}
	online, key, err := newSigner()
	if err != nil {
		return nil, err
	}
	r.online, keys[metadata.SNAPSHOT], keys[metadata.TIMESTAMP] = online, []*metadata.Key{key}, []*metadata.Key{key}
	for version, expires := range map[int64]time.Time{1: time.Now().AddDate(-1, 0, 0), 2: time.Now().AddDate(0, 8, 0)} {
		made := metadata.Root(expires)
		made.Signed.Version, made.Signed.ConsistentSnapshot = version, true
		for role, each := range keys {
			for _, key := range each {
				if err := made.Signed.AddKey(key, role); err != nil {
					return nil, fmt.Errorf("add a key: %w", err)
				}
			}
		}
		made.Signed.Roles[metadata.ROOT].Threshold, made.Signed.Roles[metadata.TARGETS].Threshold = threshold, threshold
		text, err := signed(made, r.offline[:threshold]...)
		if err != nil {
			return nil, err
		}
		r.files[fmt.Sprintf("/%d.root.json", version)] = text
	}
	return r, nil
}

func newSigner() (signature.Signer, *metadata.Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	key, err := metadata.KeyFromPublicKey(private.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	signer, err := signature.LoadECDSASigner(private, crypto.SHA256)
	if err != nil {
		return nil, nil, fmt.Errorf("use a key: %w", err)
	}
	return signer, key, nil
}

func signed[T metadata.Roles](made *metadata.Metadata[T], by ...signature.Signer) ([]byte, error) {
	for _, signer := range by {
		if _, err := made.Sign(signer); err != nil {
			return nil, fmt.Errorf("sign metadata: %w", err)
		}
	}
	text, err := made.ToBytes(true)
	if err != nil {
		return nil, fmt.Errorf("write metadata: %w", err)
	}
	return text, nil
}

// Root is the initial root.json, from which a client starts.
func (r *Repository) Root() string { return string(r.files["/1.root.json"]) }

// Publish replaces the target. Only the new version is served.
func (r *Repository) Publish(content []byte) error { return r.publish(content, r.offline[:threshold]) }

// PublishWith is Publish with the signatures of n offline keys, which may be too few.
func (r *Repository) PublishWith(n int, content []byte) error {
	return r.publish(content, r.offline[:n])
}

func (r *Repository) publish(content []byte, offline []signature.Signer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	expires := time.Now().AddDate(0, 0, 7)
	file, err := metadata.TargetFile().FromBytes(Target, content, "sha256", "sha512")
	if err != nil {
		return fmt.Errorf("describe the target: %w", err)
	}
	targets := metadata.Targets(expires)
	targets.Signed.Version, targets.Signed.Targets[Target] = r.version, file
	snapshot, timestamp := metadata.Snapshot(expires), metadata.Timestamp(expires)
	snapshot.Signed.Version, snapshot.Signed.Meta[metadata.TARGETS+".json"] = r.version, metadata.MetaFile(r.version)
	timestamp.Signed.Version, timestamp.Signed.Meta[metadata.SNAPSHOT+".json"] = r.version, metadata.MetaFile(r.version)
	files := map[string][]byte{"/targets/" + file.Hashes["sha256"].String() + "." + Target: content}
	for name, sign := range map[string]func() ([]byte, error){
		fmt.Sprintf("/%d.targets.json", r.version):  func() ([]byte, error) { return signed(targets, offline...) },
		fmt.Sprintf("/%d.snapshot.json", r.version): func() ([]byte, error) { return signed(snapshot, r.online) },
		"/timestamp.json":                           func() ([]byte, error) { return signed(timestamp, r.online) },
	} {
		if files[name], err = sign(); err != nil {
			return err
		}
	}
	for _, root := range []string{"/1.root.json", "/2.root.json"} {
		files[root] = r.files[root]
	}
	r.files = files
	return nil
}

// Break makes the repository answer everything with an error, or as before.
func (r *Repository) Break(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// Served is how often a file was served, such as /1.targets.json.
func (r *Repository) Served(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served[path]
}

// ServeHTTP serves the repository.
func (r *Repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	text, ok := r.files[request.URL.Path]
	down := r.down
	if ok && !down {
		r.served[request.URL.Path]++
	}
	r.mu.Unlock()
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case !ok:
		http.NotFound(w, request)
	default:
		_, _ = w.Write(text)
	}
}

// Serve serves handler with TLS on this machine until the end of the test. It returns the
// address and the certificate to trust.
func Serve(t testing.TB, handler http.Handler) (address, authority string) {
	t.Helper()
	ca, err := fixture.NewAuthority("TUF mirror")
	require.NoError(t, err)
	certificate, err := ca.IssueServer("127.0.0.1")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate.TLS}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, string(ca.CertificatePEM)
}
