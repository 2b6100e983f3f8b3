package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// scene is what the demo verifies: a registry with images, and resources for
// two teams, a third one without any, and the cluster.
type scene struct {
	dir      string // holds everything that is on disk
	registry *fixture.Registry
	asks     []ask
}

// ask is one key to send and what must come of it.
type ask struct {
	title string
	key   string
	// want is "allowed", "denied" or "refused" (the key is not even looked up).
	want string
}

// namespace is what the tag of the key says.
func (a ask) namespace() string {
	rest, tagged := strings.CutPrefix(a.key, "[")
	if !tagged {
		return "-"
	}
	name, _, _ := strings.Cut(rest, "]")
	return name
}

// signers are the keys and certificates of the demo.
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

// build pushes and signs the images, and notes what should come of them.
func (s *scene) build(ctx context.Context, by signers) error {
	push := func(repository, tag string) (fixture.Image, error) { return s.registry.PushImage(ctx, repository, tag) }
	app, err := push("shared/app", "v1")
	if err != nil {
		return err
	}
	if _, err = s.registry.SignCosign(ctx, app, by.teamA, fixture.CosignOptions{}); err != nil {
		return err
	}
	web, err := push("shared/web", "v1")
	if err != nil {
		return err
	}
	if _, err = s.registry.SignNotation(ctx, web, by.teamB, fixture.NotationOptions{}); err != nil {
		return err
	}
	base, err := push("shared/base", "v1")
	if err != nil {
		return err
	}
	if _, err = s.registry.SignCosignBundle(ctx, base, by.cluster, fixture.CosignOptions{}); err != nil {
		return err
	}
	s.expect("signed by team-a with cosign", "team-a", app, "allowed")
	s.expect("the same image, another team", "team-b", app, "denied")
	s.expect("the same image, team without resources", "team-c", app, "denied")
	s.expect("signed by team-b with notation", "team-b", web, "allowed")
	s.expect("the same image, another team", "team-a", web, "denied")
	s.expect("signed for the cluster, bundle", "team-c", base, "allowed")
	s.expect("the same, no namespace", "", base, "allowed")
	s.expect("the same, a team with its own rules", "team-a", base, "denied")
	return s.buildBad(ctx, by, app)
}

// buildBad adds the images that no one should get in.
func (s *scene) buildBad(ctx context.Context, by signers, signed fixture.Image) error {
	unsigned, err := s.registry.PushImage(ctx, "team-a/unsigned", "v1")
	if err != nil {
		return err
	}
	wrong, err := s.registry.PushImage(ctx, "team-a/wrong-key", "v1")
	if err != nil {
		return err
	}
	if _, err = s.registry.SignCosign(ctx, wrong, by.attacker, fixture.CosignOptions{}); err != nil {
		return err
	}
	replayed, err := s.registry.PushImage(ctx, "team-a/replayed", "v1")
	if err != nil {
		return err
	}
	if _, err = s.registry.CopyCosign(ctx, signed, replayed); err != nil {
		return err
	}
	moved, err := s.registry.PushImage(ctx, "team-a/moved", "stable")
	if err != nil {
		return err
	}
	if _, err = s.registry.SignCosign(ctx, moved, by.teamA, fixture.CosignOptions{}); err != nil {
		return err
	}
	// The tag now names another image, which nobody signed.
	if _, err = s.registry.PushImage(ctx, "team-a/moved", "stable"); err != nil {
		return err
	}
	s.expect("unsigned", "team-a", unsigned, "denied")
	s.expect("signed with an attacker's key", "team-a", wrong, "denied")
	s.expect("a signature copied from another image", "team-a", replayed, "denied")
	s.expect("a tag that was moved after signing", "team-a", moved, "denied")
	s.asks = append(s.asks,
		ask{"the digest that was signed", "[team-a]" + moved.Reference.Name() + "@" + moved.Descriptor.Digest.String(), "allowed"},
		ask{"an image string that names a namespace", "[team-b][team-a]" + signed.Reference.WithTag("v1").String(), "refused"})
	return nil
}

