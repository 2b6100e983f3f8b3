//go:build nightly

package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// impostor is a registry that claims to have every image that it is asked for, all with the same evidence,
// so that nothing about them is cached.
type impostor struct {
	server    *httptest.Server
	blobs     map[digest.Digest][]byte
	tagged    []byte // the manifest under every signature tag
	referrers []byte // the list of every image
	hang      bool   // never answers
	// made makes the evidence of an image, of which the latest are kept, and its media type.
	made func(subject digest.Digest) (mediaType string, content []byte, err error)

	mu     sync.Mutex
	latest []digest.Digest // of blobs
}

// kept is how many blobs that made has made are kept: of more images at a time nobody asks.
const kept = 128

// make returns the list of an image whose evidence is made for it.
func (r *impostor) make(subject digest.Digest) ([]byte, error) {
	mediaType, content, err := r.made(subject)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	put := func(mediaType string, content []byte) ocispec.Descriptor {
		made := r.put(mediaType, content)
		if r.latest = append(r.latest, made.Digest); len(r.latest) > kept {
			delete(r.blobs, r.latest[0])
			r.latest = r.latest[1:]
		}
		return made
	}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: ocispec.DescriptorEmptyJSON, Layers: []ocispec.Descriptor{put(mediaType, content)}}
	m.SchemaVersion = 2
	if !strings.HasPrefix(mediaType, "application/vnd.dev.sigstore") {
		m.ArtifactType = "application/vnd.cncf.notary.signature"
		m.Config.MediaType = m.ArtifactType
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	described := put(ocispec.MediaTypeImageManifest, text)
	described.ArtifactType = cmp.Or(m.ArtifactType, mediaType)
	list := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{described}}
	list.SchemaVersion = 2
	return json.Marshal(list)
}

// blob returns what is kept under a digest.
func (r *impostor) blob(d digest.Digest) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, known := r.blobs[d]
	return content, known
}

func startImpostor(t *testing.T) *impostor {
	t.Helper()
	r := &impostor{blobs: map[digest.Digest][]byte{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(func() { r.server.CloseClientConnections(); r.server.Close() })
	return r
}

func (r *impostor) host() string { return strings.TrimPrefix(r.server.URL, "http://") }

// put keeps content and returns its descriptor.
func (r *impostor) put(mediaType string, content []byte) ocispec.Descriptor {
	d := digest.FromBytes(content)
	r.blobs[d] = content
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}

// refer lists manifests as referrers of every image.
func (r *impostor) refer(t *testing.T, manifests ...[]byte) {
	t.Helper()
	list := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex}
	list.SchemaVersion = 2
	for _, manifest := range manifests {
		list.Manifests = append(list.Manifests, r.put(ocispec.MediaTypeImageManifest, manifest))
	}
	var err error
	r.referrers, err = json.Marshal(list)
	require.NoError(t, err)
}

// manifest returns one with the given layers.
func manifest(t *testing.T, layers ...ocispec.Descriptor) []byte {
	t.Helper()
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: ocispec.DescriptorEmptyJSON, Layers: layers}
	m.SchemaVersion = 2
	text, err := json.Marshal(m)
	require.NoError(t, err)
	return text
}

func (r *impostor) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := request.URL.Path
	name := path[strings.LastIndexByte(path, '/')+1:]
	content, known := r.blob(digest.Digest(name))
	switch {
	case r.hang:
		<-request.Context().Done()
	case strings.Contains(path, "/referrers/") && r.made != nil:
		list, err := r.make(digest.Digest(name))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, ocispec.MediaTypeImageIndex, list)
	case strings.Contains(path, "/referrers/") && r.referrers != nil:
		answer(w, ocispec.MediaTypeImageIndex, r.referrers)
	case known:
		answer(w, ocispec.MediaTypeImageManifest, content)
	case strings.Contains(path, "/manifests/sha256-") && strings.HasSuffix(path, ".sig") && r.tagged != nil:
		answer(w, ocispec.MediaTypeImageManifest, r.tagged)
	case strings.Contains(path, "/manifests/sha256:") && request.Method == http.MethodHead:
		w.Header().Set("Docker-Content-Digest", name)
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Content-Length", "512")
	default:
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
	}
}

func answer(w http.ResponseWriter, mediaType string, content []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(content).String())
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	_, _ = w.Write(content)
}
