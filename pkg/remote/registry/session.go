package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// session reaches registries for one tenant. It implements [verify.Registry].
type session struct {
	client *Client
	access Access
	worked worked
}

// Resolve implements [verify.Repository]. It sends HEAD, and GET if the answer lacks the
// digest or size.
func (p *location) Resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	return tryLogins(p, true, func(p *location) (ocispec.Descriptor, error) { return p.resolve(ctx, ref) }, whole)
}

func (p *location) resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	repository, err := p.repository(StageResolve, nil)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("cannot look up %s: %w", ref, err)
	}
	name := reference(ref)
	descriptor, err := attempt(ctx, func() (ocispec.Descriptor, error) {
		descriptor, err := repository.Manifests().Resolve(ctx, name)
		if err != nil && headUnusable(err) || err == nil && (!intake.IsDocument(descriptor.MediaType) || descriptor.Size <= 0) {
			descriptor, _, err = fetchManifest(ctx, repository, name)
		}
		return descriptor, err
	})
	if err == nil && ref.Digest != "" && descriptor.Digest != ref.Digest {
		err = mismatch(ref.Digest, descriptor.Digest)
	}
	return descriptor, p.explain(err, "look up "+p.of(ref, ref.String()))
}

// headUnusable reports whether the answer to HEAD is useless: it lacks a required header, or
// the registry does not support HEAD.
func headUnusable(err error) bool {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		if response.Method != http.MethodHead {
			return false // the token server's
		}
		switch response.StatusCode {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			return true
		}
		return false
	}
	return !verify.IsPermanent(err) && !connectionFailed(err)
}

// Fetch implements [verify.Repository].
func (p *location) Fetch(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	doing := fmt.Sprintf("fetch %s from %s", desc.Digest, p.at.Name())
	switch {
	case desc.Size < 0 || desc.Size > limit:
		return nil,
			verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("cannot %s: it is %d bytes large, the limit is %d", doing, desc.Size, limit))
	case desc.Digest.Validate() != nil:
		return nil,
			verify.Permanent(policy.ReasonContentMismatch, fmt.Errorf("cannot fetch from %s: %.80q is not a digest", p.at.Name(), desc.Digest))
	}
	return tryLogins(p, false, func(p *location) ([]byte, error) { return p.fetch(ctx, desc, doing) }, whole)
}

func (p *location) fetch(ctx context.Context, desc ocispec.Descriptor, doing string) ([]byte, error) {
	open := false
	repository, err := p.repository(StageFetch, &open)
	if err != nil {
		return nil, fmt.Errorf("cannot %s: %w", doing, err)
	}
	fetched, err := attempt(ctx, func() ([]byte, error) {
		body, err := repository.Fetch(ctx, desc)
		if err != nil {
			return nil, err
		}
		return readContent(ctx, body, desc, &open)
	})
	return fetched, p.explain(err, doing)
}

// readContent reads and closes body, and checks it against desc. Only a complete body proves
// that content differs from its digest: one that ends with an error, or with the connection,
// may be truncated. A body that is shorter than its size counts if it has the digest: some
// registries list wrong sizes.
func readContent(ctx context.Context, body io.ReadCloser, desc ocispec.Descriptor, open *bool) ([]byte, error) {
	defer func() { _ = body.Close() }() // the digest decides, whatever the header says
	read, err := readSized(io.LimitReader(body, desc.Size+1), desc.Size)
	switch {
	case err != nil:
		return nil, err
	case int64(read.Len()) < desc.Size && *open:
		return nil, errShort
	case int64(read.Len()) > desc.Size:
		return nil,
			verify.Permanent(policy.ReasonContentMismatch,
				fmt.Errorf("the content is not what its digest says: it has more than the %d bytes of its descriptor", desc.Size))
	}
	computed, err := hash(ctx, desc.Digest.Algorithm(), read.Bytes())
	switch {
	case err != nil:
		return nil, err
	case computed != desc.Digest:
		return nil, mismatch(desc.Digest, computed)
	}
	return read.Bytes(), nil
}

