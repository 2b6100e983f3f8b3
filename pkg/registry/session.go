package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// session reaches registries for one tenant. It implements [verify.Registry].
type session struct {
	client *Client
	access Access
}

// Resolve implements [verify.Registry]. It sends HEAD, and GET if the answer lacks the
// digest or size.
func (s *session) Resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	repository, err := s.repository(ref)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("resolve %s: %w", ref, err)
	}
	name := reference(ref)
	descriptor, err := attempt(ctx, func() (ocispec.Descriptor, error) {
		descriptor, err := repository.Manifests().Resolve(ctx, name)
		if err != nil && headUnusable(err) {
			descriptor, _, err = fetchManifest(ctx, repository, name)
		}
		return descriptor, err
	})
	if err == nil && ref.Digest != "" && descriptor.Digest != ref.Digest {
		err = mismatch(ref.Digest, descriptor.Digest)
	}
	return descriptor, explain(err, "resolve "+ref.String(), ref.Host)
}

// headUnusable reports whether the answer to HEAD says nothing about the manifest: it
// lacks a required header, or the registry does not support HEAD.
func headUnusable(err error) bool {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		return response.StatusCode == http.StatusMethodNotAllowed
	}
	return !verify.IsPermanent(err) && !connectionFailed(err)
}

// Referrers implements [verify.Registry]. It reads the signature tag, the attestation tag
// if there are Verifiers of attestations, and the referrers API or its fallback tag, in
// parallel.
func (s *session) Referrers(ctx context.Context, subject image.Reference) ([]ocispec.Descriptor, error) {
	if subject.Digest == "" {
		return nil, verify.Permanent(policy.ReasonNoDigest, fmt.Errorf("list referrers of %s: it has no digest", subject))
	}
	repository, err := s.repository(subject)
	if err != nil {
		return nil, fmt.Errorf("list referrers of %s: %w", subject, err)
	}
	var signed, attested, referring []ocispec.Descriptor
	var signedErr, attestedErr, listErr error
	var all sync.WaitGroup
	all.Go(func() { signed, signedErr = s.evidenceTag(ctx, repository, subject, ".sig") })
	if s.access.Attestations {
		all.Go(func() { attested, attestedErr = s.evidenceTag(ctx, repository, subject, ".att") })
	}
	all.Go(func() { referring, listErr = s.referrers(ctx, repository, subject) })
	all.Wait()
	return dedupe(slices.Concat(signed, attested, referring)), errors.Join(signedErr, attestedErr, listErr)
}

// evidenceTag returns the manifest under one of cosign's tags, "sha256-<hex>.sig"
// or "….att", with its content.
func (s *session) evidenceTag(ctx context.Context, repository *remote.Repository, subject image.Reference, suffix string) ([]ocispec.Descriptor, error) {
	tag := subject.Digest.Algorithm().String() + "-" + subject.Digest.Encoded() + suffix
	found, err := attempt(ctx, func() ([]ocispec.Descriptor, error) {
		descriptor, content, err := fetchManifest(ctx, repository, tag)
		if err != nil {
			return nil, err
		}
		descriptor.Data = content
		return []ocispec.Descriptor{descriptor}, nil
	})
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, nil
	}
	return found, explain(err, "read tag "+tag+" of "+subject.Name(), subject.Host)
}

// referrers asks the API (OCI distribution specification, "Listing Referrers") or, if the
// host is known not to have it, the fallback tag ("Referrers Tag Schema").
func (s *session) referrers(ctx context.Context, repository *remote.Repository, subject image.Reference) ([]ocispec.Descriptor, error) {
	host := s.client.host(subject.Host)
	capable, known := host.recall(time.Now())
	found, err := attempt(ctx, func() ([]ocispec.Descriptor, error) {
		if known {
			return listReferrers(ctx, repository, subject, capable)
		}
		return probeReferrers(ctx, host, repository, subject)
	})
	if errors.Is(err, errEnough) || errors.Is(err, errdef.ErrTooManyPages) {
		return found, verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s has more than %d referrers or %d pages of them, the rest is not read",
			subject.Name(), maxReferrers, maxReferrerPages))
	}
	return found, explain(err, "list referrers of "+subject.String(), subject.Host)
}

// probeReferrers lists from a host that may or may not have the API. It asks for the
// fallback tag in parallel: one more request now and then, instead of a second round trip.
func probeReferrers(ctx context.Context, host *hostState, repository *remote.Repository, subject image.Reference) ([]ocispec.Descriptor, error) {
	type answer struct {
		found []ocispec.Descriptor
		err   error
	}
	tagged := make(chan answer, 1)
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		var a answer
		defer func() {
			if r := recover(); r != nil {
				a.err = fmt.Errorf("internal error: %v", r)
			}
			tagged <- a
		}()
		a.found, a.err = listReferrers(limited, repository, subject, false)
	}()
	found, err := listReferrers(ctx, repository, subject, true)
	switch {
	case err == nil, errors.Is(err, errEnough):
		host.remember(true, time.Now())
		return found, err
	case !unsupported(err):
		return found, err
	}
	fallback := <-tagged // it ends with ctx
	if fallback.err == nil {
		host.remember(false, time.Now())
	}
	return fallback.found, fallback.err
}

