//go:build !e2e && !nightly

package evidence

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// keptImages is how many images run.
const keptImages = 100

// asked counts what a registry is asked for.
type asked struct{ blobs, all atomic.Int64 }

func count(r *fixture.Registry) *asked {
	var a asked
	r.SetIntercept(func(_ http.ResponseWriter, request *http.Request) bool {
		a.all.Add(1)
		if strings.Contains(request.URL.Path, "/blobs/") {
			a.blobs.Add(1)
		}
		return false
	})
	return &a
}

// take returns the counts since the last call.
func (a *asked) take() (blobs, all int64) { return a.blobs.Swap(0), a.all.Swap(0) }

// A change of rules, a rotation of keys and a restart cost the registry nothing.
func TestWhatTheRegistrySaidIsKept(t *testing.T) {
	redis := miniredis.RunT(t)
	e := newEnvironment(t, fixture.RegistryOptions{})
	options := service.Options{Version: "v1", Registry: registry.Options{PerSecond: 1_000_000}, CacheBytes: 1 << 28,
		Redis: &service.Redis{Connection: cache.Connection{URL: "redis://" + redis.Addr()}, Keys: fixture.NewSealKey()}}
	e.start(t, options)
	images := e.signAll(t, "old", "new")
	e.signer(t, "nobody")
	rules := func(signer string, more ...func(*resource.Objects)) []func(*resource.Objects) {
		return append(more, e.trusting(t, "team-a", signer), e.policy(t, "team-a", "images", releaseNeeded))
	}
	requests := count(e.registry)
	require.Empty(t, e.apply(t, rules("nobody")...))
	e.all(t, images, policy.Denied) // so that all evidence is read
	blobs, _ := requests.take()
	require.Equal(t, int64(2*keptImages), blobs)
	allowed := func(t *testing.T) {
		t.Helper()
		e.all(t, images, policy.Allowed)
		_, all := requests.take()
		require.Zero(t, all)
	}
	t.Run("a key is trusted", func(t *testing.T) {
		require.Empty(t, e.apply(t, rules("old")...))
		allowed(t)
	})
	t.Run("a Verifier of another type is added", func(t *testing.T) {
		root, err := fixture.NewAuthority("notation")
		require.NoError(t, err)
		notation := &v1beta1.Verifier{Spec: v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeNotation, Notation: &v1beta1.NotationVerifier{
			TrustStoreRefs: []v1beta1.TrustStoreRef{{Name: "cas"}}, TrustedIdentities: []string{"x509.subject: C=US, ST=WA, O=example"}}}}
		notation.Name, notation.Namespace = "notation", "team-a"
		e.apply(t, rules("old", func(o *resource.Objects) {
			o.Resources = append(o.Resources, trustStore("team-a", "cas", v1beta1.TrustStoreTypeCertificates, string(root.CertificatePEM)), notation)
		})...)
		allowed(t)
	})
	t.Run("keys are rotated", func(t *testing.T) {
		require.Empty(t, e.apply(t, rules("new")...))
		allowed(t)
	})
	t.Run("the program is started again, and rules change", func(t *testing.T) {
		require.Eventually(t, func() bool { return evidenceIn(redis) == keptImages }, suite.Patience, 100*time.Millisecond, "everything is in Redis")
		e.start(t, options)
		require.Empty(t, e.apply(t, rules("old", e.policy(t, "team-a", "more", releaseNeeded))...))
		e.all(t, images, policy.Allowed)
		late := e.RedisStats().Failures.Load() + e.RedisStats().Skipped.Load() // a busy machine may answer too late
		_, all := requests.take()
		require.LessOrEqual(t, all, 16*late)
	})
	t.Run("another namespace gets nothing of it", func(t *testing.T) {
		require.Empty(t, e.apply(t, rules("new", e.trusting(t, "team-b", "new"), e.policy(t, "team-b", "images", releaseNeeded))...))
		require.Equal(t, policy.Allowed, e.Verify(t.Context(), "team-b", images[0]).Verdict.Outcome())
		blobs, _ := requests.take()
		require.Positive(t, blobs)
	})
}

// signAll pushes images and signs each with all keys.
func (e *environment) signAll(t *testing.T, signers ...string) []image.Reference {
	t.Helper()
	for _, signer := range signers {
		e.signer(t, signer)
	}
	images := make([]image.Reference, keptImages)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for i := range images {
		group.Go(func() error {
			pushed, err := e.registry.PushImage(ctx, fmt.Sprintf("kept/app-%d", i), "v1")
			if err != nil {
				return err
			}
			images[i] = digestOf(pushed)
			for _, signer := range signers {
				if _, err := e.registry.SignCosignBundle(ctx, pushed, e.key[signer], fixture.CosignOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	return images
}

// all verifies images in team-a, which must all have that outcome.
func (e *environment) all(t *testing.T, images []image.Reference, outcome policy.Outcome) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4) // Redis drops what its queue has no room for
	for _, ref := range images {
		group.Go(func() error {
			if verdict := e.Verify(ctx, "team-a", ref).Verdict; verdict.Outcome() != outcome {
				return fmt.Errorf("%s: %s", ref, verdict.Reason)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
}

// evidenceIn returns how much evidence of team-a Redis has.
func evidenceIn(server *miniredis.Miniredis) (n int) {
	for _, key := range server.Keys() {
		if strings.HasPrefix(key, "landwaiter:team-a:evidence:") {
			n++
		}
	}
	return n
}
