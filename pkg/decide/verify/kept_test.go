package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// keeping is an engine whose registry says what its answers depend on, and a clock.
type keeping struct {
	*verify.Engine
	registry *registry
	cache    *cache
	now      time.Time
}

func keep(t *testing.T) *keeping {
	t.Helper()
	k := &keeping{registry: newRegistry(), cache: newCache(), now: time.Now()}
	k.registry.generation = "stores"
	k.registry.manifest(t, false, "alice:"+appDigest.String())
	k.registry.manifest(t, true, "bob:"+appDigest.String())
	k.Engine = verify.NewEngine(k.cache, func() time.Time { return k.now }, verify.Options{})
	return k
}

// judge verifies the image by rules of a generation, which require a signature by each of the signers, and returns the
// requests that it took.
func (k *keeping) judge(t *testing.T, generation string, signers ...string) (verify.Result, map[string]int) {
	t.Helper()
	before := map[string]int{}
	for _, call := range []string{"resolve", "list", "fetch"} {
		before[call] = k.registry.called(call)
	}
	c := config(tier(t, k.registry, verify.Requirement{AnyOf: []string{"v"}, AtLeast: len(signers)}, verifier(t, "v", signers...)))
	c.Generation = generation
	result := k.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
	took := map[string]int{}
	for call, n := range before {
		if now := k.registry.called(call); now > n {
			took[call] = now - n
		}
	}
	return result, took
}

func TestAChangeOfRulesAsksTheRegistryNothing(t *testing.T) {
	k := keep(t)
	result, took := k.judge(t, "g1", "nobody")
	require.Equal(t, policy.Denied, result.Verdict.Outcome())
	require.Equal(t, map[string]int{"resolve": 1, "list": 1, "fetch": 3}, took)
	require.Equal(t, k.now, result.Answered)
	k.now = k.now.Add(30 * time.Minute)
	result, took = k.judge(t, "g2", "alice")
	require.Equal(t, policy.Allowed, result.Verdict.Outcome())
	require.Empty(t, took)
	require.NotEmpty(t, result.Looked)
	require.Zero(t, result.Answered, "the registry may be down")
}

// A verdict from a list that was kept must not outlive one that was made when the list was read.
func TestAVerdictFromKeptListsExpiresWithThem(t *testing.T) {
	k := keep(t)
	k.judge(t, "g1", "nobody")
	k.now = k.now.Add(50 * time.Minute)
	k.judge(t, "g2", "alice")
	c := config()
	require.Equal(t, 10*time.Minute,
		k.cache.ttls[verify.Key{Namespace: c.Namespace, Kind: verify.KindVerdict, UID: c.UID, Generation: "g2", Image: "r.example.com/app@" + appDigest.String()}])

	k.now = k.now.Add(10 * time.Minute)
	k.registry.listed = nil // the signatures were removed
	result, took := k.judge(t, "g3", "alice")
	require.Equal(t, policy.Denied, result.Verdict.Outcome())
	require.Equal(t, map[string]int{"list": 1, "resolve": 1}, took)
}

// A denial is cached for ten seconds, so that a new signature is soon noticed. So long may a list be old that one is from.
func TestADenialFromKeptListsReadsThemAgain(t *testing.T) {
	k := keep(t)
	k.judge(t, "g1", "nobody")
	k.now = k.now.Add(9 * time.Second)
	result, took := k.judge(t, "g2", "carol")
	require.Equal(t, policy.Denied, result.Verdict.Outcome())
	require.NotContains(t, took, "list")

	k.now = k.now.Add(time.Second)
	k.registry.manifest(t, false, "carol:"+appDigest.String())
	result, took = k.judge(t, "g3", "carol")
	require.Equal(t, policy.Allowed, result.Verdict.Outcome())
	require.Equal(t, map[string]int{"list": 1, "resolve": 1, "fetch": 2}, took, "the new manifest and its payload alone")
}

func TestARefreshReadsListsAgainAndNoContent(t *testing.T) {
	k := keep(t)
	k.judge(t, "g1", "nobody")
	fetched := k.registry.called("fetch")
	c := config(tier(t, k.registry, verify.Requirement{AnyOf: []string{"v"}, AtLeast: 1}, verifier(t, "v", "alice")))
	require.Equal(t, policy.Allowed, k.Refresh(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String())).Verdict.Outcome())
	require.Equal(t, 2, k.registry.called("list"))
	require.Equal(t, fetched, k.registry.called("fetch"))
}

// forgetful is a cache that panics when it is asked for evidence.
type forgetful struct{ *cache }