// errEnough ends a listing at its limit.
var errEnough = errors.New("enough referrers")

// unsupported reports whether an answer means that the registry has no referrers API.
func unsupported(err error) bool {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		switch response.StatusCode {
		case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
			return true
		}
	}
	return errors.Is(err, errdef.ErrUnsupported)
}

// listReferrers lists without a filter: registries get the artifact types in an index
// wrong.
func listReferrers(ctx context.Context, repository *remote.Repository, subject image.Reference, api bool) ([]ocispec.Descriptor, error) {
	lister := &remote.Repository{Client: repository.Client, Reference: repository.Reference, PlainHTTP: repository.PlainHTTP,
		MaxMetadataBytes: repository.MaxMetadataBytes, ReferrerListMaxPages: repository.ReferrerListMaxPages}
	if err := lister.SetReferrersCapability(api); err != nil {
		return nil, err
	}
	var found []ocispec.Descriptor
	err := lister.Referrers(ctx, ocispec.Descriptor{Digest: subject.Digest}, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if len(found) == maxReferrers {
				return errEnough
			}
			// Only content that we fetch and hash ourselves counts.
			d.Data, d.URLs = nil, nil
			found = append(found, d)
		}
		return nil
	})
	return found, err
}

// dedupe keeps the first of each digest, in order.
func dedupe(descriptors []ocispec.Descriptor) []ocispec.Descriptor {
	seen := map[digest.Digest]bool{}
	return slices.DeleteFunc(descriptors, func(d ocispec.Descriptor) bool {
		again := seen[d.Digest]
		seen[d.Digest] = true
		return again
	})
}

// Fetch implements [verify.Registry].
func (s *session) Fetch(ctx context.Context, repo image.Reference, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	doing := fmt.Sprintf("fetch %s from %s", desc.Digest, repo.Name())
	switch {
	case desc.Size < 0 || desc.Size > limit:
		return nil, verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s: it is %d bytes large, the limit is %d", doing, desc.Size, limit))
	case desc.Digest.Validate() != nil:
		return nil, verify.Permanent(policy.ReasonContentMismatch, fmt.Errorf("fetch from %s: %.80q is not a digest", repo.Name(), desc.Digest))
	}
	repository, err := s.repository(repo)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	fetched, err := attempt(ctx, func() ([]byte, error) { return content.FetchAll(ctx, repository, desc) })
	return fetched, explain(err, doing, repo.Host)
}

// fetchManifest reads a manifest by tag or digest and hashes it: the digest that the
// registry states proves nothing.
func fetchManifest(ctx context.Context, repository *remote.Repository, reference string) (ocispec.Descriptor, []byte, error) {
	descriptor, body, err := repository.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	var read bytes.Buffer
	_, err = read.ReadFrom(body) // guard bounds it
	if err := errors.Join(err, body.Close()); err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	computed := digest.FromBytes(read.Bytes())
	if computed != descriptor.Digest {
		return ocispec.Descriptor{}, nil, mismatch(descriptor.Digest, computed)
	}
	descriptor.Size = int64(read.Len())
	return descriptor, read.Bytes(), nil
}

// repository returns oras-go's client for ref's repository, for this tenant.
func (s *session) repository(ref image.Reference) (*remote.Repository, error) {
	store := s.store(ref.Host)
	if store.Broken != "" {
		return nil, verify.Permanent(policy.ReasonBrokenResource, errors.New(store.Broken))
	}
	credential := store.Credentials[ref.Host]
	client := &auth.Client{
		Client: &http.Client{Transport: &guard{session: s, origin: ref.Host, store: store},
			CheckRedirect: checkRedirect, Timeout: s.client.options.RequestTimeout},
		Cache: s.client.tokenCache(s.access, ref.Host, credential),
		Credential: func(_ context.Context, hostport string) (auth.Credential, error) {
			if hostOf(&url.URL{Host: hostport}) != ref.Host {
				return auth.EmptyCredential, nil
			}
			return auth.Credential{Username: credential.Username, Password: credential.Password,
				RefreshToken: credential.IdentityToken, AccessToken: credential.RegistryToken}, nil
		},
	}
	if s.client.options.UserAgent != "" {
		client.SetUserAgent(s.client.options.UserAgent)
	}
	return &remote.Repository{
		Client:    client,
		Reference: orasregistry.Reference{Registry: ref.Host, Repository: ref.Repository},
		PlainHTTP: s.access.Hosts[ref.Host].PlainHTTP,
		// guard's limit comes first, so that an oversized answer is not reported as
		// truncated.
		MaxMetadataBytes:     2 * maxManifestBytes,
		ReferrerListMaxPages: maxReferrerPages,
	}, nil
}

// store returns the first store that applies to host; without one, access is anonymous.
func (s *session) store(host string) Store {
	for _, store := range s.access.Stores {
		if slices.Contains(store.Registries, host) || (store.Broken != "" && len(store.Registries) == 0) {
			return store
		}
	}
	return Store{}
}

// reference returns the digest of ref, or its tag if it has none.
func reference(ref image.Reference) string {
	if ref.Digest != "" {
		return ref.Digest.String()
	}
	return ref.Tag
}
