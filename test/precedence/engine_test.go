package precedence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// count returns how many random worlds are compared.
func count() uint64 {
	if os.Getenv("LANDWAITER_NIGHTLY") != "" {
		return 1_000_000
	}
	return 3_000
}

// evidences is how often evidence is drawn for the same resources: compiling takes longest.
const evidences = 10

// The engine and the specification give every image of every world the same answer.
func TestTheEngineDoesWhatTheSpecificationSays(t *testing.T) {
	var next, allowed, warned, undecided, denied atomic.Uint64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			engine := verify.NewEngine(nothing{}, now, verify.Options{})
			for seed := next.Add(1); seed <= count()/evidences && !t.Failed(); seed = next.Add(1) {
				err := compareWorlds(seed, func(a Answer, is policy.Outcome) {
					switch {
					case is == policy.Undecided:
						undecided.Add(1)
					case is == policy.Denied:
						denied.Add(1)
					case a.Warned:
						warned.Add(1)
					default:
						allowed.Add(1)
					}
				}, engine)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d worlds: %d images were allowed, %d allowed with a warning, %d undecided and %d denied", count(), allowed.Load(), warned.Load(),
		undecided.Load(), denied.Load())
	for _, n := range []uint64{allowed.Load(), warned.Load(), undecided.Load(), denied.Load()} {
		require.Greater(t, n, count()/20, "too few worlds have that outcome")
	}
}

// reference returns i as a pod names it.
func (i Image) reference() image.Reference {
	text := i.Name
	if i.Digest != "" {
		text += "@" + i.Digest
	}
	ref, err := image.Parse(text)
	if err != nil {
		panic(err)
	}
	return ref
}

// compareWorlds compares worlds with the same resources, and counts the outcomes.
func compareWorlds(seed uint64, counted func(Answer, policy.Outcome), engine *verify.Engine) error {
	d := newDice(seed)
	w, shelves := d.world(), &shelves{}
	snapshot, _ := resolve.Empty(shelves.outside()).Next(resolve.Group(w.objects()), nil)
	configs := map[string]*verify.Config{"": rigged(snapshot.For(verify.Cluster))}
	for namespace := range w.Namespaces {
		configs[namespace] = rigged(snapshot.For(verify.Namespace(namespace)))
	}
	for i := range evidences {
		w.Evidence = d.evidence()
		if err := shelves.fill(w.Evidence); err != nil {
			return err
		}
		for namespace, config := range configs {
			asked := images()[(i+len(namespace))%len(images())]
			outcome, warned := w.Judge(namespace, asked)
			var is policy.Verdict
			for range 5 { // on a busy machine, evidence for warnings may come too late
				if is = engine.Verify(context.Background(), config, asked.reference()).Verdict; outcomeOf(is) == outcome && (is.Warning != "") == warned {
					break
				}
			}
			if outcomeOf(is) != outcome || (is.Warning != "") != warned {
				written, _ := json.MarshalIndent(w, "", " ") //nolint:errchkjson // it is only shown
				return fmt.Errorf("%s in %q: the specification says %d (warned: %t), the engine %d (%s; warning: %q)\n%s", asked.Name, namespace, outcome, warned,
					outcomeOf(is), is.Reason, is.Warning, written)
			}
			counted(Answer{namespace, asked, w.Evidence, outcome, warned}, is.Outcome())
		}
	}
	return nil
}

func outcomeOf(v policy.Verdict) Outcome {
	return map[policy.Outcome]Outcome{policy.Allowed: Allowed, policy.Undecided: Undecided, policy.Denied: Denied}[v.Outcome()]
}

// nothing is a cache that keeps nothing.
type nothing struct{}

func (nothing) Get(context.Context, verify.Key) (verify.Entry, bool)         { return verify.Entry{}, false }
func (nothing) Recall(verify.Key) (verify.Entry, bool)                       { return verify.Entry{}, false }
func (nothing) Put(context.Context, verify.Key, verify.Entry, time.Duration) {}

// shelves are the repositories of a world, each with one manifest that lists the evidence.
type shelves struct{ listed map[string]ocispec.Descriptor }

func (s *shelves) outside() resolve.Outside {
	return resolve.Outside{
		Registry:   func(access registry.Access) verify.Registry { return &shelf{shelves: s, access: access} },
		Revocation: func(verify.Namespace) http.RoundTripper { return nil },
		Exceptions: resource.ExceptionLimits{BreakGlass: 24 * time.Hour},
	}
}

