package verify_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// hang waits until nobody wants the answer any more.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// after answers once virtual time has passed.
func after(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestALocationThatHangsCostsAnImageNothingThatIsSignedAtAnother(t *testing.T) {
	good := "k1:" + appDigest.String()
	for name, c := range map[string]struct {
		arrange func(t *testing.T, n *network)
		within  time.Duration
	}{
		"under the tag": {func(t *testing.T, n *network) { n.evidence.manifest(t, true, good) }, 0},
		"a referrer":    {func(t *testing.T, n *network) { n.evidence.manifest(t, false, good) }, 0},
		"a slow one": {func(t *testing.T, n *network) {
			n.evidence.manifest(t, false, good)
			n.evidence.list = after(300 * time.Millisecond)
		}, 300 * time.Millisecond},
		"the last of its share": {func(t *testing.T, n *network) {
			n.evidence.manifest(t, false, append(numbered(verify.MaxSignatures/2-1), good)...)
		}, 0},
		"which lists the same, and hangs later": {func(t *testing.T, n *network) {
			n.origin.list = nil
			n.origin.fetch = waiting
			n.origin.manifest(t, false, good)
			n.evidence.manifest(t, false, good)
			n.evidence.list = after(time.Millisecond)
		}, 2*250*time.Millisecond + time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.origin.list = hang
				c.arrange(t, n)
				began := time.Now()
				result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, as(withEvidence(n)), anyA, verifier(t, "a", "k1"))),
					ref(t, byDigest+appDigest.String()))
				require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
				require.LessOrEqual(t, time.Since(began), c.within)
				require.Len(t, result.Looked, 2)
				require.Equal(t, 1, result.Looked[1].Signatures)
				require.NotContains(t, result.Looked[0].Err, "context", "it was not needed, which is no fault of the location")
			})
		})
	}
}

// What is proven so far may not be enough, or need that something else is absent.
func TestWithoutTheAnswerOfALocationNothingIsDenied(t *testing.T) {
	noRevoker := func(_ func() error, proven []policy.Finding) (bool, error) {
		for _, f := range proven {
			if f.Signer() == "revoker" {
				return false, nil
			}
		}
		return true, nil
	}
	for name, c := range map[string]struct {
		demand verify.Requirement
		texts  []string
	}{
		"no signature":          {anyA, nil},
		"no valid signature":    {anyA, []string{"stranger"}},
		"one signature of two":  {verify.Requirement{AnyOf: []string{"a"}, AtLeast: 2}, []string{"k1:" + appDigest.String()}},
		"a negated expression":  {verify.Requirement{Condition: noRevoker, AtLeast: 1}, []string{"k1:" + appDigest.String()}},
		"more than its share":   {anyA, numbered(100)},
		"more, and it is valid": {verify.Requirement{AnyOf: []string{"a"}, AtLeast: 2}, append(numbered(100), "k1:"+appDigest.String())},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.origin.list = hang
				n.evidence.manifest(t, false, c.texts...)
				began := time.Now()
				result := engine(newCache(), verify.Options{WorkTimeout: 5 * time.Second}).
					Verify(t.Context(), config(tier(t, as(withEvidence(n)), c.demand, verifier(t, "a", "k1", "revoker"))), ref(t, byDigest+appDigest.String()))
				require.NotEqual(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
				require.Equal(t, policy.Undecided.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
				require.Equal(t, 5*time.Second, time.Since(began))
			})
		})
	}
}

func TestNoMoreIsCheckedInAdvanceThanInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.origin.manifest(t, false, numbered(100)...)
		n.evidence.list = after(time.Second)
		n.evidence.manifest(t, false, append(numbered(10), "k1:"+appDigest.String())...)
		var before, checked atomic.Int32
		v := verifier(t, "a", "k1")
		v.Checker.(*checker).before = func(string) { //nolint:forcetypeassert // verifier made it
			checked.Add(1)
			if time.Now().Before(time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC)) { // where virtual time begins
				before.Add(1)
			}
		}
		demand := verify.Requirement{AnyOf: []string{"a"}, AtLeast: 2} // nothing ends the search
		result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, as(withEvidence(n)), demand, v)), ref(t, byDigest+appDigest.String()))
		require.Equal(t, policy.Denied.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
		require.EqualValues(t, verify.MaxSignatures/2, before.Load(), "the share of one of two locations")
		require.EqualValues(t, verify.MaxSignatures, checked.Load())
		require.Contains(t, result.Findings[0].Message, "only the first 32")
	})
}

