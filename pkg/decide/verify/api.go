package verify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Namespace is the name of a Kubernetes namespace, or Cluster. It isolates: each namespace
// has its own cache keys, credentials and rules. It is always an explicit argument, never
// part of another string.
type Namespace string

// Cluster means "no namespace": cluster resources only.
const Cluster Namespace = ""

var dns1123Label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ParseNamespace checks that s is an RFC 1123 label of at most 63 characters, as
// Kubernetes requires of a namespace.
func ParseNamespace(s string) (Namespace, error) {
	if !dns1123Label.MatchString(s) {
		return "", fmt.Errorf("namespace %.80q is not a DNS-1123 label: use lower-case letters, digits and hyphens, at most 63", s)
	}
	return Namespace(s), nil
}

// Label returns n as one word for keys, metrics and tables: "-" for [Cluster], which is not a
// valid namespace name.
func (n Namespace) Label() string {
	if n == Cluster {
		return "-"
	}
	return string(n)
}

// Describe returns n for use in a sentence.
func (n Namespace) Describe() string {
	if n == Cluster {
		return "the cluster"
	}
	return "namespace " + string(n)
}

// Account is the unit that pays for work: limits on images in flight, on requests to
// registries and on memory apply per account, while a [Namespace] isolates. The namespaces of
// one Tenant share an account; a namespace without a Tenant has its own. An empty Account
// never means no limit: use [Namespace.Account] instead.
type Account string

// Account returns the account of a namespace that shares none. The prefix distinguishes it
// from other kinds of accounts.
func (n Namespace) Account() Account { return Account("namespace/" + n.Label()) }

// TenantAccount returns the account that the namespaces of a Tenant share.
func TenantAccount(name string) Account { return Account("tenant/" + name) }

// Describe returns a for use in a sentence.
func (a Account) Describe() string { return strings.Replace(string(a), "/", " ", 1) }

// Fetch reads a blob of the repository where the signature was listed, at most limit bytes,
// verified against desc. Each blob is read once per image.
type Fetch func(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)

// Subject is the image that the evidence refers to.
type Subject struct {
	Reference  image.Reference    // with a digest
	Descriptor ocispec.Descriptor // of the manifest or index that the digest names

	describedBy Registry // that Descriptor comes from
	stated      bool     // Descriptor is what an index states
}

// Signature is one candidate signature: one layer of one manifest that refers
// to the subject. Only its digests have been verified.
type Signature struct {
	Descriptor ocispec.Descriptor // of the manifest, as listed by the registry
	Manifest   ocispec.Manifest
	Layer      ocispec.Descriptor // one of Manifest.Layers
}

// Checker checks one kind of signature for one verifier. It is safe for concurrent use
// and does I/O through fetch only.
type Checker interface {
	// Accepts reports whether this checker understands s, judging by the media types
	// of the manifest and layer alone.
	Accepts(s Signature) bool

	// Check returns the proof that s is a valid signature of subject. Its error is a [Refusal]
	// or a [PermanentError] if a retry cannot help, and any other error if evidence could not be
	// read. Certificates are judged as of now.
	Check(ctx context.Context, subject Subject, s Signature, fetch Fetch, now time.Time) (policy.Proof, error)
}

// Key identifies one cached value. Namespace and UID keep tenants apart, and a namespace
// apart from a later one of the same name.
type Key struct {
	Namespace  Namespace
	Kind       Kind
	UID        string
	Generation string // of the Config that the value was computed with
	Image      string // normalised reference
}

// String returns "landwaiter:<namespace>:<kind>:<hash>", so that access rules on the prefix
// "landwaiter:<namespace>:" can confine a tenant. The namespace is its [Namespace.Label]. The
// hash covers every field with its length, so no two keys collide.
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

// Kind is the kind of a cached value.
type Kind string

