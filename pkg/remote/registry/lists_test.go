package registry_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

// oras-go reads the media type of the fallback tag without its parameters and in any case.
func TestAListIsScannedHoweverItsMediaTypeIsSpelled(t *testing.T) {
	list := `{"schemaVersion":2,"manifests":[` + strings.Repeat("{},", 300_000) + `{}]}`
	for _, mediaType := range []string{ocispec.MediaTypeImageIndex + "; charset=utf-8", strings.ToUpper(ocispec.MediaTypeImageIndex)} {
		t.Run(mediaType, func(t *testing.T) {
			h := hostile.New()
			t.Cleanup(h.Close)
			h.Handle("", "/referrers/", hostile.Status(http.StatusNotFound))
			h.Handle("", "/manifests/sha256-"+someDigest.Encoded(), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", mediaType)
				w.Header().Set("Content-Length", strconv.Itoa(len(list)))
				w.Header().Set("Docker-Content-Digest", digest.FromString(list).String())
				_, _ = io.WriteString(w, list)
			})
			h.Handle("", ".sig", hostile.Status(http.StatusNotFound))
			s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
			var err error
			took := memory.Allocated(func() { _, err = s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String())) })
			t.Logf("%d MiB, %v", took>>20, err)
			require.Equal(t, policy.ReasonLimitExceeded, reason(t, err), err)
			require.Less(t, took, 16<<20)
		})
	}
}

// A list that keeps its annotations keeps up to a manifest's size for each image in work.
func TestAListKeepsLittleOfEachDescriptor(t *testing.T) {
	var entries []string
	for i := range 60 {
		entries = append(entries, fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":2,"artifactType":%q,"annotations":{"x":%q}}`, ocispec.MediaTypeImageManifest,
			digest.FromString(fmt.Sprint(i)), strings.Repeat("t", 8000), strings.Repeat("a", 8000)))
	}
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", ".sig", hostile.Status(http.StatusNotFound))
	h.Handle("", "/referrers/", answering(ocispec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[`+strings.Join(entries, ",")+`]}`))
	h.Handle("", "/manifests/sha256-"+someDigest.Encoded(), hostile.Status(http.StatusNotFound))
	h.Handle("", ".sig", hostile.Status(http.StatusNotFound))
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	found, err := s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.NoError(t, err)
	kept := 0
	for _, d := range found {
		kept += len(d.MediaType) + len(d.ArtifactType) + len(d.Digest)
		for k, v := range d.Annotations {
			kept += len(k) + len(v)
		}
	}
	require.Len(t, found, 60)
	require.Less(t, kept, 64<<10)
}

// Anyone who can push a manifest under another digest algorithm, which the registry then
// states, must not make a list that stopped at its limit pass for complete.
func TestAListPastItsLimitSaysSoBesideAnotherFailure(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	manifest := `{"schemaVersion":2}`
	h.Handle("", ".sig", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", digest.SHA512.FromString(manifest).String())
		_, _ = io.WriteString(w, manifest)
	})
	h.Handle("", "/referrers/", hostile.LongList(100))
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	_, err := s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.True(t, verify.FindingOf(err).Incomplete, "%v", err)
}

// oras-go asks for the length of an answer that states none, and the list has a turn.
func TestAListWithoutALengthNeedsNoOtherRequest(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "", hostile.Status(http.StatusNotFound))
	h.Handle("", "/manifests/sha256-"+someDigest.Encoded(), func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			t.Errorf("%s of the list", req.Method)
		}
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		_, _ = io.WriteString(w, `{"schemaVersion":2,"manifests":`)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, `[]}`)
	})
	h.Handle("", ".sig", hostile.Status(http.StatusNotFound))
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	found, err := s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.NoError(t, err)
	require.Empty(t, found)
}