func TestALocationTakesOnlyItsShareOfTheBytesInAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		for i := range 32 { // in all four times what one image may have
			content := make([]byte, verify.MaxManifestBytes)
			content[0] = byte(i)
			n.origin.listed = append(n.origin.listed, n.origin.put(ocispec.MediaTypeImageManifest, content))
		}
		read := 0
		n.evidence.list = func(ctx context.Context) error {
			defer func() { read = n.origin.called("fetch") }()
			return after(time.Second)(ctx)
		}
		engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, as(withEvidence(n)), anyA, verifier(t, "a", "k1"))),
			ref(t, byDigest+appDigest.String()))
		require.Equal(t, verify.DefaultEvidenceBytes/9/verify.MaxManifestBytes/2, read, "the share of one of two locations")
		require.Equal(t, verify.DefaultEvidenceBytes/9/verify.MaxManifestBytes, n.origin.called("fetch"))
	})
}

func TestAMirrorThatHangsKeepsNoDigestOfAnotherLocationWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		spelling string
		waits    bool
	}{"a digest": {byDigest + appDigest.String(), false}, "a tag, which may be another digest there": {byTag, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.mirror.resolve = func(ctx context.Context, _ image.Reference) error { return hang(ctx) }
				n.mirror.list = hang
				n.origin.manifest(t, true, "k1:"+appDigest.String())
				began := time.Now()
				result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, as(mirrorOrOrigin(n)), anyA, verifier(t, "a", "k1"))), ref(t, c.spelling))
				require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
				require.Equal(t, c.waits, time.Since(began) > 250*time.Millisecond)
			})
		})
	}
}

// A list that was cut short must not be taken for the whole one after a change of rules; content is what its digest says.
func TestAListThatWasNotAwaitedIsNotKeptAndContentIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, r := newNetwork(), newRegistry()
		content, evidence := withEvidence(n)
		r.locations, r.generation = &verify.Locations{Content: content, Evidence: evidence}, "stores"
		n.evidence.manifest(t, false, "k1:"+appDigest.String())
		n.origin.manifest(t, false, "k2:"+appDigest.String())
		n.origin.list = hang
		e := engine(newCache(), verify.Options{})
		judged := func(generation, signer string) policy.Outcome {
			c := config(tier(t, r, anyA, verifier(t, "a", signer)))
			c.Generation = generation
			return e.Verify(t.Context(), c, ref(t, byDigest+appDigest.String())).Verdict.Outcome()
		}
		require.Equal(t, policy.Allowed, judged("g1", "k1"))
		require.Equal(t, 2, n.evidence.called("fetch"))
		n.origin.list = nil
		require.Equal(t, policy.Allowed, judged("g2", "k2"), "the other list is read")
		require.Equal(t, 2, n.evidence.called("list"))
		require.Equal(t, 2, n.evidence.called("fetch"))
	})
}

func TestWhatTwoLocationsListIsReadOnceHoweverLateOneIs(t *testing.T) {
	for name, late := range map[string]time.Duration{
		"before the manifest is there": 50 * time.Millisecond, "before the payload is there": 150 * time.Millisecond, "at last": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.origin.manifest(t, false, "stranger")
				n.evidence.manifest(t, false, "stranger")
				n.origin.list = after(late)
				n.evidence.fetch = func(ctx context.Context, _ ocispec.Descriptor) error { return after(100 * time.Millisecond)(ctx) }
				both := tier(t, as(withEvidence(n)), verify.Requirement{AnyOf: []string{"a", "b"}, AtLeast: 1}, verifier(t, "a", "k1"), verifier(t, "b", "k2"))
				result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(both), ref(t, byDigest+appDigest.String()))
				require.Equal(t, policy.Denied.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
				require.Equal(t, 2, n.evidence.called("fetch")+n.origin.called("fetch"), "a manifest and its payload")
			})
		})
	}
}