// readSized reads all of r, which may have the stated size. It allocates that size when enough
// data has arrived, since a stated size must not cost memory.
func readSized(r io.Reader, size int64) (read bytes.Buffer, err error) {
	read.Grow(int(min(size, maxFirstRead)) + bytes.MinRead)
	if _, err := io.CopyN(&read, r, maxFirstRead); err != nil {
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		return read, err
	}
	read.Grow(int(max(size-maxFirstRead, 0)) + bytes.MinRead)
	_, err = read.ReadFrom(r)
	return read, err
}

// hash returns the digest of content. It takes a turn for large content, since registries
// decide its size.
func hash(ctx context.Context, algorithm digest.Algorithm, content []byte) (digest.Digest, error) {
	if len(content) <= hashedAtOnce {
		return algorithm.FromBytes(content), nil
	}
	ctx, leave, err := verify.TakeTurn(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	digester := algorithm.Digester()
	for chunk := range slices.Chunk(content, hashedAtOnce) {
		_, _ = digester.Hash().Write(chunk) // it never fails (package hash)
		if err := verify.Step(ctx); err != nil {
			return "", err
		}
	}
	return digester.Digest(), nil
}

// fetchManifest reads a manifest by tag or digest and hashes it: the digest that the registry
// states proves nothing.
func fetchManifest(ctx context.Context, repository *remote.Repository, reference string) (ocispec.Descriptor, []byte, error) {
	descriptor, body, err := repository.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	read, err := readSized(body, min(descriptor.Size, verify.MaxManifestBytes)) // guard bounds it
	if err := errors.Join(err, body.Close()); err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	computed, err := hash(ctx, digest.Canonical, read.Bytes())
	switch {
	case err != nil:
		return ocispec.Descriptor{}, nil, err
	case computed == descriptor.Digest:
	case int64(read.Len()) < descriptor.Size:
		return ocispec.Descriptor{}, nil, errShort
	default:
		return ocispec.Descriptor{}, nil, mismatch(descriptor.Digest, computed)
	}
	descriptor.Size = int64(read.Len())
	return descriptor, read.Bytes(), nil
}

// repository returns oras-go's client for the location: for content, if open is set; see [answers].
func (p *location) repository(stage Stage, open *bool) (*remote.Repository, error) {
	host, store := p.at.Host, p.store
	if store.Broken != nil {
		return nil, store.Broken
	}
	credential := p.credential
	rule, _ := p.access.rule(host)
	client := &auth.Client{
		Client: &http.Client{
			Transport: answers{guard: &guard{session: p.session, origin: host, named: p.named, stage: stage, store: store,
				credential: credential}, open: open},
			CheckRedirect: checkRedirect, Timeout: p.client.options.RequestTimeout},
		Cache: p.client.tokenCache(p.access, host, credential),
		Credential: func(_ context.Context, hostport string) (auth.Credential, error) {
			if hostOf(&url.URL{Host: hostport}) != host {
				return auth.EmptyCredential, nil
			}
			return auth.Credential{Username: credential.Username, Password: credential.Password,
				RefreshToken: credential.IdentityToken, AccessToken: credential.RegistryToken}, nil
		},
	}
	if p.client.options.UserAgent != "" {
		client.SetUserAgent(p.client.options.UserAgent)
	}
	return &remote.Repository{
		Client:    client,
		Reference: orasregistry.Reference{Registry: host, Repository: p.at.Repository},
		PlainHTTP: rule.PlainHTTP,
		// guard's limit comes first, so that an oversized answer is not reported as
		// truncated.
		MaxMetadataBytes:     2 * maxManifestBytes,
		ReferrerListMaxPages: maxReferrerPages,
	}, nil
}

// reference returns the digest of ref, or its tag if it has none.
func reference(ref image.Reference) string {
	if ref.Digest != "" {
		return ref.Digest.String()
	}
	return ref.Tag
}
