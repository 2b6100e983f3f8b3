package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/policy"
)

const mediaTypeDockerList = "application/vnd.docker.distribution.manifest.list.v2+json"

// examineParts decides whether an index, which was denied itself, is allowed by
// all of its manifests: each must meet the task's rules, attestations of build
// tools among them, and there must be at least one. Nested indexes do not count.
func (e *Engine) examineParts(ctx context.Context, t task, subject Subject, denied policy.Verdict, trace *trace) (policy.Verdict, []policy.Finding) {
	parts, err := readParts(ctx, t.layer.Registry, subject, trace)
	switch {
	case errors.Is(err, errNoIndex):
		return denied, nil
	case err != nil:
		verdict := failure(err)
		verdict.Policy = t.rules.Source
		return verdict, nil
	}
	t.parts, t.warns = false, false
	entries := make([]Entry, len(parts))
	var all sync.WaitGroup
	places := make(chan struct{}, partsAtOnce)
	for i, part := range parts {
		places <- struct{}{}
		all.Go(func() {
			defer func() {
				if r := recover(); r != nil { // outside the guard of the image's own work
					entries[i] = Entry{Verdict: policy.Verdict{Outcome: policy.Undecided, Policy: t.rules.Source, Reason: fmt.Sprintf("internal error: %v", r)}}
				}
				<-places
			}()
			entries[i] = e.examine(ctx, []task{t}, Subject{Reference: subject.Reference.WithDigest(part.Digest), Descriptor: part}, trace)
		})
	}
	all.Wait()
	return joinParts(parts, entries, denied)
}

// joinParts allows if every part is allowed.
func joinParts(parts []ocispec.Descriptor, entries []Entry, denied policy.Verdict) (policy.Verdict, []policy.Finding) {
	var findings []policy.Finding
	var undecided *policy.Verdict
	for i, entry := range entries {
		findings = append(findings, entry.Findings...)
		switch verdict := entry.Verdict; verdict.Outcome {
		case policy.Allowed:
		case policy.Undecided:
			verdict.Reason = fmt.Sprintf("%s (of manifest %s in the index)", verdict.Reason, parts[i].Digest)
			undecided = &verdict
		case policy.Denied:
			denied.Reason = fmt.Sprintf("%s; nor is every manifest of the index allowed: %s is not: %s", denied.Reason, parts[i].Digest, verdict.Reason)
			return denied, findings
		default:
			return policy.Verdict{Reason: "internal error: unknown outcome"}, findings
		}
	}
	if undecided != nil {
		return *undecided, findings
	}
	return policy.Verdict{Outcome: policy.Allowed, Policy: denied.Policy,
		Reason: fmt.Sprintf("each of the %d manifests of the index: %s", len(parts), entries[0].Verdict.Reason)}, findings
}

var errNoIndex = errors.New("the image is no index")

// readParts returns the manifests of an index (OCI image index specification,
// "manifests"), at most MaxParts and at least one, none of them an index itself.
func readParts(ctx context.Context, registry Registry, subject Subject, trace *trace) ([]ocispec.Descriptor, error) {
	defer trace.start("parts", subject.Reference.String())()
	descriptor, err := resolve(ctx, registry, subject.Reference)
	if err != nil {
		return nil, err
	}
	if !isIndex(descriptor.MediaType) {
		return nil, errNoIndex
	}
	content, err := registry.Fetch(ctx, subject.Reference, descriptor, MaxManifestBytes)
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	var index ocispec.Index
	if err := json.Unmarshal(content, &index); err != nil {
		return nil, Permanent(policy.ReasonMalformed, fmt.Errorf("index %s is not well-formed", descriptor.Digest))
	}
	if n := len(index.Manifests); n == 0 || n > MaxParts {
		return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("index %s has %d manifests, it must have 1 to %d", descriptor.Digest, n, MaxParts))
	}
	for _, part := range index.Manifests {
		if part.Digest.Validate() != nil || part.Size < 0 || isIndex(part.MediaType) {
			return nil, Permanent(policy.ReasonMalformed, fmt.Errorf("index %s lists what is not a manifest", descriptor.Digest))
		}
	}
	return index.Manifests, nil
}

func isIndex(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageIndex || mediaType == mediaTypeDockerList
}