func TestALocationThatListsTheSameLateIsAskedAlthoughAThirdNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.mirror.list = hang
		n.origin.fetch = waiting
		n.evidence.list = after(300 * time.Millisecond)
		for _, r := range []*registry{n.origin, n.evidence} {
			r.manifest(t, true, "k1:"+appDigest.String())
		}
		_, evidence := withEvidence(n)
		evidence = append([]verify.Location{location(verify.RoleMirror, n.mirror)}, evidence...)
		began := time.Now()
		result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, as(evidence[1:2], evidence), anyA, verifier(t, "a", "k1"))),
			ref(t, byDigest+appDigest.String()))
		require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
		require.LessOrEqual(t, time.Since(began), time.Second)
	})
}

func TestALocationHidesNothingOfAnotherByListingItToo(t *testing.T) {
	n := newNetwork()
	n.origin.manifest(t, false, numbered(100)...)
	n.origin.manifest(t, false, "k1:"+appDigest.String())
	n.evidence.manifest(t, false, "stranger")
	n.evidence.manifest(t, false, "k1:"+appDigest.String())
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, as(withEvidence(n)), anyA, verifier(t, "a", "k1"))), ref(t, byTag))
	require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
}

// Locations answer in any order, and some late: the verdict, every finding and what was looked at are the same.
func TestResultsDoNotDependOnTheOrderInWhichLocationsAnswer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		texts := func() []string {
			all := append(numbered(random.IntN(40)), "k2:"+appDigest.String())
			return all[random.IntN(len(all)):]
		}
		first, second, both := texts(), texts(), numbered(random.IntN(30))
		tags, referrers, fails, flood := random.IntN(2) == 0, random.IntN(3), random.IntN(4) == 0, random.IntN(4) == 0
		verdict := func(delays [3]time.Duration) (result verify.Result) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				all := []*registry{n.mirror, n.origin, n.evidence}
				n.mirror.manifest(t, tags, first...)
				n.evidence.manifest(t, !tags, second...)
				for i := range referrers {
					n.origin.manifest(t, false, fmt.Sprint("of the origin ", i))
				}
				for _, r := range all {
					r.manifest(t, false, both...)
				}
				if flood {
					for i := range 20 {
						n.origin.manifest(t, false, fmt.Sprintf("flood %d", i))
					}
				}
				if fails {
					n.mirror.fetch = func(context.Context, ocispec.Descriptor) error { return errors.New("mirror is down") }
					n.origin.fetch = func(context.Context, ocispec.Descriptor) error { return errors.New("origin is down") }
				}
				var evidence []verify.Location
				for i, r := range all {
					r.list = after(delays[i])
					evidence = append(evidence, location([]verify.Role{verify.RoleMirror, verify.RoleOrigin, verify.RoleEvidence}[i], r))
				}
				demand := verify.Requirement{AnyOf: []string{"a"}, AtLeast: 2}
				result = engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, as(evidence, evidence), demand, verifier(t, "a", "k2"))),
					ref(t, byDigest+appDigest.String()))
			})
			return result
		}
		want := verdict([3]time.Duration{})
		for _, delays := range [][3]time.Duration{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 1, 0}, {0, 2, 1}} {
			for i := range delays {
				delays[i] *= time.Second
			}
			got := verdict(delays)
			require.Equal(t, want.Verdict, got.Verdict, "round %d, %v", round, delays)
			require.Equal(t, want.Findings, got.Findings, "round %d, %v", round, delays)
			require.Equal(t, want.Looked, got.Looked, "round %d, %v", round, delays)
		}
	}
}