const (
	// KindVerdict is the verdict on a digest; Key.Image is host/repository@digest.
	KindVerdict Kind = "verdict"
	// KindTag is the digest of a tag; Key.Image is host/repository:tag.
	KindTag Kind = "tag"
	// KindEvidence is a registry's evidence about a digest; Key.Image is host/repository@digest,
	// and Key.Generation that of the [Registry].
	KindEvidence Kind = "evidence"
)

// Entry is one cached value: a verdict with its findings, the descriptor of a tag, or evidence.
// Requests share it, so it is immutable.
type Entry struct {
	Evidence   *Evidence // else nil
	Descriptor ocispec.Descriptor
	Verdict    policy.Verdict
	Findings   []policy.Finding
}

// Cache keeps entries for a time. Its methods are fast and never fail: a cache that is down
// is empty, and a doubtful entry is a miss.
type Cache interface {
	Get(ctx context.Context, key Key) (Entry, bool)
	// Recall is Get from this process's memory alone: it never waits.
	Recall(key Key) (Entry, bool)
	Put(ctx context.Context, key Key, entry Entry, ttl time.Duration)
}

// Result is the answer for one image, and the facts behind it.
type Result struct {
	Namespace Namespace
	Reference image.Reference
	Digest    digest.Digest // empty if it was not resolved
	Verdict   policy.Verdict
	// Exception names the exception that allows the image although Verdict.Policy denies it (a
	// Namespace for break-glass), and ExceptionEnds says until when. They are zero for every
	// other result. They are not part of the verdict, because verdicts are cached.
	Exception     policy.ObjectRef
	ExceptionEnds time.Time
	Findings      []policy.Finding
	Cached        bool
	Stages        []Stage // in order of their end; empty for a verdict in memory
	// Overloaded says that the work did not start because too many images were in flight.
	Overloaded bool
	// Looked lists the locations that were searched for evidence, tier by tier; empty for a cached result. Lists
	// may come from an earlier verification.
	Looked []Looked
	// Answered is when a registry last answered during this verification. It is zero if everything came from a cache.
	Answered time.Time
}

// Decided reports whether the verdict is final: asking again gives the same answer
// until resources or evidence change.
func (r Result) Decided() bool { return r.Verdict.Outcome() != policy.Undecided }

// Answer is a [Result] in one word. Logs, metrics, traces, reports and commands use it; some
// have their own words for it.
type Answer string

// The answers. The zero Answer does not allow.
const (
	AnswerAllowed     Answer = "allowed"    // or, if the caller asks for a digest, pinned
	AnswerUnverified  Answer = "unverified" // allowed by policies that verify nothing
	AnswerWarned      Answer = "warned"     // allowed by a policy that only warns
	AnswerByException Answer = "excepted"   // denied by policies, allowed by an exception or break-glass
	AnswerDenied      Answer = "denied"
	AnswerInvalid     Answer = "invalid" // the request names no image; no Result has it
	AnswerUndecided   Answer = "undecided"
)

// Allows reports whether an image with this answer may be used.
func (a Answer) Allows() bool {
	switch a {
	case AnswerAllowed, AnswerUnverified, AnswerWarned, AnswerByException:
		return true
	case AnswerDenied, AnswerInvalid, AnswerUndecided:
	}
	return false
}

// Answer returns r in one word.
func (r Result) Answer() Answer {
	switch v := r.Verdict; {
	case v.Outcome() == policy.Undecided:
		return AnswerUndecided
	case v.Outcome() != policy.Allowed:
		return AnswerDenied
	case r.Exception != (policy.ObjectRef{}):
		return AnswerByException
	case v.Warning != "":
		return AnswerWarned
	case v.Unverified:
		return AnswerUnverified
	}
	return AnswerAllowed
}

// Stage is the duration of one step of a verification.
type Stage struct {
	Name     string
	Began    time.Time
	Duration time.Duration
	// Verifier is the verifier of a check; zero for other stages.
	Verifier policy.ObjectRef
	// Detail is the object of the stage, such as an image or a digest.
	Detail string
}
