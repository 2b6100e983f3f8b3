package cosign

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// sign signs an image by its digest and in no log: version 2 in a manifest under the tag
// ".sig", version 3 in a bundle. Version 3 either has a signing config without services or
// the flags that version 2.6 has as well.
func sign(ctx context.Context, name string, args []string) error {
	set := flag.NewFlagSet("sign", flag.ContinueOnError)
	keyFile, yes, upload := set.String("key", "", ""), set.Bool("yes", false, ""), set.Bool("tlog-upload", true, "")
	config, withConfig := new(string), new(bool)
	if name == V3 {
		config, withConfig = set.String("signing-config", "", ""), set.Bool("use-signing-config", true, "")
	}
	if err := set.Parse(args); err != nil {
		return err
	}
	if *withConfig {
		text, err := os.ReadFile(*config)
		if err != nil || string(text) != noServices {
			return errors.Join(fmt.Errorf("%q is no signing config of signing-config create", *config), err)
		}
		*upload = false
	}
	if !*yes && *withConfig || *upload || set.NArg() != 1 { // cosign asks before it uses services
		return errors.New("no page asks for confirmation, uses a log, or signs several images")
	}
	ref, err := image.Parse(set.Arg(0))
	if err != nil {
		return err
	}
	if ref.Digest == "" {
		return fmt.Errorf("%s has no digest", ref)
	}
	key, err := readKey(*keyFile, os.Getenv("COSIGN_PASSWORD"))
	if err != nil {
		return err
	}
	target, found, err := resolve(ctx, set.Arg(0))
	if err != nil {
		return err
	}
	signed := fixture.Image{Reference: ref, Descriptor: found}
	if name == V2 {
		_, err = fixture.PushCosign(ctx, target, signed, key, fixture.CosignOptions{})
	} else {
		_, err = fixture.PushCosignBundle(ctx, target, signed, key, fixture.CosignOptions{})
	}
	return err
}

func readKey(name, password string) (*fixture.CosignKey, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != sealedType {
		return nil, fmt.Errorf("%s is no key of cosign", name)
	}
	der, err := encrypted.Decrypt(block.Bytes, []byte(password))
	if err != nil {
		return nil, fmt.Errorf("decrypt %s: %w", name, err)
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s cannot sign", name)
	}
	return &fixture.CosignKey{Private: signer, Hash: crypto.SHA256}, nil
}

// resolve finds an image with the credentials that `cosign login` left. A registry that
// has no TLS is spoken to without, as cosign does on this machine.
func resolve(ctx context.Context, name string) (*remote.Repository, ocispec.Descriptor, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, ocispec.Descriptor{}, fmt.Errorf("read Docker's credentials: %w", err)
	}
	target, err := remote.NewRepository(name)
	if err != nil {
		return nil, ocispec.Descriptor{}, fmt.Errorf("read the name %q: %w", name, err)
	}
	target.Client = &auth.Client{Client: http.DefaultClient, Credential: credentials.Credential(store)}
	found, err := target.Resolve(ctx, target.Reference.Reference)
	if errors.Is(err, http.ErrSchemeMismatch) {
		target.PlainHTTP = true
		found, err = target.Resolve(ctx, target.Reference.Reference)
	}
	if err != nil {
		return nil, ocispec.Descriptor{}, fmt.Errorf("resolve %s: %w", name, err)
	}
	return target, found, nil
}
