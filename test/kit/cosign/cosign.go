// Package cosign stands in for the command cosign in tests that run what pages show, since
// cosign takes minutes to build. A test's own program is the command: it is linked under
// that name, and its TestMain calls [Main] first. It has the commands that pages show and
// refuses all other arguments. `make nightly` runs the same tests with cosign 2 and 3.
package cosign

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Names of the command, by the version that it stands in for.
const (
	V2 = "cosign-v2"
	V3 = "cosign"
)

// noServices is what cosign 3 writes without URLs of services: a signature then needs none.
const noServices = `{"mediaType":"application/vnd.dev.sigstore.signingconfig.v0.2+json"}` + "\n"

// Link makes the running program available as V2 and V3 in a folder.
func Link(folder string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the running program: %w", err)
	}
	return errors.Join(os.Symlink(self, filepath.Join(folder, V2)), os.Symlink(self, filepath.Join(folder, V3)))
}

// Main runs the command and exits if the program was called as V2 or V3.
func Main() {
	name := filepath.Base(os.Args[0])
	if name != V2 && name != V3 {
		return
	}
	if err := run(context.Background(), name, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "stand-in for %s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, name string, args []string) error {
	switch {
	case like(args, "generate-key-pair"):
		return generate("cosign")
	case like(args, "generate-key-pair", "--output-key-prefix", ""):
		return generate(args[2])
	case like(args, "signing-config", "create", "--out", "") && name == V3:
		return os.WriteFile(args[3], []byte(noServices), 0o600)
	case like(args, "triangulate", "--type", "digest", ""):
		target, found, err := resolve(ctx, args[3])
		if err == nil {
			fmt.Printf("%s/%s@%s\n", target.Reference.Registry, target.Reference.Repository, found.Digest)
		}
		return err
	case like(args, "verify", "--key", "", "--insecure-ignore-tlog", ""):
		return verify(ctx, args[2], args[4])
	case len(args) > 0 && args[0] == "sign":
		return sign(ctx, name, args[1:])
	}
	return fmt.Errorf("no page has the arguments %q", args)
}

// like says whether arguments are as wanted; an empty one may be any.
func like(args []string, want ...string) bool {
	if len(args) != len(want) {
		return false
	}
	for i := range args {
		if want[i] != "" && args[i] != want[i] {
			return false
		}
	}
	return true
}

func generate(prefix string) error {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		return err
	}
	return WriteKey(key, prefix, os.Getenv("COSIGN_PASSWORD"))
}

// WriteKey writes a key pair as cosign does, to prefix.key and prefix.pub.
func WriteKey(key *fixture.CosignKey, prefix, password string) error {
	private, err := x509.MarshalPKCS8PrivateKey(key.Private)
	if err != nil {
		return fmt.Errorf("encode a key: %w", err)
	}
	sealed, err := encrypted.Encrypt(private, []byte(password))
	if err != nil {
		return fmt.Errorf("encrypt a key: %w", err)
	}
	for name, content := range map[string][]byte{prefix + ".key": pem.EncodeToMemory(&pem.Block{Type: sealedType, Bytes: sealed}), prefix + ".pub": key.PEM} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return fmt.Errorf("write a key: %w", err)
		}
	}
	return nil
}

const sealedType = "ENCRYPTED SIGSTORE PRIVATE KEY"
