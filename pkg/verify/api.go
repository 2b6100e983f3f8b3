// Package verify decides whether one image may be used in one namespace. Its
// Engine resolves the image, lists and checks the evidence through interfaces
// that this package declares, and lets package policy decide. Whatever is not
// a proven pass is a deny or Undecided; nothing here reads Kubernetes objects,
// keeps global state or writes logs: results carry the facts.
package verify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// Namespace is a tenant: the name of a Kubernetes namespace, or Cluster. It is
// always an argument of its own, never part of another string.
type Namespace string

// Cluster stands for "no namespace": cluster resources only.
const Cluster Namespace = ""

var dns1123Label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ParseNamespace checks that s is an RFC 1123 label of at most 63 characters,
// which is what Kubernetes allows for a namespace.
func ParseNamespace(s string) (Namespace, error) {
	if !dns1123Label.MatchString(s) {
		return "", fmt.Errorf("namespace %.80q is not a DNS-1123 label", s)
	}
	return Namespace(s), nil
}

// Label returns the name of n where one word is needed, in keys, metrics and tables:
// "-" for [Cluster], which no Kubernetes namespace can be called.
func (n Namespace) Label() string {
	if n == Cluster {
		return "-"
	}
	return string(n)
}

// Describe returns n as part of a sentence.
func (n Namespace) Describe() string {
	if n == Cluster {
		return "the cluster"
	}
	return "namespace " + string(n)
}

// Account is who pays for work: it is the key of every share of capacity, where a
// [Namespace] is the key of everything that must stay apart. Today each namespace is
// its own account; namespaces of one tenant will share theirs. The empty Account is
// never a key: whoever finds it uses [Namespace.Account] instead.
type Account string

// Account returns the account of a namespace that shares none. The kind in front of
// the name keeps it apart from other kinds of accounts.
func (n Namespace) Account() Account { return Account("namespace/" + n.Label()) }

// Registry is the one way to a registry, with one tenant's credentials. Every
// method verifies what it returns against the digest that was asked for, reads
// no more than a limit, and returns a [PermanentError] when asking again would
// give the same answer; every other error is transient.
type Registry interface {
	// Resolve returns the descriptor (digest, size, media type) of the manifest
	// that ref names; a digest in ref wins over its tag.
	Resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error)

	// Referrers returns the descriptors of the manifests that may hold evidence
	// for subject (which has a digest): the cosign ".sig" tag first, then OCI
	// referrers in the registry's order, each digest once. A descriptor may embed
	// its content in Data. It may return some descriptors and an error together:
	// then there may be more evidence than listed.
	Referrers(ctx context.Context, subject image.Reference) ([]ocispec.Descriptor, error)

	// Fetch returns the content of desc in the repository of repo. It fails with
	// a [PermanentError] if desc.Size is over limit, in bytes.
	Fetch(ctx context.Context, repo image.Reference, desc ocispec.Descriptor, limit int64) ([]byte, error)
}

// Fetch reads a blob of the subject's repository, at most limit bytes, verified
// against desc; each digest is read once per image, whoever asks for it.
type Fetch func(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)

// Subject is the image that evidence is about.
type Subject struct {
	Reference  image.Reference    // with a digest
	Descriptor ocispec.Descriptor // of the manifest or index that the digest names
}

// Signature is one candidate signature: one layer of one manifest that refers
// to the subject. Nothing of it has been verified but the digests.
type Signature struct {
	Descriptor ocispec.Descriptor // of the manifest, as the registry listed it
	Manifest   ocispec.Manifest
	Layer      ocispec.Descriptor // one of Manifest.Layers
}

// Checker checks one kind of signature for one verifier. It is safe for
// concurrent use and does no I/O but through fetch.
type Checker interface {
	// Accepts reports whether s is of the kind that this checker understands. It
	// decides from the manifest and layer media types alone.
	Accepts(s Signature) bool

	// Check says whether s is a valid signature of subject. It never fails: bad
	// evidence is an Invalid finding, unreachable evidence an Unknown one. The
	// caller fills in which verifier and which manifest the finding is about; the
	// checker gives Result, Signer, Message, Reason, Remediation, Extensions.
	// now is the time to judge certificates by.
	Check(ctx context.Context, subject Subject, s Signature, fetch Fetch, now time.Time) policy.Finding
}

// PermanentError marks a failure that asking again would repeat: the image is
// not there, access is refused, the content is not what its digest says, a
// limit is exceeded. Its text is shown to team devs.
type PermanentError struct {
	Reason policy.Reason
	Err    error
}

// Error returns the text of the cause.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent wraps err as a [PermanentError] with a reason word.
func Permanent(reason policy.Reason, err error) error {
	return &PermanentError{Reason: reason, Err: err}
}

// IsPermanent reports whether err is, or wraps, a [PermanentError].
func IsPermanent(err error) bool {
	var permanent *PermanentError
	return errors.As(err, &permanent)
}

// Key names one cached value. Every field is part of its identity; Namespace
// and UID keep tenants apart, and a namespace apart from a later one of the
// same name.
type Key struct {
	Namespace  Namespace
	Kind       Kind
	UID        string
	Generation string // of the configuration that the value was made with
	Image      string // normalised reference
}

// String returns "landwaiter:<namespace>:<kind>:<hash>", so that access rules
// on the prefix "landwaiter:<namespace>:" fence a tenant in. The namespace of
// cluster scope is "-", which no Kubernetes namespace can be called. The hash
// covers every field with its length, so that no two keys run together.
func (k Key) String() string {
	hash := sha256.New()
	for _, part := range []string{string(k.Namespace), string(k.Kind), k.UID, k.Generation, k.Image} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return "landwaiter:" + k.Namespace.Label() + ":" + string(k.Kind) + ":" + hex.EncodeToString(hash.Sum(nil))
}

// Kind is the sort of a cached value.
type Kind string

const (
	// KindVerdict is the verdict on a digest; Key.Image is host/repository@digest.
	KindVerdict Kind = "verdict"
	// KindTag is the digest of a tag; Key.Image is host/repository:tag.
	KindTag Kind = "tag"
)

// Entry is one cached value: a verdict with its findings, or the descriptor of
// a tag. It is shared between requests and never changed.
type Entry struct {
	Descriptor ocispec.Descriptor
	Verdict    policy.Verdict
	Findings   []policy.Finding
}

// Cache keeps entries for a time. Get returns false for whatever it is not sure
// of. Both must be quick, and never fail: a cache that is down is empty.
type Cache interface {
	Get(ctx context.Context, key Key) (Entry, bool)
	// Recall is Get for what this process has in memory: it waits for nothing.
	Recall(key Key) (Entry, bool)
	Put(ctx context.Context, key Key, entry Entry, ttl time.Duration)
}

// Result is the answer for one image, and the facts behind it.
type Result struct {
	Namespace Namespace
	Reference image.Reference
	Digest    digest.Digest // empty if it was not resolved
	Verdict   policy.Verdict
	Findings  []policy.Finding
	Cached    bool    // the verdict was already known
	Stages    []Stage // in order of their end; empty for a cached verdict
	// Overloaded says that there was no place for the work, so that it was not begun.
	Overloaded bool
}

// Stage is how long one step of a verification took.
type Stage struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration"`
	Detail   string        `json:"detail,omitempty"`
}
