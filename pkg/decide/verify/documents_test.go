package verify_test

import (
	"fmt"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// An image that one reader takes for an index of signed manifests, and a container runtime
// for an image of its own layers.
func TestADocumentOfTwoKindsIsNotProvenByItsManifests(t *testing.T) {
	amd := part("amd64")
	listed := fmt.Sprintf(`"manifests":[{"mediaType":%q,"digest":%q,"size":2}]`, amd.MediaType, amd.Digest)
	for name, c := range map[string]struct {
		content string
		outcome policy.Outcome
	}{
		"an index":                        {`{"schemaVersion":2,` + listed + `}`, policy.Allowed},
		"with a config":                   {`{"schemaVersion":2,"config":{},` + listed + `}`, policy.Denied},
		"with layers":                     {`{"schemaVersion":2,"layers":[],` + listed + `}`, policy.Denied},
		"with both, in another case":      {`{"schemaVersion":2,"Config":{},"Layers":[],` + listed + `}`, policy.Denied},
		"that says it is a manifest":      {`{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageManifest + `",` + listed + `}`, policy.Denied},
		"with two lists":                  {`{"schemaVersion":2,` + listed + `,"manifests":[]}`, policy.Denied},
		"with two lists, in another case": {`{"schemaVersion":2,` + listed + `,"Manifests":[]}`, policy.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			made := r.put(ocispec.MediaTypeImageIndex, []byte(c.content))
			r.resolved = func(ref image.Reference) ocispec.Descriptor {
				if ref.Digest == made.Digest {
					return made
				}
				return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: ref.Digest, Size: 2}
			}
			r.manifest(t, true, "k1:"+amd.Digest.String())
			l := tier(t, r, anyA, verifier(t, "a", "k1"))
			l.Judge.Rules()[0].IndexManifests = true
			verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(l), ref(t, "r.example.com/app@"+made.Digest.String())).Verdict
			require.Equal(t, c.outcome.String(), verdict.Outcome().String(), verdict.Reason)
		})
	}
}

func TestAnIndexThatRefersToAnImageIsNoEvidence(t *testing.T) {
	good := "k1:" + appDigest.String()
	for name, mediaType := range map[string]string{"listed as an index": ocispec.MediaTypeImageIndex, "listed as a manifest": ocispec.MediaTypeImageManifest} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			payload := r.put(fakeLayer, []byte(good))
			content := fmt.Sprintf(`{"schemaVersion":2,"manifests":[],"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`, payload.MediaType,
				payload.Digest, payload.Size)
			if mediaType == ocispec.MediaTypeImageIndex {
				content = strings.Replace(content, `"manifests":[],`, "", 1)
			}
			r.listed = append(r.listed, r.put(mediaType, []byte(content)))
			verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))),
				ref(t, "r.example.com/app@"+appDigest.String())).Verdict
			require.Equal(t, policy.Denied, verdict.Outcome())
			require.Contains(t, verdict.Reason, "not an OCI manifest")
		})
	}
}

func TestAManifestPastItsLimitsIsNotRead(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, numbered(1001)...)
	verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))),
		ref(t, "r.example.com/app@"+appDigest.String())).Verdict
	require.Equal(t, policy.Denied, verdict.Outcome())
	require.Contains(t, verdict.Reason, "has 1001 layers, the limit is 1000")
}

func TestEqualLayersOfAManifestAreOneSignature(t *testing.T) {
	r := newRegistry()
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = "x"
	}
	r.manifest(t, true, append(texts, "k1:"+appDigest.String())...)
	v := verifier(t, "a", "k1")
	seen := make(chan string, len(texts)+1)
	v.Checker.(*checker).before = func(text string) { seen <- text }
	verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, v)), ref(t, "r.example.com/app@"+appDigest.String())).Verdict
	require.Equal(t, policy.Allowed, verdict.Outcome(), verdict.Reason)
	require.LessOrEqual(t, len(seen), 2)
}
