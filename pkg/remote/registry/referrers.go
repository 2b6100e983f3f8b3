package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Referrers implements [verify.Repository]. It reads the signature tag, the attestation tag
// if some Verifier checks attestations, and the referrers API or its fallback tag, in
// parallel.
func (p *location) Referrers(ctx context.Context, subject image.Reference) ([]ocispec.Descriptor, error) {
	if subject.Digest == "" {
		return nil, verify.Permanent(policy.ReasonNoDigest, fmt.Errorf("cannot list the referrers of %s: it has no digest", subject))
	}
	return tryLogins(p, true, func(p *location) ([]ocispec.Descriptor, error) { return p.listAll(ctx, subject) }, listed(ctx, subject))
}

func (p *location) listAll(ctx context.Context, subject image.Reference) ([]ocispec.Descriptor, error) {
	repository, err := p.repository(StageList, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot list the referrers of %s: %w", subject, err)
	}
	var signed, attested, referring []ocispec.Descriptor
	var signedErr, attestedErr, listErr error
	var lacking bool
	var all sync.WaitGroup
	all.Go(func() { signed, signedErr = p.evidenceTag(ctx, repository, subject, ".sig") })
	if p.access.Attestations {
		all.Go(func() { attested, attestedErr = p.evidenceTag(ctx, repository, subject, ".att") })
	}
	all.Go(func() { referring, lacking, listErr = p.referrers(ctx, repository, subject) })
	all.Wait()
	if lacking && len(signed)+len(attested)+len(referring) > 0 { // else the repository may be missing
		p.client.apis.Set(p.apiKey(), false)
	}
	return dedupe(slices.Concat(signed, attested, referring)), join(signedErr, attestedErr, listErr)
}

// evidenceTag returns the manifest under one of cosign's tags, "sha256-<hex>.sig"
// or "….att", with its content.
func (p *location) evidenceTag(ctx context.Context, repository *remote.Repository, subject image.Reference,
	suffix string) ([]ocispec.Descriptor, error) {
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
	return found, p.explain(err, "read the tag "+tag+" of "+p.at.Name())
}

// apiKey identifies registries for which one answer proves the referrers API: one repository,
// for one account.
type apiKey struct {
	account          verify.Account
	host, repository string
}

// apiKey returns the key of the location. For a host that a cluster admin named, it has
// neither account nor repository: one answer counts for all.
func (p *location) apiKey() apiKey {
	if p.access.named(p.at.Host) || p.named {
		return apiKey{host: p.at.Host}
	}
	return apiKey{account: p.access.account(), host: p.at.Host, repository: p.at.Repository}
}

// referrers asks the API (OCI distribution specification, "Listing Referrers"), and reads the fallback tag
// ("Referrers Tag Schema") if the repository lacks the API or is missing.
func (p *location) referrers(ctx context.Context, repository *remote.Repository,
	subject image.Reference) (found []ocispec.Descriptor, lacking bool, err error) {
	key := p.apiKey()
	found, err = attempt(ctx, func() (found []ocispec.Descriptor, err error) {
		found, lacking, err = p.list(ctx, key, repository, subject)
		return found, err
	})
	if errors.Is(err, errEnough) || errors.Is(err, errdef.ErrTooManyPages) {
		return found, lacking,
			verify.PermanentWith(policy.ReasonLimitExceeded, fmt.Errorf("%s has more than %d referrers or %d pages of them, the rest is not read",
				subject.Name(), maxReferrers, maxReferrerPages), "remove superfluous signatures and attestations from the repository")
	}
	return found, lacking, p.explain(err, "list the referrers of "+p.of(subject, subject.String()))
}

// list always asks the API. It only remembers the presence of the API, which saves the
// parallel request for the fallback tag. It does not remember its absence: the answer is the
// same as for a missing repository, and a registry without the API a minute ago may have it
// now, so a signature could be missed. So remembered state never changes an answer, and a
// registry without the API costs one more request, but no more time.
func (p *location) list(ctx context.Context, key apiKey, repository *remote.Repository,
	subject image.Reference) (found []ocispec.Descriptor, lacking bool, err error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	fallback := func() ([]ocispec.Descriptor, error) {
		found, _, err := p.listWith(limited, repository, subject, false)
		return found, err
	}
	if has, _ := p.client.apis.GetIfPresent(key); !has {
		fallback = started(fallback)
	}
	found, pages, err := p.listWith(ctx, repository, subject, true)
	if pages > 0 {
		p.client.apis.Set(key, true)
		return found, false, err
	}
	switch {
	case errors.Is(err, errNotUnderstood):
		p.client.apis.Invalidate(key)
		if found, inTag := fallback(); inTag != nil || len(found) > 0 {
			return found, false, inTag
		}
		return nil, false, err
	case unsupported(err):
		if has, _ := p.client.apis.GetIfPresent(key); has {
			p.client.apis.Invalidate(key)
		}
		lacking = true
	case p.role == verify.RoleOrigin || !missingRepository(err):
		return found, false, err
	}
	found, err = fallback()
	return found, lacking, err
}

