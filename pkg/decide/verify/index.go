package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// examineManifests decides whether an index, which was denied itself, is allowed by
// all of its manifests: each must meet the task's rules, even those that hold a build
// tool's attestations, and there must be at least one. Nested indexes do not count.
func (x *examination) examineManifests(ctx context.Context, t task, subject Subject, denied policy.Verdict) (policy.Verdict, []policy.Finding) {
	manifests, err := x.readIndex(ctx, t.layer.Registry, subject)
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
					entries[i] = Entry{Verdict: policy.NotDecided(t.rules.Source, fmt.Sprintf("internal error: %v", r))}
				}
				<-running
			}()
			entries[i] = x.examine(ctx, []task{t}, Subject{Reference: subject.Reference.WithDigest(manifest.Digest), Descriptor: manifest, describedBy: t.layer.Registry})
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
		switch verdict := entry.Verdict; verdict.Outcome() {
		case policy.Allowed:
		case policy.Undecided:
			verdict.Reason = fmt.Sprintf("%s (for manifest %s of the index)", verdict.Reason, manifests[i].Digest)
			undecided = &verdict
		case policy.Denied:
			why := "because " + verdict.Reason
			if verdict.Reason == denied.Reason {
				why = "for the same reason"
			}
			denied.Reason = fmt.Sprintf("%s; nor is every manifest of the index allowed: %s is not, %s", denied.Reason, manifests[i].Digest, why)
			return denied, findings
		default:
			return policy.Verdict{Reason: "internal error: unknown outcome"}, findings
		}
	}
	if undecided != nil {
		return *undecided, findings
	}
	allowed := entries[0].Verdict // there is at least one
	allowed.Policy, allowed.Reason = denied.Policy, fmt.Sprintf("each of the %d manifests of the index: %s", len(manifests), allowed.Reason)
	return allowed, findings
}

// errNotAnIndex says that the image is a single manifest.
var errNotAnIndex = errors.New("the image is not an index")

// readIndex returns the manifests of an index (OCI image index specification,
// "manifests"), at most MaxIndexManifests and at least one, none of them an index itself.
// The registry only states the media type; the content, which the digest fixes, must agree.
func (x *examination) readIndex(ctx context.Context, registry Registry, subject Subject) (manifests []ocispec.Descriptor, err error) {
	defer x.trace.start("index", subject.Reference.String())()
	locations := locationsOf(registry, subject.Reference).Content
	descriptor, err := resolve(ctx, locations, subject.Reference)
	if err != nil {
		return nil, err
	}
	if !intake.IsIndex(descriptor.MediaType) {
		return nil, errNotAnIndex
	}
	if err := x.budget.hold(manifestBytes * min(max(descriptor.Size, 0), MaxManifestBytes)); err != nil {
		return nil, err
	}
	content, err := fetchAt(ctx, locations, descriptor, MaxManifestBytes)
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	turnErr := x.budget.compute(ctx, func(context.Context) {
		manifests, err = intake.Index(content, descriptor.MediaType, MaxIndexManifests)
	})
	switch {
	case turnErr != nil:
		return nil, turnErr
	case err != nil:
		return nil, unreadable("index", "a well-formed index", descriptor, err)
	}
	return manifests, nil
}

// readManifest reads a manifest that refers to an image (OCI image manifest specification).
func readManifest(content []byte, descriptor ocispec.Descriptor) (ocispec.Manifest, error) {
	manifest, err := intake.Manifest(content, descriptor.MediaType)
	if err != nil {
		return ocispec.Manifest{}, unreadable("manifest", "an OCI manifest", descriptor, err)
	}
	return manifest, nil
}

// unreadable says why a document was not read.
func unreadable(what, wanted string, descriptor ocispec.Descriptor, err error) error {
	if intake.IsLimit(err) {
		return Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s %s %w", what, descriptor.Digest, err))
	}
	return Permanent(policy.ReasonMalformed, fmt.Errorf("%s %s is not %s: it %w", what, descriptor.Digest, wanted, err))
}

// distinct leaves out layers that are equal to one before them: they are one signature.
func distinct(layers []ocispec.Descriptor) []ocispec.Descriptor {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(layers), func(layer ocispec.Descriptor) bool {
		text, err := json.Marshal(layer) // writes annotations in one order
		known := err == nil && seen[string(text)]
		seen[string(text)] = true
		return known
	})
}
