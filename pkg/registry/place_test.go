package registry_test

import (
	"context"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// first asks the first place of a registry.
type first struct{ verify.Registry }

func of(client *registry.Client, access registry.Access) first { return first{client.For(access)} }

func (f first) Resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	return f.Places(ref).Content[0].Resolve(ctx, ref)
}

func (f first) Referrers(ctx context.Context, subject image.Reference) ([]ocispec.Descriptor, error) {
	return f.Places(subject).Evidence[0].Referrers(ctx, subject)
}

func (f first) Fetch(ctx context.Context, repo image.Reference, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	return f.Places(repo).Content[0].Fetch(ctx, desc, limit)
}
