//go:build !e2e && !nightly

package evidence

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

const victim = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}`

// sigManifest is a ".sig" manifest of layers of a size that is only claimed.
func sigManifest(layers int, size int64) string {
	list := make([]string, layers)
	for i := range list {
		list[i] = fmt.Sprintf(`{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","digest":"%s","size":%d,`+
			`"annotations":{"dev.cosignproject.cosign/signature":"AAAA"}}`, digest.FromString(fmt.Sprint(i)), size)
	}
	return `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[` + strings.Join(list, ",") + `]}`
}

// Whatever a registry does, nothing of its is allowed, and it costs little.
func TestAHostileRegistryGetsNothingIn(t *testing.T) {
	octets := "application/octet-stream"
	cases := map[string]struct {
		part    string
		handler http.HandlerFunc
		outcome policy.Outcome
		reason  string
	}{
		"endless pages":                  {"/referrers/", hostile.EndlessPages(1), policy.Denied, "more than 64 referrers"},
		"a million referrers":            {"/referrers/", hostile.EndlessPages(1_000), policy.Denied, "more than 64 referrers"},
		"10 GB of payload":               {"/blobs/", hostile.Stream(octets, 10<<30), policy.Denied, ""},
		"payloads that say 10 GB":        {".sig", hostile.Manifest(sigManifest(3, 10<<30)), policy.Denied, ""},
		"payloads of other content":      {"/blobs/", hostile.Stream(octets, 100), policy.Denied, "not what its digest"},
		"a lying digest":                 {".sig", hostile.ManifestAs(sigManifest(1, 100), digest.FromString("x")), policy.Denied, "not what its digest says"},
		"10,000 signatures":              {".sig", hostile.Manifest(sigManifest(3_000, 100)), policy.Denied, "has more than"},
		"no layers":                      {".sig", hostile.Manifest(sigManifest(0, 0)), policy.Denied, "no layers"},
		"garbage":                        {".sig", hostile.Manifest("{{{"), policy.Denied, "not an OCI manifest"},
		"payloads in drips":              {"/blobs/", hostile.Drip(octets, 100, 100*time.Millisecond), policy.Undecided, "did not answer in time"},
		"no answer to the list":          {"/referrers/", hostile.Hang, policy.Undecided, "did not answer in time"},
		"no answer to the image":         {"/manifests/sha256:", hostile.Hang, policy.Undecided, "did not answer in time"},
		"429 with Retry-After":           {"/manifests/sha256:", hostile.Status(429, "Retry-After: 60"), policy.Undecided, "429"},
		"503":                            {"/manifests/sha256:", hostile.Status(503), policy.Undecided, "503"},
		"dropped connections":            {"/manifests/sha256:", hostile.Drop, policy.Undecided, "connection"},
		"no such image":                  {"/manifests/sha256:", hostile.Status(404), policy.Denied, "no such image"},
		"another image for the digest":   {"/manifests/sha256:", hostile.Manifest("{}"), policy.Denied, ""},
		"a redirect to a metadata host":  {"/blobs/", hostile.Status(307, "Location: http://169.254.169.254/"), policy.Denied, "without TLS"},
		"an index that refers to itself": {"/referrers/", selfReferring(), policy.Denied, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hostile.New()
			t.Cleanup(h.Close)
			h.Handle("", ".sig", hostile.Manifest(sigManifest(2, 100)))
			h.Handle("", "/manifests/sha256:", hostile.Manifest(victim))
			h.Handle("", c.part, c.handler)
			e := newEnvironment(t, fixture.RegistryOptions{})
			if strings.Contains(c.reason, "in time") {
				e.start(t, service.Options{Registry: registry.Options{RequestTimeout: 2 * time.Second}})
			}
			store := func(o *resource.Objects) {
				s := &v1beta1.ClusterStore{Spec: v1beta1.StoreSpec{Registries: []string{h.Host()}, InsecurePlainHTTP: true}}
				s.Name = "hostile"
				o.Resources = append(o.Resources, s)
			}
			require.Empty(t, e.apply(t, store, e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
			ref, err := image.Parse(h.Host() + "/app@" + digest.FromString(victim).String())
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var verdict policy.Verdict
			took := memory.Allocated(func() { verdict = e.Verify(ctx, "team-a", ref).Verdict })
			require.NoError(t, ctx.Err(), "the engine gives up by itself")
			requireOutcome(t, c.outcome, verdict)
			require.Contains(t, verdict.Reason, c.reason)
			require.Less(t, took, 256<<20, "all parallel cases together")
		})
	}
}

// selfReferring lists the list itself as a referrer.
func selfReferring() http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":"%s","manifests":[{"mediaType":"%s","digest":"%s","size":%d}]}`,
			ocispec.MediaTypeImageIndex, ocispec.MediaTypeImageManifest, digest.FromString(victim), len(victim))
	}
}
