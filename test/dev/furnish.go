package main

import (
	"bytes"
	"context"
	_ "embed" // for the resources
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/cosign"
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
	if err := os.MkdirAll(f.Keys, 0o700); err != nil {
		return f, fmt.Errorf("write keys: %w", err)
	}
	signers := map[string]*fixture.CosignKey{}
	for name, public := range map[string]*string{"platform": &f.Platform, "team-a": &f.TeamA, "team-b": &f.TeamB} {
		if signers[name], err = fixture.NewCosignKey(fixture.ECDSAP256); err != nil {
			return f, err
		}
		if err := cosign.WriteKey(signers[name], filepath.Join(f.Keys, name), ""); err != nil {
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
