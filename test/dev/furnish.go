package main

import (
	"bytes"
	"context"
	"crypto/x509"
	_ "embed" // for the resources
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

//go:embed resources.yaml
var resources string

//go:embed invitation.txt
var invitation string

// furnished is what the cluster has for a person to try.
type furnished struct {
	Kubeconfig, Registry, Keys, Logs string
	// Tools is the folder with kubectl.
	Tools string
	// Cosign is the command, with its path if it is not in PATH, and empty without one.
	Cosign string
	// Platform, TeamA and TeamB are public keys, indented for the resources.
	Platform, TeamA, TeamB string
	// Repository is the working copy of a team's repository, with Flux.
	Repository string
	// Flux is what to try with Flux, and empty without.
	Flux string
	// App is an image of team-a by digest, and Unsigned one that nobody signed.
	App, Unsigned string
}

// furnish makes keys, images and resources.
func furnish(ctx context.Context, s *stack.Stack, dir string) (f furnished, err error) {
	f = furnished{Kubeconfig: s.Kubeconfig(), Registry: s.Registry.Host(), Keys: filepath.Join(dir, "keys"), Logs: s.LogDir(), Tools: os.Getenv("LANDWAITER_CLUSTER_TOOLS"), Cosign: os.Getenv("LANDWAITER_COSIGN")}
	signers := map[string]*fixture.CosignKey{}
	for name, public := range map[string]*string{"platform": &f.Platform, "team-a": &f.TeamA, "team-b": &f.TeamB} {
		if signers[name], err = writeKey(f.Keys, name); err != nil {
			return f, err
		}
		*public = "      " + strings.ReplaceAll(strings.TrimSpace(string(signers[name].PEM)), "\n", "\n      ")
	}
	for _, made := range []struct {
		repository string
		signer     *fixture.CosignKey
		name       *string
	}{
		{"platform/base", signers["platform"], nil}, {"shared/app", signers["team-a"], &f.App}, {"shared/web", signers["team-b"], nil}, {"shared/unsigned", nil, &f.Unsigned},
	} {
		image, err := s.Registry.PushImage(ctx, made.repository, "v1")
		if err == nil && made.signer != nil {
			_, err = s.Registry.SignCosign(ctx, image, made.signer, fixture.CosignOptions{})
		}
		if err != nil {
			return f, err
		}
		if made.name != nil {
			*made.name = f.Registry + "/" + made.repository + "@" + image.Descriptor.Digest.String()
		}
	}
	text, err := f.expand(resources)
	if err != nil {
		return f, err
	}
	objects, err := cluster.Decode([]byte(text))
	if err != nil {
		return f, err
	}
	return f, s.Apply(ctx, objects...)
}

// writeKey makes a key pair and writes it as cosign does, with an empty password.
func writeKey(dir, name string) (*fixture.CosignKey, error) {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key.Private)
	if err != nil {
		return nil, fmt.Errorf("encode the key of %s: %w", name, err)
	}
	sealed, err := encrypted.Encrypt(private, nil)
	if err != nil {
		return nil, fmt.Errorf("encrypt the key of %s: %w", name, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("write keys: %w", err)
	}
	for file, content := range map[string][]byte{
		name + ".key": pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}), name + ".pub": key.PEM,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			return nil, fmt.Errorf("write keys: %w", err)
		}
	}
	return key, nil
}

// expand fills in a text.
func (f furnished) expand(text string) (string, error) {
	parsed, err := template.New("").Parse(text)
	if err != nil {
		return "", fmt.Errorf("parse a text: %w", err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, f); err != nil {
		return "", fmt.Errorf("expand a text: %w", err)
	}
	return out.String(), nil
}

// invitation says what to try.
func (f furnished) invitation() (string, error) { return f.expand(invitation) }
