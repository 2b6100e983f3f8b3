package cosign

import (
	"context"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Media types of the layers that hold signatures.
const (
	// MediaTypeSimpleSigning is a legacy payload, whose signature is an annotation of
	// the layer.
	MediaTypeSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	// MediaTypeBundle is a Sigstore bundle v0.3, which cosign v3 writes.
	MediaTypeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"

	mediaTypeBundleOld = "application/vnd.dev.sigstore.bundle+json;version=0."
)

func isBundle(mediaType string) bool {
	switch mediaType {
	case MediaTypeBundle, mediaTypeBundleOld + "1", mediaTypeBundleOld + "2", mediaTypeBundleOld + "3":
		return true
	}
	return false
}

// checkSubject refuses an image without a SHA-256 digest, or with two digests.
func checkSubject(subject verify.Subject) error {
	d := subject.Descriptor.Digest
	if d != subject.Reference.Digest || d.Validate() != nil || d.Algorithm() != digest.SHA256 {
		return malformed("the image to check has no single sha256 digest")
	}
	return nil
}

// read fetches a layer of at most limit bytes. what names the layer in refusals.
func read(ctx context.Context, fetch verify.Fetch, layer ocispec.Descriptor, what string, limit int) ([]byte, error) {
	if layer.Size > int64(limit) {
		return nil, limitExceeded(what, limit)
	}
	data, err := fetch(ctx, layer, int64(limit))
	switch {
	case verify.HasReason(err, policy.ReasonContentMismatch):
		return nil, tampered("the content of the " + what + " is not what its digest says")
	case err != nil:
		return nil, err
	case len(data) == 0:
		return nil, malformed("the " + what + " is empty")
	case len(data) > limit:
		return nil, limitExceeded(what, limit)
	case digest.FromBytes(data) != layer.Digest:
		return nil, tampered("the content of the " + what + " is not what its digest says")
	}
	return data, nil
}
