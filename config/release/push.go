package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// parseName checks the name of an image that is pushed: a registry, a repository and a
// tag, all of them given.
func parseName(name string) (registry.Reference, error) {
	ref, err := registry.ParseReference(name)
	if err != nil || !strings.ContainsAny(ref.Registry, ".:") && ref.Registry != "localhost" {
		return registry.Reference{},
			fmt.Errorf("image %q must name a registry, a repository and a tag, like registry.example.com/landwaiter/landwaiter:dev", name)
	}
	if ref.ValidateReferenceAsTag() != nil {
		return registry.Reference{}, fmt.Errorf("image %q must have a tag and no digest: the digest comes of what is pushed", name)
	}
	return ref, nil
}

// parseTag returns the tag of an image's name, which may be without a registry.
func parseTag(name string) (string, error) {
	_, last, found := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	tag := registry.Reference{Reference: last}
	if !found || tag.ValidateReferenceAsTag() != nil {
		return "", fmt.Errorf("image %q must have a tag, like landwaiter:dev", name)
	}
	return last, nil
}

// loopback reports whether a registry is on this machine; only such a one is spoken to
// without TLS.
func loopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return name == "localhost" || net.ParseIP(strings.Trim(name, "[]")).IsLoopback()
}

// openLayout reads an image layout in a folder or a tar file.
func openLayout(ctx context.Context, path string) (oras.ReadOnlyGraphTarget, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open an image layout: %w", err)
	}
	var store *oci.ReadOnlyStore
	if info.IsDir() {
		store, err = oci.NewFromFS(ctx, os.DirFS(path))
	} else {
		store, err = oci.NewFromTar(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the image layout %s: %w", path, err)
	}
	return store, nil
}

// openRepository returns a repository with the credentials that `docker login`, `helm
// registry login` or `cosign login` left.
func openRepository(ref registry.Reference) (*remote.Repository, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Docker's credentials: %w", err)
	}
	return &remote.Repository{Reference: registry.Reference{Registry: ref.Registry, Repository: ref.Repository},
		PlainHTTP: loopback(ref.Registry),
		Client:    &auth.Client{Client: retry.DefaultClient, Cache: auth.NewCache(), Credential: credentials.Credential(store)}}, nil
}

// push copies the image with a tag of a layout, and what refers to it or to its parts,
// into a repository, and attaches an attestation to the index and each part unless it is nil.
// The tag comes last: anyone who can pull by it finds everything.
func push(ctx context.Context, source oras.ReadOnlyGraphTarget, tag string, attestation []byte, target *remote.Repository,
	targetTag string) (ocispec.Descriptor, error) {
	index, err := source.Resolve(ctx, tag)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("find %s in the image layout: %w", tag, err)
	}
	parts, err := content.Successors(ctx, source, index)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("read the index of %s: %w", tag, err)
	}
	for _, part := range parts {
		if err := oras.ExtendedCopyGraph(ctx, source, target, part, oras.DefaultExtendedCopyGraphOptions); err != nil {
			return ocispec.Descriptor{}, fmt.Errorf("push %s: %w", tag, err)
		}
	}
	if attestation != nil {
		created, err := createdOf(ctx, source, index)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		for _, subject := range append(parts, index) {
			if err := attach(ctx, target, subject, attestation, created); err != nil {
				return ocispec.Descriptor{}, fmt.Errorf("attach the provenance of %s: %w", tag, err)
			}
		}
	}
	if _, err := oras.Copy(ctx, source, tag, target, targetTag, oras.DefaultCopyOptions); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("push %s: %w", tag, err)
	}
	return index, nil
}

// bundleType is the media type of a Sigstore bundle, and of the artifact that has one.
const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// attach pushes a Sigstore bundle as a referrer of an image (cosign's BUNDLE_SPEC.md). With
// the same time it is the same artifact, however often it is pushed.
func attach(ctx context.Context, target oras.Target, subject ocispec.Descriptor, bundle []byte, created string) error {
	layer, err := oras.PushBytes(ctx, target, bundleType, bundle)
	if err != nil {
		return err
	}
	_, err = oras.PackManifest(ctx, target, oras.PackManifestVersion1_1, bundleType, oras.PackManifestOptions{
		Subject: &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Layers:  []ocispec.Descriptor{layer},
		ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: created,
			"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": provenanceType}})
	return err
}

// createdOf returns when an index was made, which every index of this program says.
func createdOf(ctx context.Context, source content.Fetcher, index ocispec.Descriptor) (string, error) {
	text, err := content.FetchAll(ctx, source, index)
	if err != nil {
		return "", fmt.Errorf("read the index: %w", err)
	}
	var read ocispec.Index
	if err := json.Unmarshal(text, &read); err != nil {
		return "", fmt.Errorf("read the index: %w", err)
	}
	return read.Annotations[ocispec.AnnotationCreated], nil
}