// Lacks names the feature that the registry lacked in its last answer, in the last ten minutes, and "" if none is
// known.
func (p *location) Lacks() string {
	if has, known := p.client.apis.GetIfPresent(p.apiKey()); known && !has {
		return "the referrers API"
	}
	return ""
}

// HasReferrers returns whether a host that a cluster admin named had the referrers API in its last answer, in the
// last ten minutes.
func (c *Client) HasReferrers(host string) (has, known bool) {
	return c.apis.GetIfPresent(apiKey{host: host})
}

// missingRepository reports whether the registry says that the repository does not exist. At
// locations other than the image's own, that is not an error: the repository does not exist
// until the first signature is written or the first image is copied there.
func missingRepository(err error) bool {
	var response *errcode.ErrorResponse
	return errors.As(err, &response) && response.StatusCode == http.StatusNotFound && hasCode(response, errcode.ErrorCodeNameUnknown) &&
		ofReferrers(response)
}

// started starts f and returns a function that waits for its results.
func started(f func() ([]ocispec.Descriptor, error)) func() ([]ocispec.Descriptor, error) {
	var found []ocispec.Descriptor
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				found, err = nil, fmt.Errorf("internal error: %v", r)
			}
		}()
		found, err = f()
	}()
	return func() ([]ocispec.Descriptor, error) {
		<-done // it ends with its context
		return found, err
	}
}

// errEnough ends a listing at its limit.
var errEnough = errors.New("enough referrers")

// ofReferrers reports whether an answer is from the API, and not from a token server.
func ofReferrers(response *errcode.ErrorResponse) bool {
	return response.URL != nil && isMetadata(response.URL.Path)
}

// unsupported reports whether the answer for the first page may mean that the registry has
// no referrers API.
func unsupported(err error) bool {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) && ofReferrers(response) {
		switch response.StatusCode {
		case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
			return true
		}
	}
	return errors.Is(err, errdef.ErrUnsupported)
}

// listWith lists by the API or by the fallback tag, without a filter: registries get the
// artifact types in an index wrong. It also returns the number of pages. Once the API has
// returned a page, a missing page is an error.
func (p *location) listWith(ctx context.Context, repository *remote.Repository, subject image.Reference,
	api bool) (found []ocispec.Descriptor, pages int, err error) {
	client := &lists{Client: repository.Client, session: p.session}
	lister := &remote.Repository{Client: client, Reference: repository.Reference, PlainHTTP: repository.PlainHTTP,
		MaxMetadataBytes: repository.MaxMetadataBytes, ReferrerListMaxPages: repository.ReferrerListMaxPages}
	if err := lister.SetReferrersCapability(api); err != nil {
		return nil, 0, err
	}
	err = lister.Referrers(ctx, ocispec.Descriptor{Digest: subject.Digest}, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if len(found) == maxReferrers {
				return errEnough
			}
			found = append(found, kept(d))
		}
		return nil
	})
	return found, client.pages, err
}

// kept returns the parts of a listed descriptor that are used: only content that we fetch and
// hash ourselves counts. It stays in memory during the work on the image, and a list is as
// large as a manifest, so texts that are longer than any valid one are cut.
func kept(d ocispec.Descriptor) ocispec.Descriptor {
	cut := func(s string) string { return strings.Clone(s[:min(len(s), maxDescriptorText)]) }
	return ocispec.Descriptor{MediaType: cut(d.MediaType), Digest: digest.Digest(cut(string(d.Digest))), Size: d.Size}
}

// join returns one error, which is permanent only if all are: evidence that a retry may find
// must not be denied because there is too much of other evidence. Its reason is the reason of
// the first error, and an exceeded limit comes first: such a list is incomplete, regardless
// of other failures.
func join(errs ...error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return verify.HasReason(err, policy.ReasonLimitExceeded) }); i > 0 {
		errs = slices.Concat(errs[i:i+1], errs[:i], errs[i+1:])
	}
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return !verify.IsPermanent(err) }); i >= 0 {
		errs[0], errs[i] = errs[i], errs[0]
		return errors.New(failures(errs).Error())
	}
	return failures(errs)
}

// failures are errors of parallel requests, at least one. Most have the same cause, so only
// the first error of each cause is shown.
type failures []error

// Error implements error.
func (f failures) Error() string {
	var texts, causes []string
	for _, err := range f {
		text := err.Error()
		_, cause, _ := strings.Cut(text, ": ")
		if !slices.Contains(causes, cause) {
			texts, causes = append(texts, text), append(causes, cause)
		}
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the causes.
func (f failures) Unwrap() []error { return f }

// dedupe keeps the first entry of each digest, in order.
func dedupe(descriptors []ocispec.Descriptor) []ocispec.Descriptor {
	seen := map[digest.Digest]bool{}
	return slices.DeleteFunc(descriptors, func(d ocispec.Descriptor) bool {
		again := seen[d.Digest]
		seen[d.Digest] = true
		return again
	})
}
