package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// No hash covers the headers of an answer, and proxies and registries get them wrong, so describe makes them say
// what the content is, before oras-go decides by them how to read it. Content that has a digest is hashed
// afterwards in any case.
func describe(req *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	algorithm := digest.Canonical
	askedPath := askedFor(req)
	if asked, err := digest.Parse(path.Base(askedPath)); err == nil {
		algorithm = asked.Algorithm()
	}
	if stated, err := digest.Parse(resp.Header.Get(headerDigest)); err != nil || stated.Algorithm() != algorithm {
		resp.Header.Del(headerDigest) // it is optional
	}
	if req.Method != http.MethodGet || !isMetadata(askedPath) {
		return nil
	}
	stated, _, unread := mime.ParseMediaType(resp.Header.Get(headerType))
	accepted := req.Header.Get("Accept")
	// What was listed with a digest is asked for by its type alone, with which the content is compared.
	listed := strings.Contains(askedPath, "/manifests/") && accepted != "" && !strings.Contains(accepted, ",")
	if listed && intake.IsDocument(stated) {
		resp.Header.Set(headerType, accepted)
		return nil
	}
	content, err := readAll(resp)
	if err != nil {
		return err
	}
	if listed {
		if algorithm.Available() && string(algorithm.FromBytes(content)) == path.Base(askedPath) {
			resp.Header.Set(headerType, accepted)
		}
		return nil // else it is a page of somebody between, which oras-go refuses
	}
	if unread == nil && agrees(stated, content) {
		resp.Header.Set(headerType, stated)
		return nil
	}
	kind, limit, err := kindOf(req, content)
	if err != nil {
		return err
	}
	switch {
	case limit && strings.Contains(askedPath, "/referrers/"):
		resp.Header.Set(headerType, ocispec.MediaTypeImageIndex) // whoever reads it says which limit
	case limit && unread == nil:
		resp.Header.Set(headerType, stated)
	case kind != "":
		resp.Header.Set(headerType, kind)
	case intake.IsIndex(stated) && strings.Contains(askedPath, "/manifests/"):
		return fmt.Errorf("the answer is of the type %s, and is none", stated) // not that there is none
	case intake.IsIndex(stated):
		resp.Header.Set(headerType, "application/json") // it is none, whatever it says
	case unread != nil:
		resp.Header.Set(headerType, "application/octet-stream")
	}
	return nil
}

// agrees reports whether content has at first sight what its media type says. Nearly all has, and is scanned once.
func agrees(mediaType string, content []byte) bool {
	if !bytes.Contains(content, []byte(mediaType)) {
		return false
	}
	manifests, layers := bytes.Contains(content, []byte(`"manifests"`)), bytes.Contains(content, []byte(`"layers"`))
	if intake.IsIndex(mediaType) {
		return manifests && !layers
	}
	return intake.IsDocument(mediaType) && layers && !manifests
}

const (
	headerDigest = "Docker-Content-Digest"
	headerType   = "Content-Type"
)

// readAll reads the body of an answer, which guard bounds, and puts what it read in its place.
func readAll(resp *http.Response) ([]byte, error) {
	if n := resp.ContentLength; 0 < n && n <= maxFirstRead { // as nearly all: net/http ends the body there
		content := make([]byte, n)
		if _, err := io.ReadFull(answer{resp.Body}, content); err != nil {
			return nil, err
		}
		resp.Body = readBytes{bytes.NewReader(content), resp.Body}
		return content, nil
	}
	read, err := readSized(answer{resp.Body}, min(resp.ContentLength, verify.MaxManifestBytes))
	if err != nil {
		return nil, err
	}
	resp.Body = readBytes{bytes.NewReader(read.Bytes()), resp.Body}
	if !openEnded(resp) {
		resp.ContentLength = int64(read.Len())
	}
	return read.Bytes(), nil
}

// readBytes is a body that was read.
type readBytes struct {
	io.Reader
	io.Closer
}

// kindOf returns the media type that content has by itself, or that it is past a limit. What takes time is looked
// at in turns.
func kindOf(req *http.Request, content []byte) (kind string, limit bool, err error) {
	if len(content) > scannedAtOnce {
		_, leave, err := verify.TakeTurn(req.Context())
		if err != nil {
			return "", false, err
		}
		defer leave()
	}
	kind, err = intake.Kind(content)
	return kind, err != nil, nil
}

// errNotUnderstood is an answer about referrers that is no list of them. It does not say that there are none.
var errNotUnderstood = errors.New("the answer of the referrers API is not an OCI index")

// notUnderstood is the error for such an answer. Like a missing API, it makes the fallback tag count.
func notUnderstood(stated string) error {
	return fmt.Errorf("%w but %.80q: %w", errNotUnderstood, stated, errdef.ErrUnsupported)
}