func (c forgetful) Get(ctx context.Context, key verify.Key) (verify.Entry, bool) {
	if key.Kind == verify.KindEvidence {
		panic("our own fault")
	}
	return c.cache.Get(ctx, key)
}

func TestWithoutWhatIsKeptAllIsRead(t *testing.T) {
	k := keep(t)
	k.Engine = verify.NewEngine(forgetful{k.cache}, func() time.Time { return k.now }, verify.Options{})
	for name, c := range map[string]struct {
		signers []string
		want    policy.Outcome
	}{
		"allowed": {[]string{"alice", "bob"}, policy.Allowed}, // one signature would end the search before the other is read
		"denied":  {[]string{"nobody"}, policy.Denied},
	} {
		result, took := k.judge(t, name, c.signers...)
		require.Equal(t, c.want, result.Verdict.Outcome(), name)
		require.Equal(t, map[string]int{"resolve": 1, "list": 1, "fetch": 3}, took, name)
	}
}

// What was read with other credentials, in another namespace or in one that was made again is not used.
func TestNothingThatIsKeptIsUsedForAnother(t *testing.T) {
	for name, change := range map[string]func(*keeping, *verify.Config){
		"other Stores":      func(k *keeping, _ *verify.Config) { k.registry.generation = "other stores" },
		"another namespace": func(_ *keeping, c *verify.Config) { c.Namespace = "team-b" },
		"a new namespace":   func(_ *keeping, c *verify.Config) { c.UID = "2" },
	} {
		t.Run(name, func(t *testing.T) {
			k := keep(t)
			_, took := k.judge(t, "g1", "nobody")
			c := config(tier(t, k.registry, verify.Requirement{AnyOf: []string{"v"}, AtLeast: 1}, verifier(t, "v", "alice")))
			c.Generation = "g2"
			change(k, c)
			require.Equal(t, policy.Allowed, k.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String())).Verdict.Outcome())
			require.Equal(t, 2*took["list"], k.registry.called("list"))
			require.Greater(t, k.registry.called("fetch"), took["fetch"], "how many more: searches end when they know enough")
		})
	}
}

// Another Verifier may need other lists, and a Store's change of locations has another generation; a list counts for what
// it is of, whatever the generation says.
func TestAListOfSomethingElseIsReadAgain(t *testing.T) {
	for name, change := range map[string]func(*verify.Locations){
		"other lists": func(l *verify.Locations) { l.Listing = "with attestation tags" },
		"another location": func(l *verify.Locations) {
			l.Evidence = []verify.Location{{Name: "evidence.example.com/app", Role: verify.RoleEvidence, Repository: l.Evidence[0].Repository}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := keep(t)
			k.judge(t, "g1", "nobody")
			locations := k.registry.Locations(ref(t, "r.example.com/app@"+appDigest.String()))
			change(&locations)
			k.registry.locations = &locations
			result, took := k.judge(t, "g2", "alice")
			require.Equal(t, policy.Allowed, result.Verdict.Outcome())
			require.Equal(t, 1, took["list"])
			require.Zero(t, took["fetch"], "content is what its digest says")
		})
	}
}

func TestAListThatIsNotWholeIsNotKept(t *testing.T) {
	k := keep(t)
	k.registry.list = func(context.Context) error { return errors.New("the second page is missing") }
	k.judge(t, "g1", "nobody")
	require.Equal(t, 0, k.cache.evidence())
	k.registry.list = nil
	k.judge(t, "g2", "alice")
	require.Equal(t, 1, k.cache.evidence())
}

func TestARegistryThatDoesNotSayWhatItsAnswersDependOnIsAskedEachTime(t *testing.T) {
	k := keep(t)
	k.registry.generation = ""
	k.judge(t, "g1", "nobody")
	_, took := k.judge(t, "g2", "alice")
	require.Equal(t, 1, took["list"])
	require.Equal(t, 0, k.cache.evidence())
}

func TestContentPastTheLimitIsReadAgain(t *testing.T) {
	k := keep(t)
	k.registry.listed = nil
	for i := range 2 { // each within the limit of one manifest, not together
		content, err := json.Marshal(ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
			Annotations: map[string]string{"a": strings.Repeat(fmt.Sprint(i), 600<<10)}})
		require.NoError(t, err)
		k.registry.listed = append(k.registry.listed, k.registry.put(ocispec.MediaTypeImageManifest, content))
	}
	result, _ := k.judge(t, "g1", "alice")
	require.Equal(t, policy.Denied, result.Verdict.Outcome())
	for key, entry := range k.cache.entries {
		if key.Kind == verify.KindEvidence {
			kept := 0
			for _, content := range entry.Evidence.Content {
				kept += len(content)
			}
			require.LessOrEqual(t, kept, 1<<20)
			require.Greater(t, kept, 600<<10)
		}
	}
}

