package verify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

const fakeLayer = "application/vnd.example.signature"

// registry is a fake: tags, listed manifests and content, and faults to inject.
type registry struct {
	mu        sync.Mutex
	tags      map[string]digest.Digest
	listed    []ocispec.Descriptor
	content   map[digest.Digest][]byte
	calls     map[string]int
	resolve   func(ctx context.Context, ref image.Reference) error
	list      func(ctx context.Context) error
	fetch     func(ctx context.Context, desc ocispec.Descriptor) error
	resolved  func(ref image.Reference) ocispec.Descriptor
	locations *verify.Locations

	generation string // "": nothing is kept
}

func newRegistry() *registry {
	return &registry{tags: map[string]digest.Digest{}, content: map[digest.Digest][]byte{}, calls: map[string]int{}}
}

func (r *registry) count(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[call]++
}

func (r *registry) called(call string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[call]
}

// Locations implements verify.Registry: all is in the image's own repository, unless there
// are other locations.
func (r *registry) Locations(ref image.Reference) verify.Locations {
	if r.locations != nil {
		return *r.locations
	}
	own := []verify.Location{{Name: ref.Name(), Role: verify.RoleOrigin, Repository: r}}
	return verify.Locations{Content: own, Evidence: own}
}

func (r *registry) Generation() string { return r.generation }

func (r *registry) Resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	r.count("resolve")
	if r.resolve != nil {
		if err := r.resolve(ctx, ref); err != nil {
			return ocispec.Descriptor{}, err
		}
	}
	if r.resolved != nil {
		return r.resolved(ref), nil
	}
	d := ref.Digest
	if d == "" {
		r.mu.Lock()
		d = r.tags[ref.Tag]
		r.mu.Unlock()
	}
	if d == "" {
		return ocispec.Descriptor{}, verify.Permanent(policy.ReasonNotFound, fmt.Errorf("%s is not there", ref))
	}
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: d, Size: 2}, nil
}

func (r *registry) Referrers(ctx context.Context, _ image.Reference) ([]ocispec.Descriptor, error) {
	r.count("list")
	var err error
	if r.list != nil {
		err = r.list(ctx)
	}
	return r.listed, err
}

func (r *registry) Fetch(ctx context.Context, desc ocispec.Descriptor, _ int64) ([]byte, error) {
	r.count("fetch")
	if r.fetch != nil {
		if err := r.fetch(ctx, desc); err != nil {
			return nil, err
		}
	}
	content, ok := r.content[desc.Digest]
	if !ok {
		return nil, verify.Permanent(policy.ReasonNotFound, fmt.Errorf("%s is not there", desc.Digest))
	}
	return content, nil
}

func (r *registry) put(mediaType string, content []byte) ocispec.Descriptor {
	d := digest.FromBytes(content)
	r.content[d] = content
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}

// manifest stores a manifest with one layer for each text and lists it; tagged
// ones come with their content, as the ".sig" tag does.
func (r *registry) manifest(t *testing.T, tagged bool, texts ...string) ocispec.Descriptor {
	t.Helper()
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	for _, text := range texts {
		manifest.Layers = append(manifest.Layers, r.put(fakeLayer, []byte(text)))
	}
	content, err := json.Marshal(manifest)
	require.NoError(t, err)
	desc := r.put(ocispec.MediaTypeImageManifest, content)
	if tagged {
		desc.Data = content
	}
	r.listed = append(r.listed, desc)
	return desc
}

// checker accepts signatures whose payload is "<signer>:<digest>" of a trusted
// signer.
type checker struct {
	trusted map[string]bool
	before  func(text string)
	hold    func(ctx context.Context) error
	until   time.Time // of proofs
}

func (c *checker) Accepts(s verify.Signature) bool { return s.Layer.MediaType == fakeLayer }

func (c *checker) Check(ctx context.Context, subject verify.Subject, s verify.Signature, fetch verify.Fetch, _ time.Time) (policy.Proof, error) {
	content, err := fetch(ctx, s.Layer, 1<<10)
	if err != nil {
		return policy.Proof{}, err
	}
	if c.before != nil {
		c.before(string(content))
	}
	if c.hold != nil {
		if err := c.hold(ctx); err != nil {
			return policy.Proof{}, err
		}
	}
	for signer := range c.trusted {
		if string(content) == signer+":"+subject.Reference.Digest.String() {
			return policy.NewProof(signer, "signed by "+signer, nil).Until(c.until), nil
		}
	}
	return policy.Proof{}, verify.Refuse(policy.ReasonWrongKey, fmt.Sprintf("%.20q is no trusted signature", content), "")
}

// cache is a map that counts; entries never expire.
type cache struct {
	mu      sync.Mutex
	entries map[verify.Key]verify.Entry
	ttls    map[verify.Key]time.Duration
}

func newCache() *cache {
	return &cache{entries: map[verify.Key]verify.Entry{}, ttls: map[verify.Key]time.Duration{}}
}

func (c *cache) Get(_ context.Context, key verify.Key) (verify.Entry, bool) { return c.Recall(key) }

func (c *cache) Recall(key verify.Key) (verify.Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	return entry, ok
}

func (c *cache) Put(_ context.Context, key verify.Key, entry verify.Entry, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[key], c.ttls[key] = entry, ttl
}

// ttl returns for how long the only verdict is kept, 0 without one.
func (c *cache) ttl() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, ttl := range c.ttls {
		if key.Kind == verify.KindVerdict {
			return ttl
		}
	}
	return 0
}

func (c *cache) verdicts() int { return c.count(verify.KindVerdict) }

func (c *cache) evidence() int { return c.count(verify.KindEvidence) }

func (c *cache) count(kind verify.Kind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for key := range c.entries {
		if key.Kind == kind {
			n++
		}
	}
	return n
}

var appDigest = digest.FromString("app")

func ref(t *testing.T, s string) image.Reference {
	t.Helper()
	r, err := image.Parse(s)
	require.NoError(t, err)
	return r
}

func everything(t *testing.T) []image.Pattern {
	t.Helper()
	p, err := image.ParsePattern("**")
	require.NoError(t, err)
	return []image.Pattern{p}
}

// verifier trusts the signers given.
func verifier(t *testing.T, name string, signers ...string) *verify.Verifier {
	t.Helper()
	trusted := map[string]bool{}
	for _, s := range signers {
		trusted[s] = true
	}
	return &verify.Verifier{Source: policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: name}, Type: "Cosign",
		Images: everything(t), Checker: &checker{trusted: trusted}}
}

func tier(t *testing.T, r verify.Registry, demand verify.Requirement, verifiers ...*verify.Verifier) verify.Tier {
	t.Helper()
	source := policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "strict"}
	verifiers = slices.SortedFunc(slices.Values(verifiers), func(a, b *verify.Verifier) int { return strings.Compare(a.Source.Name, b.Source.Name) })
	return verify.Tier{Source: source, Registry: r, Verifiers: verifiers,
		Judge: verify.ByRules([]verify.Rule{{Source: source, Images: everything(t), Require: []verify.Requirement{demand}}}, verify.DefaultDeny)}
}

func config(tiers ...verify.Tier) *verify.Config {
	return &verify.Config{Namespace: "team-a", UID: "1", Generation: "g1", Tiers: tiers}
}

func engine(c verify.Cache, options verify.Options) *verify.Engine {
	return verify.NewEngine(c, time.Now, options)
}
