package verify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

const byDigest, byTag = "r.example.com/app@", "r.example.com/app:v1"

// network is an image's locations: a mirror, the origin and an evidence repository.
type network struct{ mirror, origin, evidence *registry }

func newNetwork() *network {
	n := &network{mirror: newRegistry(), origin: newRegistry(), evidence: newRegistry()}
	n.mirror.tags["v1"], n.origin.tags["v1"] = appDigest, appDigest
	return n
}

func location(role verify.Role, r *registry) verify.Location {
	return verify.Location{Name: string(role) + ".example.com/app", Role: role, Repository: r}
}

// as returns a registry that reads content and evidence at locations.
func as(content, evidence []verify.Location) *registry {
	r := newRegistry()
	r.locations = &verify.Locations{Content: content, Evidence: evidence}
	return r
}

func lacks(r *registry) {
	r.resolve = func(_ context.Context, ref image.Reference) error {
		return verify.Permanent(policy.ReasonNotFound, fmt.Errorf("%s is not here", ref))
	}
}

func TestImagesAndEvidenceAreReadAtTheirLocations(t *testing.T) {
	good := "k1:" + appDigest.String()
	down := func(r *registry) {
		r.resolve = func(context.Context, image.Reference) error { return errors.New("it is down") }
		r.list = func(context.Context) error { return errors.New("it is down") }
	}
	cases := map[string]struct {
		locations func(*network) (content, evidence []verify.Location)
		arrange   func(t *testing.T, n *network)
		outcome   policy.Outcome
		reason    string
	}{
		"a mirror alone": {onlyMirror, func(t *testing.T, n *network) { n.mirror.manifest(t, true, good) }, policy.Allowed, ""},
		"a mirror that lacks the image": {onlyMirror, func(t *testing.T, n *network) {
			lacks(n.mirror)
			n.mirror.manifest(t, true, good)
		}, policy.Denied, "is not here"},
		"a mirror that is down": {onlyMirror, func(_ *testing.T, n *network) { down(n.mirror) }, policy.Undecided, "it is down"},
		"a mirror without the signature": {onlyMirror, func(t *testing.T, n *network) { n.origin.manifest(t, true, good) },
			policy.Denied, "(looked at mirror.example.com/app: nothing)"},
		"a signature at the origin, behind a mirror": {mirrorOrOrigin, func(t *testing.T, n *network) { n.origin.manifest(t, true, good) }, policy.Allowed, ""},
		"a mirror that lacks the image, before the origin": {mirrorOrOrigin, func(t *testing.T, n *network) { lacks(n.mirror); n.origin.manifest(t, true, good) },
			policy.Allowed, ""},
		"a mirror that is down, before the origin": {mirrorOrOrigin, func(t *testing.T, n *network) { down(n.mirror); n.origin.manifest(t, true, good) },
			policy.Allowed, ""},
		"an origin that is down, behind a mirror": {mirrorOrOrigin, func(t *testing.T, n *network) { n.mirror.manifest(t, true, good); down(n.origin) },
			policy.Allowed, ""},
		"an origin that is down, and nothing at the mirror": {mirrorOrOrigin, func(_ *testing.T, n *network) { down(n.origin) },
			policy.Undecided, "(looked at mirror.example.com/app: nothing; origin.example.com/app: could not be read)"},
		"neither has the image": {mirrorOrOrigin, func(_ *testing.T, n *network) { lacks(n.mirror); lacks(n.origin) }, policy.Denied, "is not here; "},
		"one lacks it, the other is down": {mirrorOrOrigin, func(_ *testing.T, n *network) { lacks(n.mirror); down(n.origin) },
			policy.Undecided, "is not here; it is down"},
		"a mirror that answers for another digest": {mirrorOrOrigin, func(t *testing.T, n *network) {
			n.mirror.resolved = func(image.Reference) ocispec.Descriptor {
				return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: "md5:x", Size: 2}
			}
			n.origin.manifest(t, true, good)
		}, policy.Allowed, ""},
		"a mirror that panics": {mirrorOrOrigin, func(t *testing.T, n *network) {
			n.mirror.resolve = func(context.Context, image.Reference) error { panic("boom") }
			n.mirror.list = func(context.Context) error { panic("boom") }
			n.origin.manifest(t, true, good)
		}, policy.Allowed, ""},
		"further evidence": {withEvidence, func(t *testing.T, n *network) { n.evidence.manifest(t, false, good) }, policy.Allowed, ""},
		"evidence about another digest": {withEvidence, func(t *testing.T, n *network) {
			n.evidence.manifest(t, true, "k1:"+digest.FromString("other").String())
		}, policy.Denied, "(looked at origin.example.com/app: nothing; evidence.example.com/app: 1 to check)"},
		"an image that only the evidence location has": {withEvidence, func(t *testing.T, n *network) {
			lacks(n.origin)
			n.evidence.manifest(t, true, good)
		}, policy.Denied, "is not here"},
		"only evidence, which is elsewhere": {evidenceOnly, func(t *testing.T, n *network) { n.evidence.manifest(t, true, good) }, policy.Allowed, ""},
		"only evidence, which is not there": {evidenceOnly, func(t *testing.T, n *network) { n.origin.manifest(t, true, good) },
			policy.Denied, "(looked at evidence.example.com/app: nothing)"},
	}
	for name, c := range cases {
		for _, spelling := range []string{byDigest + appDigest.String(), byTag} {
			t.Run(name+", "+spelling[:18], func(t *testing.T) {
				n := newNetwork()
				c.arrange(t, n)
				r := as(c.locations(n))
				result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, spelling))
				require.Equal(t, c.outcome.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
				require.Contains(t, result.Verdict.Reason, c.reason)
			})
		}
	}
}

