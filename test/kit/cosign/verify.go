package cosign

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// verify looks for a signature by a key on an image: in bundles, and under the tag ".sig".
func verify(ctx context.Context, keyFile, name string) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return fmt.Errorf("read a key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s is no key in PEM", keyFile)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PublicKey)
	if err != nil || !ok {
		return errors.Join(fmt.Errorf("%s is no key of ECDSA", keyFile), err)
	}
	target, signed, err := resolve(ctx, name)
	if err != nil {
		return err
	}
	var manifests []ocispec.Descriptor
	if err := target.Referrers(ctx, signed, "", func(found []ocispec.Descriptor) error {
		manifests = append(manifests, found...)
		return nil
	}); err != nil {
		return fmt.Errorf("list the referrers of %s: %w", name, err)
	}
	if tagged, err := target.Resolve(ctx, fixture.CosignTag(signed.Digest)); err == nil {
		manifests = append(manifests, tagged)
	}
	for _, manifest := range manifests {
		layers, err := layersOf(ctx, target, manifest)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(layers, func(l layer) bool { return l.signs(key, signed.Digest.String()) }) {
			return nil
		}
	}
	return fmt.Errorf("no signature on %s by the key in %s", name, keyFile)
}

// layer is a bundle, or a payload whose signature is an annotation.
type layer struct {
	text      []byte
	signature string
}

func layersOf(ctx context.Context, target *remote.Repository, of ocispec.Descriptor) (layers []layer, err error) {
	text, err := content.FetchAll(ctx, target.Manifests(), of)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", of.Digest, err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("read %s: %w", of.Digest, err)
	}
	for _, l := range manifest.Layers {
		text, err := content.FetchAll(ctx, target.Blobs(), l)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", l.Digest, err)
		}
		layers = append(layers, layer{text, l.Annotations["dev.cosignproject.cosign/signature"]})
	}
	return layers, nil
}

// signs reports whether l has a signature by key on a payload that names a digest.
func (l layer) signs(key *ecdsa.PublicKey, digest string) bool {
	payload, signed, signature := l.text, l.text, l.signature
	var bundle struct {
		DSSEEnvelope dsse.Envelope `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(l.text, &bundle); err == nil && len(bundle.DSSEEnvelope.Signatures) > 0 {
		envelope := bundle.DSSEEnvelope
		if payload, err = envelope.DecodeB64Payload(); err != nil {
			return false
		}
		signed, signature = dsse.PAE(envelope.PayloadType, payload), envelope.Signatures[0].Sig
	}
	decoded, err := base64.StdEncoding.DecodeString(signature)
	sum := sha256.Sum256(signed)
	_, hex, _ := strings.Cut(digest, ":")
	return err == nil && strings.Contains(string(payload), hex) && ecdsa.VerifyASN1(key, sum[:], decoded)
}
