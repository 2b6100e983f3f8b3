package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// index stores an index of manifests; only the registry knows that it is one.
func (r *registry) index(t *testing.T, mediaType string, manifests ...ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	content, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: mediaType, Manifests: manifests})
	require.NoError(t, err)
	made := r.put(mediaType, content)
	r.resolved = func(ref image.Reference) ocispec.Descriptor {
		if ref.Digest == made.Digest || ref.Digest == "" {
			return made
		}
		return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: ref.Digest, Size: 2}
	}
	return made
}

func part(name string) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString(name), Size: 2}
}

func TestIndexesAreProvenByThemselvesOrByEveryManifest(t *testing.T) {
	amd, arm := part("amd64"), part("arm64")
	sign := func(t *testing.T, r *registry, signer string, d ocispec.Descriptor) {
		t.Helper()
		r.manifest(t, true, signer+":"+d.Digest.String())
	}
	nested := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromString("nested"), Size: 2}
	many := make([]ocispec.Descriptor, 33)
	for i := range many {
		many[i] = part(fmt.Sprint(i))
	}
	for name, c := range map[string]struct {
		manifests []ocispec.Descriptor
		sign      func(t *testing.T, r *registry, index ocispec.Descriptor)
		alone     policy.Outcome // where only the index itself counts
		either    policy.Outcome
		reason    string
	}{
		"the index is signed": {[]ocispec.Descriptor{amd, arm}, func(t *testing.T, r *registry, index ocispec.Descriptor) { sign(t, r, "k1", index) }, policy.Allowed,
			policy.Allowed, ""},
		"every manifest is signed": {[]ocispec.Descriptor{amd, arm}, func(t *testing.T, r *registry, _ ocispec.Descriptor) {
			sign(t, r, "k1", amd)
			sign(t, r, "k1", arm)
		}, policy.Denied, policy.Allowed, "each of the 2 manifests"},
		"one manifest is signed": {[]ocispec.Descriptor{amd, arm}, func(t *testing.T, r *registry, _ ocispec.Descriptor) { sign(t, r, "k1", amd) },
			policy.Denied, policy.Denied, "nor is every manifest of the index allowed: " + arm.Digest.String()},
		"one manifest is signed by a stranger": {[]ocispec.Descriptor{amd, arm}, func(t *testing.T, r *registry, _ ocispec.Descriptor) {
			sign(t, r, "k1", amd)
			sign(t, r, "k9", arm)
		}, policy.Denied, policy.Denied, "nor is every manifest"},
		"nothing is signed": {[]ocispec.Descriptor{amd}, func(*testing.T, *registry, ocispec.Descriptor) {}, policy.Denied, policy.Denied,
			"no signature was found"},
		"an empty index": {nil, func(*testing.T, *registry, ocispec.Descriptor) {}, policy.Denied, policy.Denied, "has 0 manifests"},
		"an index in an index": {[]ocispec.Descriptor{nested}, func(t *testing.T, r *registry, _ ocispec.Descriptor) { sign(t, r, "k1", nested) },
			policy.Denied, policy.Denied, "not a manifest"},
		"too many manifests": {many, func(*testing.T, *registry, ocispec.Descriptor) {}, policy.Denied, policy.Denied, "33 manifests"},
		"a manifest without a digest": {[]ocispec.Descriptor{{MediaType: ocispec.MediaTypeImageManifest}},
			func(*testing.T, *registry, ocispec.Descriptor) {}, policy.Denied, policy.Denied, "not a manifest"},
		"the index cannot be read": {[]ocispec.Descriptor{amd}, func(_ *testing.T, r *registry, index ocispec.Descriptor) { r.fetch = refuse(index) },
			policy.Denied, policy.Undecided, "503"},
		"a manifest's evidence cannot be read": {[]ocispec.Descriptor{amd}, func(t *testing.T, r *registry, _ ocispec.Descriptor) {
			r.fetch = refuse(r.manifest(t, false, "k1:"+amd.Digest.String()))
		}, policy.Undecided, policy.Undecided, "503"},
		"the index is not what its digest says": {[]ocispec.Descriptor{amd}, func(_ *testing.T, r *registry, index ocispec.Descriptor) {
			r.content[index.Digest] = []byte("{{{")
		}, policy.Denied, policy.Denied, "not a well-formed index"},
	} {
		for _, mediaType := range []string{ocispec.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.list.v2+json"} {
			t.Run(name, func(t *testing.T) {
				r := newRegistry()
				index := r.index(t, mediaType, c.manifests...)
				c.sign(t, r, index)
				for either, want := range map[bool]policy.Outcome{false: c.alone, true: c.either} {
					l := tier(t, r, anyA, verifier(t, "a", "k1"))
					l.Judge.Rules()[0].IndexManifests = either
					result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(l), ref(t, "r.example.com/app@"+index.Digest.String()))
					require.Equal(t, want.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
					if either {
						require.Contains(t, result.Verdict.Reason, c.reason)
					}
				}
			})
		}
	}
}

func refuse(what ocispec.Descriptor) func(context.Context, ocispec.Descriptor) error {
	return func(_ context.Context, desc ocispec.Descriptor) error {
		if desc.Digest == what.Digest {
			return errors.New("registry answered 503")
		}
		return nil
	}
}