func onlyMirror(n *network) (content, evidence []verify.Location) {
	all := []verify.Location{location(verify.RoleMirror, n.mirror)}
	return all, all
}

func mirrorOrOrigin(n *network) (content, evidence []verify.Location) {
	all := []verify.Location{location(verify.RoleMirror, n.mirror), location(verify.RoleOrigin, n.origin)}
	return all, all
}

func withEvidence(n *network) (content, evidence []verify.Location) {
	own := location(verify.RoleOrigin, n.origin)
	return []verify.Location{own}, []verify.Location{own, location(verify.RoleEvidence, n.evidence)}
}

func evidenceOnly(n *network) (content, evidence []verify.Location) {
	return []verify.Location{location(verify.RoleOrigin, n.origin)}, []verify.Location{location(verify.RoleEvidence, n.evidence)}
}

func TestAFloodedLocationHidesNoEvidenceOfAnother(t *testing.T) {
	good := "k1:" + appDigest.String()
	floods := map[string]func(t *testing.T, r *registry){
		"signatures under the tag": func(t *testing.T, r *registry) { r.manifest(t, true, numbered(100)...) },
		"signatures of referrers":  func(t *testing.T, r *registry) { r.manifest(t, false, numbered(100)...) },
		"referrers": func(t *testing.T, r *registry) {
			for _, text := range numbered(100) {
				r.manifest(t, false, text)
			}
		},
		"the same manifests, of another size": func(_ *testing.T, r *registry) {
			for i := range 64 {
				r.listed = append(r.listed, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString(fmt.Sprint(i)), Size: 1 << 30})
			}
		},
	}
	for name, flood := range floods {
		for _, tagged := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, tagged: %t", name, tagged), func(t *testing.T) {
				n := newNetwork()
				flood(t, n.origin)
				signed := n.evidence.manifest(t, tagged, append(numbered(10), good)...)
				signed.Size++ // as a lie of the other location
				n.origin.listed = append([]ocispec.Descriptor{{MediaType: signed.MediaType, Digest: signed.Digest, Size: signed.Size}}, n.origin.listed...)
				r := as(withEvidence(n))
				result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, byTag))
				require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
			})
		}
	}
}

func TestOneManifestInSeveralLocationsCountsOnceAndComesFromWhicheverServesIt(t *testing.T) {
	n := newNetwork()
	good := "k1:" + appDigest.String()
	n.origin.manifest(t, false, good)
	n.evidence.manifest(t, false, good)
	n.origin.fetch = func(context.Context, ocispec.Descriptor) error { return errors.New("it is down") }
	r := as(withEvidence(n))
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, byTag))
	require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
	require.Len(t, result.Findings, 1)
	require.Equal(t, 2, n.evidence.called("fetch"), "the manifest and its payload, once")
}

