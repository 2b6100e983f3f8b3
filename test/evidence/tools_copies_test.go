//go:build !e2e

package evidence

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// copier is a command that copies an image with what belongs to it.
type copier struct {
	command func(*testing.T) tool
	args    []string
	env     []string
	// tags and referrers are what comes along.
	tags, referrers bool
}

func cosign2Copy() copier {
	return copier{command: cosignV2, args: []string{"copy", "--allow-http-registry"}, tags: true}
}

func cosign3Copy() copier {
	return copier{command: cosignV3, args: []string{"copy", "--allow-http-registry"}, tags: true}
}

func orasCopy() copier {
	return copier{command: orasCLI, args: []string{"cp", "--from-plain-http", "--to-plain-http", "--recursive"}, referrers: true}
}

// copy copies img by its digest, and returns the copy.
func (c copier) copy(t *testing.T, img fixture.Image, to *fixture.Registry, prefix string) fixture.Image {
	t.Helper()
	name := to.Host() + "/" + prefix + img.Reference.Repository
	tag := name + ":" + img.Reference.Tag
	c.command(t).run(t, c.env, append(slices.Clone(c.args), img.Reference.Name()+"@"+img.Descriptor.Digest.String(), tag)...)
	return moved(t, img, tag)
}

// signedImage is an image with one kind of evidence.
type signedImage struct {
	fixture.Image
	artifactType string
	tagged       bool // by cosign's tags; else by referrers
	attested     bool
}

// signEveryWay pushes an image for each kind of evidence.
func signEveryWay(t *testing.T, origin *fixture.Registry) (images map[string]signedImage, public []byte) {
	t.Helper()
	v2, v3 := cosignV2(t), cosignV3(t)
	key := v2.generate(t)
	images = map[string]signedImage{
		"v2, tag":      {push(t, origin, repository, "v1"), typeTag, true, true},
		"v2, referrer": {push(t, origin, repository, "v2"), typeReferrer, false, false},
		"v3, bundle":   {push(t, origin, repository, "v3"), typeBundle, false, true},
	}
	v2Tag().sign(t, v2, key, images["v2, tag"].Image)
	v2Tag().attest(t, v2, key, images["v2, tag"].Image)
	v2Referrer().sign(t, v2, key, images["v2, referrer"].Image)
	v3Bundle().sign(t, v3, key, images["v3, bundle"].Image)
	v3Bundle().attest(t, v3, key, images["v3, bundle"].Image)
	return images, key.public
}

// mirrored returns what reads images of origin at copies in mirror.
func mirrored(origin, mirror *fixture.Registry, prefix string, trusted []byte) elsewhere {
	e := elsewhere{origin: origin, others: []*fixture.Registry{mirror}, trusted: trusted}
	e.store.Mirrors = []v1beta1.Mirror{{Host: mirror.Host(), Path: prefix + "{repository}"}}
	return e
}

func TestCopiesAreVerifiedWhereTheyLie(t *testing.T) {
	for where, options := range map[string]fixture.RegistryOptions{"with referrers": {}, "without referrers": {NoReferrers: true}} {
		t.Run(where, func(t *testing.T) {
			origin, mirror := start(t, fixture.RegistryOptions{}), start(t, options)
			images, key := signEveryWay(t, origin)
			for name, c := range map[string]copier{
				"cosign 2 copy": cosign2Copy(), "cosign 3 copy": cosign3Copy(), "oras cp -r": orasCopy(),
				"oras cp": {command: orasCLI, args: []string{"cp", "--from-plain-http", "--to-plain-http"}},
			} {
				for what, img := range images {
					t.Run(name+", "+what, func(t *testing.T) {
						testCopy(t, c, img, origin, mirror, strings.NewReplacer(" ", "/", "-", "").Replace(name)+"/", key)
					})
				}
			}
		})
	}
}

// requireNotAsked fails if a decision asks a registry. What an earlier one no longer waits for may come late, so it is
// decided again for a while.
func requireNotAsked(t *testing.T, origin *fixture.Registry, decide func()) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		origin.Reset()
		decide()
		if origin.Count() == 0 {
			return
		}
		require.True(t, time.Now().Before(end), "the origin is asked")
	}
}

// testCopy copies img and asks about the copy under its new name, and as a mirror: while
// the origin is down, and then with the origin's evidence too.
func testCopy(t *testing.T, c copier, img signedImage, origin, mirror *fixture.Registry, prefix string, key []byte) {
	origin.SetIntercept(nil)
	copied := c.copy(t, img.Image, mirror, prefix)
	origin.SetIntercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	renamed, at := elsewhere{origin: mirror, trusted: key}, mirrored(origin, mirror, prefix, key)
	origin.Reset()
	if c.tags && img.tagged || c.referrers && !img.tagged {
		requireAllowed(t, img.artifactType, renamed.decide(t, byKey(trusted), copied.Reference))
		requireAllowed(t, img.artifactType, at.decide(t, byKey(trusted), img.Reference))
		requireAllowed(t, img.artifactType, at.decide(t, byKey(trusted), img.Reference.WithTag(img.Reference.Tag)))
		if img.attested {
			require.Equal(t, "allowed", renamed.decide(t, ownType(), copied.Reference).Verdict.Outcome().String())
			require.Equal(t, "allowed", at.decide(t, ownType(), img.Reference).Verdict.Outcome().String())
		}
		requireNotAsked(t, origin, func() { at.decide(t, byKey(trusted), img.Reference) })
		return
	}
	requireDeniedWithoutSignature(t, renamed.decide(t, byKey(trusted), copied.Reference))
	denied := at.decide(t, byKey(trusted), img.Reference)
	requireDeniedWithoutSignature(t, denied)
	require.Contains(t, denied.Verdict.Reason, copied.Reference.Name()+": nothing")
	requireNotAsked(t, origin, func() { at.decide(t, byKey(trusted), img.Reference) })

	at.store.Mirrors[0].Fallback = v1beta1.MirrorFallbackOrigin
	require.Equal(t, "undecided", at.decide(t, byKey(trusted), img.Reference).Verdict.Outcome().String(), "it may have what the copy lacks")
	origin.SetIntercept(nil)
	requireAllowed(t, img.artifactType, at.decide(t, byKey(trusted), img.Reference))
}

