// Package example makes a small cluster to verify images in: a registry with
// images, good and bad, and the resources of the cluster and of three teams, of
// which two have their own. The demo shows it, and the command line's tests run
// over it. Like package fixture it makes everything at run time.
package example

import (
	"context"
	"errors"
	"strings"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// Example is a registry, and what to ask about its images.
type Example struct {
	Registry  *fixture.Registry
	Questions []Question
}

// Question is one key to send, and the verdict that must come of it.
type Question struct {
	Title string
	Key   string
	Want  gatekeeper.Verdict
}

// Namespace is the one in the key's tag, "-" without one.
func (q Question) Namespace() string {
	rest, tagged := strings.CutPrefix(q.Key, "[")
	if !tagged {
		return "-"
	}
	name, _, _ := strings.Cut(rest, "]")
	return name
}

// Start starts the registry, pushes and signs images, and writes the resources
// into the directory resources. The caller closes the registry.
func Start(ctx context.Context, resources string) (_ *Example, err error) {
	e := &Example{}
	if e.Registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Registry.Close())
		}
	}()
	by, err := newSigners()
	if err != nil {
		return nil, err
	}
	if err = e.build(ctx, by); err != nil {
		return nil, err
	}
	return e, writeResources(resources, e.Registry, by)
}

// signers are the keys and certificates that images are signed with.
type signers struct {
	teamA, cluster, attacker *fixture.CosignKey
	teamBRoot                *fixture.Authority
	teamB                    *fixture.Certificate
}

func newSigners() (s signers, err error) {
	for _, key := range []**fixture.CosignKey{&s.teamA, &s.cluster, &s.attacker} {
		if *key, err = fixture.NewCosignKey(fixture.ECDSAP256); err != nil {
			return s, err
		}
	}
	if s.teamBRoot, err = fixture.NewAuthority("team-b root"); err != nil {
		return s, err
	}
	s.teamB, err = s.teamBRoot.IssueSigner("team-b release", fixture.CertificateOptions{})
	return s, err
}

// build pushes and signs the images, and adds the questions about them.
func (e *Example) build(ctx context.Context, by signers) error {
	push := func(repository, tag string) (fixture.Image, error) { return e.Registry.PushImage(ctx, repository, tag) }
	app, err := push("shared/app", "v1")
	if err != nil {
		return err
	}
	if _, err = e.Registry.SignCosign(ctx, app, by.teamA, fixture.CosignOptions{}); err != nil {
		return err
	}
	web, err := push("shared/web", "v1")
	if err != nil {
		return err
	}
	if _, err = e.Registry.SignNotation(ctx, web, by.teamB, fixture.NotationOptions{}); err != nil {
		return err
	}
	base, err := push("shared/base", "v1")
	if err != nil {
		return err
	}
	if _, err = e.Registry.SignCosignBundle(ctx, base, by.cluster, fixture.CosignOptions{}); err != nil {
		return err
	}
	e.expect("signed by team-a with cosign", "team-a", app, gatekeeper.Allowed)
	e.expect("the same image, another team", "team-b", app, gatekeeper.Denied)
	e.expect("the same image, team without resources", "team-c", app, gatekeeper.Denied)
	e.expect("signed by team-b with notation", "team-b", web, gatekeeper.Allowed)
	e.expect("the same image, another team", "team-a", web, gatekeeper.Denied)
	e.expect("signed for the cluster, bundle", "team-c", base, gatekeeper.Allowed)
	e.expect("the same, no namespace", "", base, gatekeeper.Allowed)
	e.expect("the same, a team with its own rules", "team-a", base, gatekeeper.Denied)
	return e.buildBad(ctx, by, app)
}

// buildBad adds the images that no one should get in.
func (e *Example) buildBad(ctx context.Context, by signers, signed fixture.Image) error {
	unsigned, err := e.Registry.PushImage(ctx, "team-a/unsigned", "v1")
	if err != nil {
		return err
	}
	wrong, err := e.Registry.PushImage(ctx, "team-a/wrong-key", "v1")
	if err != nil {
		return err
	}
	if _, err = e.Registry.SignCosign(ctx, wrong, by.attacker, fixture.CosignOptions{}); err != nil {
		return err
	}
	replayed, err := e.Registry.PushImage(ctx, "team-a/replayed", "v1")
	if err != nil {
		return err
	}
	if _, err = e.Registry.CopyCosign(ctx, signed, replayed); err != nil {
		return err
	}
	moved, err := e.Registry.PushImage(ctx, "team-a/moved", "stable")
	if err != nil {
		return err
	}
	if _, err = e.Registry.SignCosign(ctx, moved, by.teamA, fixture.CosignOptions{}); err != nil {
		return err
	}
	// The tag now names another image, which nobody signed.
	if _, err = e.Registry.PushImage(ctx, "team-a/moved", "stable"); err != nil {
		return err
	}
	e.expect("unsigned", "team-a", unsigned, gatekeeper.Denied)
	e.expect("signed with an attacker's key", "team-a", wrong, gatekeeper.Denied)
	e.expect("a signature copied from another image", "team-a", replayed, gatekeeper.Denied)
	e.expect("a tag that was moved after signing", "team-a", moved, gatekeeper.Denied)
	e.Questions = append(e.Questions,
		Question{"the digest that was signed", "[team-a]" + moved.Reference.Name() + "@" + moved.Descriptor.Digest.String(), gatekeeper.Allowed},
		Question{"an image string that names a namespace", "[team-b][team-a]" + signed.Reference.WithTag("v1").String(), gatekeeper.Refused})
	return nil
}

// expect asks for an image by its tag.
func (e *Example) expect(title, namespace string, img fixture.Image, want gatekeeper.Verdict) {
	key := img.Reference.Name() + ":" + img.Reference.Tag
	if namespace != "" {
		key = "[" + namespace + "]" + key
	}
	e.Questions = append(e.Questions, Question{Title: title, Key: key, Want: want})
}