func TestAMandatoryPolicyIsAskedAboutTheDigestThatItsOwnLocationsHave(t *testing.T) {
	other := digest.FromString("other")
	for name, c := range map[string]struct {
		ref     string
		warns   bool
		cluster func(n *network)
		outcome policy.Outcome
		reason  string
	}{
		"the same digest": {byTag, false, func(*network) {}, policy.Allowed, ""},
		"another digest":  {byTag, false, func(n *network) { n.origin.tags["v1"] = other }, policy.Denied, other.String() + " at origin.example.com/app"},
		"no such tag":     {byTag, false, func(n *network) { delete(n.origin.tags, "v1") }, policy.Denied, "is not there"},
		"a registry that is down": {byTag, false, func(n *network) {
			n.origin.resolve = func(context.Context, image.Reference) error { return errors.New("it is down") }
		}, policy.Undecided, "it is down"},
		"a digest, which nobody can dispute": {byDigest + appDigest.String(), false, func(n *network) { n.origin.tags["v1"] = other }, policy.Allowed, ""},
		"another digest, for a warning":      {byTag, true, func(n *network) { n.origin.tags["v1"] = other }, policy.Allowed, "would not be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork()
			c.cluster(n)
			n.mirror.manifest(t, true, "k1:"+appDigest.String())
			n.origin.manifest(t, true, "k1:"+appDigest.String())
			own := tier(t, as(onlyMirror(n)), anyA, verifier(t, "a", "k1"))
			mandatory := tier(t, as([]verify.Location{location(verify.RoleOrigin, n.origin)}, []verify.Location{location(verify.RoleOrigin, n.origin)}), anyA,
				verifier(t, "a", "k1"))
			mandatory.Warns = c.warns
			kept := newCache()
			e, both := engine(kept, verify.Options{}), config(own, mandatory)
			pinned, err := e.Resolve(t.Context(), both, ref(t, byTag))
			require.NoError(t, err)
			require.Equal(t, appDigest, pinned.Digest, "pinning takes the namespace's answer")
			for range 2 { // what was kept changes nothing
				result := e.Verify(t.Context(), both, ref(t, c.ref))
				require.Equal(t, c.outcome.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
				require.Contains(t, result.Verdict.Reason+result.Verdict.Warning, c.reason)
			}
		})
	}
}

func TestAMandatoryPolicySeesNothingOfANamespacesLocations(t *testing.T) {
	n := newNetwork()
	n.mirror.manifest(t, true, "k1:"+appDigest.String())
	own := tier(t, as(onlyMirror(n)), anyA, verifier(t, "a", "k1"))
	mandatory := tier(t, as([]verify.Location{location(verify.RoleOrigin, n.origin)}, []verify.Location{location(verify.RoleOrigin, n.origin)}), anyA,
		verifier(t, "a", "k1"))
	for _, spelling := range []string{byTag, byDigest + appDigest.String()} {
		result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(own, mandatory), ref(t, spelling))
		require.Equal(t, policy.Denied.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
		require.Equal(t, []verify.Looked{
			{Digest: appDigest, Repository: "mirror.example.com/app", Role: verify.RoleMirror, Manifests: 1, Signatures: 1},
			{Digest: appDigest, Repository: "origin.example.com/app", Role: verify.RoleOrigin},
		}, result.Looked)
	}
}

func TestAReasonNamesFewLocationsAndLittleOfEach(t *testing.T) {
	var many []verify.Location
	for i := range 9 {
		many = append(many, verify.Location{Name: fmt.Sprintf("r%d.example.com/%0200d", i, 0), Role: verify.RoleEvidence, Repository: newRegistry()})
	}
	n := newNetwork()
	r := as([]verify.Location{location(verify.RoleOrigin, n.origin)}, many)
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, byTag))
	require.Contains(t, result.Verdict.Reason, "and 3 more repositories)")
	require.Less(t, len(result.Verdict.Reason), 1200)
	require.Len(t, result.Looked, 9)
}