// An image that is denied is asked about again every ten seconds: that costs one pass over its evidence, not two.
func TestADenialIsNotWorkedOutTwice(t *testing.T) {
	k := keep(t)
	var checks atomic.Int32 // both signatures are checked at once
	refusing := verifier(t, "v", "nobody")
	refusing.Checker.(*checker).before = func(string) { checks.Add(1) } //nolint:forcetypeassert // verifier made it
	c := config(tier(t, k.registry, verify.Requirement{AnyOf: []string{"v"}, AtLeast: 1}, refusing))
	for range 3 {
		checks.Store(0)
		result := k.Refresh(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Denied, result.Verdict.Outcome())
		require.EqualValues(t, 2, checks.Load())
		k.now = k.now.Add(time.Minute)
		checks.Store(0)
		delete(k.cache.entries,
			verify.Key{Namespace: c.Namespace, Kind: verify.KindVerdict, UID: c.UID, Generation: c.Generation, Image: "r.example.com/app@" + appDigest.String()})
		result = k.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Denied, result.Verdict.Outcome())
		require.EqualValues(t, 2, checks.Load(), "one pass")
		require.Len(t, result.Looked, 1)
	}
}

// A stranger who can write referrers cannot fill what is kept for good.
func TestContentThatNobodyUsesAnyMoreMakesRoom(t *testing.T) {
	k := keep(t)
	for round := range 4 {
		k.registry.listed = nil
		for i := range 60 {
			k.registry.manifest(t, false, fmt.Sprintf("mallory%d-%d", round, i))
		}
		result := k.refresh(t, "nobody")
		require.Equal(t, policy.Denied, result.Verdict.Outcome())
		require.LessOrEqual(t, len(k.kept(t).Content), 192)
	}
	k.registry.listed = nil
	k.registry.manifest(t, false, "alice:"+appDigest.String())
	k.refresh(t, "nobody")
	fetched := k.registry.called("fetch")
	result, took := k.judge(t, "g9", "alice")
	require.Equal(t, policy.Allowed, result.Verdict.Outcome())
	require.Empty(t, took)
	require.Equal(t, fetched, k.registry.called("fetch"))
}

// What an index says about a manifest is not what the registry said about it.
func TestWhatAnIndexSaysOfAnImageIsNotKeptAsTheRegistrysWord(t *testing.T) {
	k := keep(t)
	lying, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
		Manifests: []ocispec.Descriptor{{MediaType: ocispec.MediaTypeImageManifest, Digest: appDigest, Size: 4711}}})
	require.NoError(t, err)
	index := k.registry.put(ocispec.MediaTypeImageIndex, lying)
	k.registry.resolved = func(r image.Reference) ocispec.Descriptor {
		if r.Digest == index.Digest {
			return index
		}
		return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: appDigest, Size: 2}
	}
	c := config(tier(t, k.registry, verify.Requirement{AnyOf: []string{"v"}, AtLeast: 1}, verifier(t, "v", "alice")))
	c.Tiers[0].Judge = verify.ByRules(
		[]verify.Rule{{Images: everything(t), Require: []verify.Requirement{{AnyOf: []string{"v"}, AtLeast: 1}}, IndexManifests: true}}, verify.DefaultDeny)
	k.Verify(t.Context(), c, ref(t, "r.example.com/app@"+index.Digest.String()))
	require.Zero(t, k.kept(t).Subject.Size)
	_, took := k.judge(t, "g2", "alice")
	require.Equal(t, 1, took["resolve"], "the registry is asked")
	require.EqualValues(t, 2, k.kept(t).Subject.Size)
}

// refresh verifies the image without cached verdicts and lists.
func (k *keeping) refresh(t *testing.T, signers ...string) verify.Result {
	t.Helper()
	c := config(tier(t, k.registry, verify.Requirement{AnyOf: []string{"v"}, AtLeast: 1}, verifier(t, "v", signers...)))
	return k.Refresh(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
}

// kept returns what is kept of the image's evidence.
func (k *keeping) kept(t *testing.T) *verify.Evidence {
	t.Helper()
	c := config()
	entry, ok := k.cache.Recall(verify.Key{Namespace: c.Namespace, Kind: verify.KindEvidence, UID: c.UID, Generation: k.registry.generation,
		Image: "r.example.com/app@" + appDigest.String()})
	require.True(t, ok)
	return entry.Evidence
}