// expect asks for an image by its tag.
func (s *scene) expect(title, namespace string, img fixture.Image, want string) {
	key := img.Reference.Name() + ":" + img.Reference.Tag
	if namespace != "" {
		key = "[" + namespace + "]" + key
	}
	s.asks = append(s.asks, ask{title: title, key: key, want: want})
}

// writeResources writes the directory that serve would be given.
func (s *scene) writeResources(by signers) (string, error) {
	dir := filepath.Join(s.dir, "resources")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root := string(by.teamBRoot.CertificatePEM)
	for name, text := range map[string]string{
		"cluster.yaml": clusterResources(s.registry.Host(), string(s.registry.CertificatePEM()), string(by.cluster.PEM)),
		"team-a.yaml":  teamAResources(string(by.teamA.PEM)),
		"team-b.yaml":  teamBResources(root, by.teamB.Chain[0]),
		"team-c.yaml":  "# team-c has no resources of its own: the cluster's apply.\napiVersion: v1\nkind: Namespace\nmetadata: {name: team-c}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// block indents text as a YAML block scalar.
func block(text string, indent int) string {
	pad := strings.Repeat(" ", indent)
	return "|\n" + pad + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+pad)
}

const resourceHead = "apiVersion: landwaiter.dev/v1alpha1\n"

// requireRelease is a policy specification: everything needs the verifier.
const requireRelease = "spec:\n  rules:\n  - images: [\"**\"]\n    require: [{anyOf: [release]}]\n"

func clusterResources(host, ca, key string) string {
	return strings.Join([]string{
		resourceHead + fmt.Sprintf("kind: ClusterStore\nmetadata: {name: demo-registry}\nspec:\n  registries: [%q]\n  caBundle:\n    inline: %s\n", host, block(ca, 6)),
		resourceHead + fmt.Sprintf("kind: ClusterTrustStore\nmetadata: {name: base-keys}\nspec:\n  type: PublicKeys\n  source:\n    inline: %s\n", block(key, 6)),
		resourceHead + "kind: ClusterVerifier\nmetadata: {name: release}\nspec:\n  cosign: {keys: [{trustStore: base-keys}]}\n",
		resourceHead + "kind: ClusterVerificationPolicy\nmetadata: {name: default}\n" + requireRelease,
	}, "---\n")
}

func teamAResources(key string) string {
	return strings.Join([]string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n",
		fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: cosign-pub, namespace: team-a}\nstringData:\n  cosign.pub: %s\n", block(key, 4)),
		resourceHead + "kind: TrustStore\nmetadata: {name: keys, namespace: team-a}\nspec:\n  type: PublicKeys\n  source:\n    secretRef: {name: cosign-pub, key: cosign.pub}\n",
		resourceHead + "kind: Verifier\nmetadata: {name: release, namespace: team-a}\nspec:\n  cosign: {keys: [{trustStore: keys}]}\n",
		resourceHead + "kind: VerificationPolicy\nmetadata: {name: strict, namespace: team-a}\n" + requireRelease,
	}, "---\n")
}

func teamBResources(root string, signer *x509.Certificate) string {
	identity := fmt.Sprintf("x509.subject: C=%s, ST=%s, O=%s, CN=%s",
		signer.Subject.Country[0], signer.Subject.Province[0], signer.Subject.Organization[0], signer.Subject.CommonName)
	return strings.Join([]string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: team-b}\n",
		resourceHead + fmt.Sprintf("kind: TrustStore\nmetadata: {name: release-ca, namespace: team-b}\nspec:\n  type: Certificates\n  source:\n    inline: %s\n", block(root, 6)),
		resourceHead + fmt.Sprintf("kind: Verifier\nmetadata: {name: release, namespace: team-b}\nspec:\n  notation:\n    trustStores: [{trustStore: release-ca}]\n    trustedIdentities: [%q]\n", identity),
		resourceHead + "kind: VerificationPolicy\nmetadata: {name: strict, namespace: team-b}\n" + requireRelease,
	}, "---\n")
}