// shelf is what one namespace reaches of them.
type shelf struct {
	*shelves
	access registry.Access
}

// Locations implements [verify.Registry].
func (s *shelf) Generation() string { return "" }

func (s *shelf) Locations(ref image.Reference) verify.Locations {
	r := &repository{}
	name := ""
	if store, ok := registry.StoreFor(s.access.Stores, ref.Host); ok {
		r.broken = store.Broken
		if len(store.Evidence) > 0 {
			name = "evidence-of-" + store.Source.Namespace
			if store.Source.Namespace == "" {
				name = "evidence-of-cluster"
			}
		}
	}
	r.listed = s.listed[name]
	own := []verify.Location{{Name: ref.Name(), Role: verify.RoleOrigin, Repository: r}}
	return verify.Locations{Content: own, Evidence: own}
}

// fill makes a manifest for each repository, with a layer for each finding.
func (s *shelves) fill(evidence map[string]map[string][]string) error {
	s.listed = map[string]ocispec.Descriptor{}
	for name, found := range evidence {
		made := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
		for verifier, findings := range found {
			for i, by := range findings {
				made.Layers = append(made.Layers,
					ocispec.Descriptor{MediaType: mediaType(verifier) + cmp.Or(by, "nobody"), Digest: digest.FromString(fmt.Sprint(verifier, i)), Size: 2})
			}
		}
		content, err := json.Marshal(made)
		if err != nil {
			return err
		}
		s.listed[name] = ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(content), Size: int64(len(content)), Data: content}
	}
	return nil
}

// repository has one manifest.
type repository struct {
	listed ocispec.Descriptor
	broken error
}

// Resolve implements [verify.Repository].
func (r *repository) Resolve(_ context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	found := cmp.Or(ref.Digest, digest.Digest("sha256:"+fmt.Sprintf("%064d", 2)))
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: found, Size: 2}, r.broken
}

// Referrers implements [verify.Repository].
func (r *repository) Referrers(context.Context, image.Reference) ([]ocispec.Descriptor, error) {
	if err := r.broken; err != nil {
		return nil, err
	}
	return []ocispec.Descriptor{r.listed}, nil
}

// Fetch implements [verify.Repository].
func (r *repository) Fetch(context.Context, ocispec.Descriptor, int64) ([]byte, error) {
	return nil, errors.New("nothing has to be read")
}

// mediaType is what the media types of a verifier's evidence begin with.
func mediaType(verifier string) string {
	return "application/vnd.test." + strings.ReplaceAll(verifier, "/", ".") + "."
}

// rigged returns a configuration in which Verifiers find what the world says.
func rigged(c *verify.Config) *verify.Config {
	made, known := *c, map[*verify.Verifier]*verify.Verifier{}
	made.Tiers = rigTiers(c.Tiers, known)
	return &made
}

func rigTiers(tiers []verify.Tier, known map[*verify.Verifier]*verify.Verifier) []verify.Tier {
	rigged := make([]verify.Tier, len(tiers))
	for i, l := range tiers {
		verifiers := l.Verifiers
		l.Verifiers = nil
		for _, v := range verifiers {
			if known[v] == nil {
				copied := *v
				if copied.Checker != nil {
					copied.Checker = told(id(v.Source.Namespace, v.Source.Name))
					copied.Signers = nil // signers of a world are not those of the keys that the resource has
				}
				known[v] = &copied
			}
			l.Verifiers = append(l.Verifiers, known[v])
		}
		if l.Next != nil {
			l.Next = &rigTiers([]verify.Tier{*l.Next}, known)[0]
		}
		rigged[i] = l
	}
	return rigged
}

// told finds what the media type of a layer says.
type told string

// Accepts implements [verify.Checker].
func (v told) Accepts(s verify.Signature) bool {
	return strings.HasPrefix(s.Layer.MediaType, mediaType(string(v)))
}

// Check implements [verify.Checker].
func (v told) Check(_ context.Context, _ verify.Subject, s verify.Signature, _ verify.Fetch, _ time.Time) (policy.Proof, error) {
	switch by := strings.TrimPrefix(s.Layer.MediaType, mediaType(string(v))); by {
	case "nobody":
		return policy.Proof{}, verify.Refuse(policy.ReasonWrongKey, "it is worth nothing", "")
	case unreadable:
		return policy.Proof{}, errors.New("it cannot be read")
	default:
		return policy.NewProof(by, "", nil), nil
	}
}
