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

// examineManifests decides whether an index, which was denied itself, is allowed by
// all of its manifests: each must meet the task's rules, even those that hold a build
// tool's attestations, and there must be at least one. Nested indexes do not count.
func (x *examination) examineManifests(ctx context.Context, t task, subject Subject, denied policy.Verdict) (policy.Verdict, []policy.Finding) {
	manifests, err := readIndex(ctx, t.layer.Registry, subject, x.trace)
	switch {
	case errors.Is(err, errNotAnIndex):
		return denied, nil
	case err != nil:
		verdict := failure(err)
		verdict.Policy = t.rules.Source
		return verdict, nil
	}
	t.indexManifests, t.warns = false, false
	entries := make([]Entry, len(manifests))
	var all sync.WaitGroup
	running := make(chan struct{}, manifestsAtOnce)
	for i, manifest := range manifests {
		running <- struct{}{}
		all.Go(func() {
			defer func() {
				if r := recover(); r != nil { // another goroutine than the image's work, which has its own recover
					entries[i] = Entry{Verdict: policy.Verdict{Outcome: policy.Undecided, Policy: t.rules.Source, Reason: fmt.Sprintf("internal error: %v", r)}}
				}
				<-running
			}()
			entries[i] = x.examine(ctx, []task{t}, Subject{Reference: subject.Reference.WithDigest(manifest.Digest), Descriptor: manifest})
		})
	}
	all.Wait()
	return combineManifests(manifests, entries, denied)
}

// combineManifests allows the index if every manifest is allowed.
func combineManifests(manifests []ocispec.Descriptor, entries []Entry, denied policy.Verdict) (policy.Verdict, []policy.Finding) {
	var findings []policy.Finding
	var undecided *policy.Verdict
	for i, entry := range entries {
		findings = append(findings, entry.Findings...)
		switch verdict := entry.Verdict; verdict.Outcome {
		case policy.Allowed:
		case policy.Undecided:
			verdict.Reason = fmt.Sprintf("%s (of manifest %s in the index)", verdict.Reason, manifests[i].Digest)
			undecided = &verdict
		case policy.Denied:
			denied.Reason = fmt.Sprintf("%s; nor is every manifest of the index allowed: %s is not: %s", denied.Reason, manifests[i].Digest, verdict.Reason)
			return denied, findings
		default:
			return policy.Verdict{Reason: "internal error: unknown outcome"}, findings
		}
	}
	if undecided != nil {
		return *undecided, findings
	}
	return policy.Verdict{Outcome: policy.Allowed, Policy: denied.Policy,
		Reason: fmt.Sprintf("each of the %d manifests of the index: %s", len(manifests), entries[0].Verdict.Reason)}, findings
}

// errNotAnIndex says that the image is a single manifest.
var errNotAnIndex = errors.New("the image is not an index")

// readIndex returns the manifests of an index (OCI image index specification,
// "manifests"), at most MaxIndexManifests and at least one, none of them an index itself.
func readIndex(ctx context.Context, registry Registry, subject Subject, trace *trace) ([]ocispec.Descriptor, error) {
	defer trace.start("index", subject.Reference.String())()
	descriptor, err := resolve(ctx, registry, subject.Reference)
	if err != nil {
		return nil, err
	}
	if !isIndex(descriptor.MediaType) {
		return nil, errNotAnIndex
	}
	content, err := registry.Fetch(ctx, subject.Reference, descriptor, MaxManifestBytes)
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	var index ocispec.Index
	if err := json.Unmarshal(content, &index); err != nil {
		return nil, Permanent(policy.ReasonMalformed, fmt.Errorf("index %s is not well-formed", descriptor.Digest))
	}
	if n := len(index.Manifests); n == 0 || n > MaxIndexManifests {
		return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("index %s has %d manifests, it must have 1 to %d", descriptor.Digest, n, MaxIndexManifests))
	}
	for _, manifest := range index.Manifests {
		if manifest.Digest.Validate() != nil || manifest.Size < 0 || isIndex(manifest.MediaType) {
			return nil, Permanent(policy.ReasonMalformed, fmt.Errorf("index %s lists an entry that is not a manifest", descriptor.Digest))
		}
	}
	return index.Manifests, nil
}

func isIndex(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageIndex || mediaType == mediaTypeDockerList
}
