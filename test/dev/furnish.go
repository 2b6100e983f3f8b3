package main

import (
	"bytes"
	"context"
	_ "embed" // for the resources
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	// Tools are the folders with kubectl, landwaiter and cosign, as in PATH.
	Tools string
	// Cosign is the path of the command.
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

// furnish makes keys, images, a Tenant and resources.
func furnish(ctx context.Context, s *stack.Stack, dir, binary, signer string) (f furnished, err error) {
	f = furnished{Kubeconfig: s.Kubeconfig(), Registry: s.Registry.Host(), Keys: filepath.Join(dir, "keys"), Logs: s.LogDir(),
		Tools: os.Getenv("LANDWAITER_CLUSTER_TOOLS") + ":" + filepath.Dir(binary), Cosign: signer}
	if err := os.MkdirAll(f.Keys, 0o700); err != nil {
		return f, fmt.Errorf("write keys: %w", err)
	}
	commands := filepath.Join(dir, "bin") // as denials name it
	if err := errors.Join(os.Mkdir(commands, 0o700), os.Symlink(signer, filepath.Join(commands, "cosign"))); err != nil {
		return f, fmt.Errorf("link cosign: %w", err)
	}
	f.Tools += ":" + commands
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
		{"platform/base", signers["platform"], nil}, {"shared/app", signers["team-a"], &f.App}, {"shared/web", signers["team-b"], nil},
		{"shared/unsigned", nil, &f.Unsigned},
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
	// Pods of kubectl run do not meet the level Restricted.
	if err := onboard(ctx, s, binary, "team-a", "--set", "namespaces=team-a-web", "--set", "access.admins=team-a-admins", "--set",
		"access.developers=team-a-developers", "--set", "isolation.podSecurity=Baseline"); err != nil {
		return f, err
	}
	text, err := f.expand(resources)
	if err != nil {
		return f, err
	}
	objects, err := cluster.Decode([]byte(text))
	if err != nil {
		return f, err
	}
	if err := s.Apply(ctx, objects...); err != nil {
		return f, err
	}
	return f, awaitRules(ctx, s, objects)
}

// onboard runs "landwaiter tenant add" as the cluster admin, and waits: the cluster is so new that
// Kubernetes does not count Landwaiter's kinds yet.
func onboard(ctx context.Context, s *stack.Stack, binary string, args ...string) error {
	var output bytes.Buffer
	add := exec.CommandContext(ctx, binary, append([]string{"tenant", "add", "--wait"}, args...)...)
	add.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig())
	add.Stdout, add.Stderr = &output, &output
	if err := add.Run(); err != nil {
		return fmt.Errorf("onboard %s: %w: %s", args[0], err, &output)
	}
	return nil
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