// A signature of an index says nothing about one of its manifests.
func TestManifestsAreNotProvenByTheirIndex(t *testing.T) {
	r := newRegistry()
	amd := part("amd64")
	index := r.index(t, ocispec.MediaTypeImageIndex, amd)
	r.manifest(t, true, "k1:"+index.Digest.String())
	l := tier(t, r, anyA, verifier(t, "a", "k1"))
	l.Judge.Rules()[0].IndexManifests = true
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(l), ref(t, "r.example.com/app@"+amd.Digest.String()))
	require.Equal(t, policy.Denied, result.Verdict.Outcome())
	require.NotContains(t, result.Verdict.Reason, "manifest of the index")
}

func TestAPanicWhileAManifestIsDecidedAllowsNothing(t *testing.T) {
	r := newRegistry()
	amd, arm := part("amd64"), part("arm64")
	index := r.index(t, ocispec.MediaTypeImageIndex, amd, arm)
	r.manifest(t, true, "k1:"+amd.Digest.String())
	r.manifest(t, true, "k1:"+arm.Digest.String())
	l := tier(t, r, verify.Requirement{AtLeast: 1, Condition: func(func() error, []policy.Finding) (bool, error) { panic("boom") }}, verifier(t, "a", "k1"))
	l.Judge.Rules()[0].IndexManifests = true
	kept := newCache()
	verdict := engine(kept, verify.Options{}).Verify(t.Context(), config(l), ref(t, "r.example.com/app@"+index.Digest.String())).Verdict
	require.Equal(t, policy.Undecided, verdict.Outcome(), verdict.Reason)
	require.Contains(t, verdict.Reason, "internal error: boom")
	require.Zero(t, kept.verdicts())
}

func TestPoliciesThatWarnAllowAndAreKeptAsDenies(t *testing.T) {
	source := policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "strict"}
	for name, c := range map[string]struct {
		change   func(r *registry, l *verify.Tier)
		spelling string
		ttl      time.Duration // 0: not kept
	}{
		"unsigned":           {func(*registry, *verify.Tier) {}, "@" + appDigest.String(), 10 * time.Second},
		"unreadable":         {func(r *registry, _ *verify.Tier) { r.list = func(context.Context) error { return errors.New("503") } }, "@" + appDigest.String(), 0},
		"no such tag":        {func(*registry, *verify.Tier) {}, ":none", 0},
		"a broken verifier":  {func(_ *registry, l *verify.Tier) { l.Verifiers[0].Broken = errors.New("no key") }, ":v1", 0},
		"no rule matches":    {func(_ *registry, l *verify.Tier) { l.Judge = verify.ByRules(nil, verify.DefaultDeny) }, ":v1", 0},
		"no verifier by the": {func(_ *registry, l *verify.Tier) { l.Verifiers = nil }, ":v1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			r.tags["v1"] = appDigest
			l := tier(t, r, anyA, verifier(t, "a", "k1"))
			l.Warns = true
			c.change(r, &l)
			kept := newCache()
			ask := func(tiers ...verify.Tier) policy.Verdict {
				return engine(kept, verify.Options{}).Verify(t.Context(), config(tiers...), ref(t, "r.example.com/app"+c.spelling)).Verdict
			}
			verdict := ask(verify.Tier{Source: source, Judge: verify.OnlyWarnings()}, l)
			require.Equal(t, policy.Allowed, verdict.Outcome(), verdict.Reason)
			require.NotEmpty(t, verdict.Warning)
			require.True(t, verdict.Unverified, "a warning proves nothing")
			require.Contains(t, verdict.Reason, source.String()+" only warns: ")
			if c.ttl == 0 {
				require.Zero(t, kept.verdicts())
			}
			for key, ttl := range kept.ttls {
				if key.Kind == verify.KindVerdict {
					require.Equal(t, c.ttl, ttl)
				}
			}
			strict := tier(t, r, anyA, verifier(t, "a", "k1"))
			kept = newCache()
			require.NotEqual(t, policy.Allowed, ask(l, strict).Outcome(), "another tier is enforced")
			require.NotEqual(t, policy.Allowed, ask(strict, l).Outcome(), "another tier is enforced")
		})
	}
	alone := tier(t, newRegistry(), anyA, verifier(t, "a", "k1"))
	alone.Warns = true
	require.Equal(t, policy.Denied, engine(newCache(), verify.Options{}).Verify(t.Context(), config(alone), ref(t, "r.example.com/app:v1")).Verdict.Outcome(),
		"tiers that warn only add to one that allows")
}

func TestConditionsLookAtEveryVerifierThatMatches(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String(), "k2:"+appDigest.String())
	two := verify.Requirement{AtLeast: 1, Condition: func(_ func() error, proven []policy.Finding) (bool, error) { return len(proven) == 2, nil }}
	ask := func(verifiers ...*verify.Verifier) policy.Verdict {
		return engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, two, verifiers...)), ref(t, "r.example.com/app@"+appDigest.String())).
			Verdict
	}
	require.Equal(t, policy.Allowed, ask(verifier(t, "a", "k1"), verifier(t, "b", "k2")).Outcome())
	require.Equal(t, policy.Denied, ask(verifier(t, "a", "k1")).Outcome())
	require.Contains(t, ask().Reason, "no Verifier applies to")
	broken := verifier(t, "c", "k3")
	broken.Broken = errors.New("Verifier team-a/c cannot be used")
	verdict := ask(verifier(t, "a", "k1"), verifier(t, "b", "k2"), broken)
	require.Equal(t, policy.Denied, verdict.Outcome())
	require.Contains(t, verdict.Reason, "Verifier team-a/c cannot be used")
}