// A rule about the signed repository sees the name of the image, not the mirror's.
func TestAMirrorKeepsTheNameThatWasSigned(t *testing.T) {
	origin, mirror, v2 := start(t, fixture.RegistryOptions{}), start(t, fixture.RegistryOptions{}), cosignV2(t)
	key := v2.generate(t)
	img := push(t, origin, repository, "v1")
	v2Tag().sign(t, v2, key, img)
	copied := cosign2Copy().copy(t, img, mirror, "hub/")

	spec := byKey(trusted)
	spec.Cosign.MatchRepository = true
	requireAllowed(t, typeTag, mirrored(origin, mirror, "hub/", key.public).decide(t, spec, img.Reference))
	requireDenied(t, "WrongRepository", elsewhere{origin: mirror, trusted: key.public}.decide(t, spec, copied.Reference))
}

// cosign copy reads signatures where the variable says, and writes them next to the copy.
func TestCosignCopyBringsTagsOfCosignRepositoryNextToTheCopy(t *testing.T) {
	origin, mirror, v2 := start(t, fixture.RegistryOptions{}), start(t, fixture.RegistryOptions{}), cosignV2(t)
	key := v2.generate(t)
	img := push(t, origin, repository, "v1")
	flat := origin.Host() + "/signatures"
	v2Tag().into(flat).sign(t, v2, key, img)
	c := cosign2Copy()
	c.env = []string{"COSIGN_REPOSITORY=" + flat}
	copied := c.copy(t, img, mirror, "")
	requireAllowed(t, typeTag, elsewhere{origin: mirror, trusted: key.public}.decide(t, byKey(trusted), copied.Reference))
}

// cosign copy tags the image itself "sha256-<hex>": the tag that lists referrers where
// there is no API for it. For an index, the list of its platforms is then taken for one of
// referrers, and cosign appends to it.
func TestAnImageUnderTheTagOfReferrersIsNoEvidence(t *testing.T) {
	for name, options := range map[string]fixture.RegistryOptions{"with referrers": {}, "without referrers": {NoReferrers: true}} {
		t.Run(name, func(t *testing.T) {
			origin, mirror, v3 := start(t, fixture.RegistryOptions{}), start(t, options), cosignV3(t)
			key := v3.generate(t)
			platform := push(t, origin, repository, "amd64")
			index, err := origin.PushIndex(t.Context(), repository, "v1", platform)
			require.NoError(t, err)
			copied := cosign2Copy().copy(t, index, mirror, "")
			e := elsewhere{origin: mirror, trusted: key.public}
			for _, img := range []fixture.Image{copied, moved(t, platform, copied.Reference.Name())} {
				requireDeniedWithoutSignature(t, e.decide(t, byKey(trusted), img.Reference))
				requireDeniedWithoutSignature(t, mirrored(origin, mirror, "", key.public).decide(t, byKey(trusted), moved(t, img, index.Reference.Name()).Reference))
			}
			v3Bundle().sign(t, v3, key, copied)
			requireAllowed(t, typeBundle, e.decide(t, byKey(trusted), copied.Reference))
		})
	}
}

func TestACopyOfAnIndexBringsSignaturesOfItsPlatforms(t *testing.T) {
	origin, v2, v3 := start(t, fixture.RegistryOptions{}), cosignV2(t), cosignV3(t)
	key := v2.generate(t)
	platform := push(t, origin, repository, "amd64")
	index, err := origin.PushIndex(t.Context(), repository, "v1", platform)
	require.NoError(t, err)
	v2Tag().sign(t, v2, key, platform)
	v3Bundle().sign(t, v3, key, platform)
	for name, c := range map[string]struct {
		copier
		want string
	}{"cosign 2 copy": {cosign2Copy(), typeTag}, "oras cp -r": {orasCopy(), typeBundle}} {
		t.Run(name, func(t *testing.T) {
			mirror := start(t, fixture.RegistryOptions{NoReferrers: true})
			copied := c.copy(t, index, mirror, "")
			e := elsewhere{origin: mirror, trusted: key.public}
			requireAllowed(t, c.want, e.decide(t, byKey(trusted), moved(t, platform, copied.Reference.Name()).Reference))
			requireDeniedWithoutSignature(t, e.decide(t, byKey(trusted), copied.Reference))
			requireAllowed(t, c.want, mirrored(origin, mirror, "", key.public).decide(t, byKey(trusted), platform.Reference))
		})
	}
}
