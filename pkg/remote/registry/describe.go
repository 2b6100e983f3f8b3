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

// No hash covers the headers of an answer, and proxies and registries get them wrong. So describe corrects the
// headers by the content, before oras-go reads the content by its headers. Content with a digest is hashed
// afterwards anyway.
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
	// Content that was listed with a digest is requested by its type alone, with which it is compared.
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
		return nil // else an intermediary sent it, and oras-go refuses it
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
		resp.Header.Set(headerType, ocispec.MediaTypeImageIndex) // its reader names the limit
	case limit && unread == nil:
		resp.Header.Set(headerType, stated)
	case kind != "":
		resp.Header.Set(headerType, kind)
	case intake.IsIndex(stated) && strings.Contains(askedPath, "/manifests/"):
		return fmt.Errorf("the answer is of the type %s, and is none", stated) // not that there is none
	case intake.IsIndex(stated):
		resp.Header.Set(headerType, "application/json") // it is none, whatever its header says
	case unread != nil:
		resp.Header.Set(headerType, "application/octet-stream")
	}
	return nil
}

// agrees reports whether content at first sight has the form of its media type. Almost all does, and is scanned
// once.
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

// readAll reads the body of an answer, which guard bounds, and replaces it by its content.
func readAll(resp *http.Response) ([]byte, error) {
	if n := resp.ContentLength; 0 < n && n <= maxFirstRead { // the common case: net/http ends the body there
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

// kindOf returns the media type of the content itself, or an error if it exceeds a limit. It takes a turn for
// slow work.
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

// errNotUnderstood is an answer about referrers that is not a list of them. It does not mean that there are
// none.
var errNotUnderstood = errors.New("the answer of the referrers API is not an OCI index")

// notUnderstood is the error for such an answer. As for a missing API, the fallback tag counts then.
func notUnderstood(stated string) error {
	return fmt.Errorf("%w but %.80q: %w", errNotUnderstood, stated, errdef.ErrUnsupported)
}
