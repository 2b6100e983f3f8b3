package verify_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// gathering holds requests back until all of one wave are there. Fewer fail: then some
// request was only sent once another one had been answered.
type gathering struct {
	mu      sync.Mutex
	waiting int
	all     chan struct{}
	want    int
}

func gather(want int) *gathering { return &gathering{want: want, all: make(chan struct{})} }

func (g *gathering) join(ctx context.Context) error {
	g.mu.Lock()
	if g.waiting++; g.waiting == g.want {
		close(g.all)
	}
	g.mu.Unlock()
	select {
	case <-g.all:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Second):
		return fmt.Errorf("of %d requests only some were sent", g.want)
	}
}

// One mirror, the origin and two evidence repositories cost the waves of one repository:
// {subject and lists} and {manifests}, and before them the tag.
func TestLocationsCostNoFurtherRoundTrips(t *testing.T) {
	for name, spelling := range map[string]string{"a digest": byDigest + appDigest.String(), "a tag": byTag} {
		t.Run(name, func(t *testing.T) {
			mirror, origin, first, second := newRegistry(), newRegistry(), newRegistry(), newRegistry()
			content := []verify.Location{location(verify.RoleMirror, mirror), location(verify.RoleOrigin, origin)}
			all := append(content[:2:2], verify.Location{Name: "1.example.com/sigs", Role: verify.RoleEvidence, Repository: first},
				verify.Location{Name: "2.example.com/sigs", Role: verify.RoleEvidence, Repository: second})
			lookups, lists, manifests := gather(2), gather(4), gather(4)
			if name == "a digest" {
				lookups = gather(6)
				lists = lookups // one wave
			}
			for i, r := range []*registry{mirror, origin, first, second} {
				r.tags["v1"] = appDigest
				r.manifest(t, false, fmt.Sprintf("bad %d", i))
				payload := r.put(fakeLayer, fmt.Appendf(nil, "bad %d", i)).Digest
				r.resolve = func(ctx context.Context, _ image.Reference) error { return lookups.join(ctx) }
				r.list = lists.join
				r.fetch = func(ctx context.Context, desc ocispec.Descriptor) error {
					if desc.Digest == payload {
						return nil
					}
					return manifests.join(ctx)
				}
			}
			result := engine(newCache(), verify.Options{WorkTimeout: time.Minute}).Verify(t.Context(), config(tier(t, as(content, all), anyA, verifier(t, "a", "k1"))),
				ref(t, spelling))
			require.Equal(t, policy.Denied.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
			require.Equal(t, 1, mirror.called("resolve")*origin.called("resolve"), "each is asked once")
			for _, r := range []*registry{mirror, origin, first, second} {
				require.Equal(t, 1, r.called("list"))
			}
		})
	}
}
