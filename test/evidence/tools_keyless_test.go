//go:build !e2e

package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

// services are a Sigstore instance of real servers, with an identity provider that they
// trust and that has two addresses: people have an e-mail address at one, workflows claims
// at the other.
type services struct {
	*cluster.Sigstore
	provider string
	token    func(*testing.T, map[string]any) string // signs claims
	root     []byte                                  // trusted_root.json
	file     string                                  // where root is
}

func startServices(t *testing.T) *services {
	t.Helper()
	s := launch(t)
	c := cosignV3(t)
	s.file = filepath.Join(c.home, "trusted_root.json")
	c.run(t, nil, "trusted-root", "create", "--out", s.file,
		"--fulcio", "url="+s.Fulcio+",certificate-chain="+s.FulcioChain,
		"--rekor", "url=http://"+cluster.RekorOrigin+",public-key="+s.RekorKey+",start-time=2024-01-01T00:00:00Z,origin="+cluster.RekorOrigin,
		"--tsa", "url="+s.Timestamps+",certificate-chain="+s.TimestampChain)
	var err error
	s.root, err = os.ReadFile(s.file)
	require.NoError(t, err)
	return s
}

func (s *services) people() string    { return s.provider + "/people" }
func (s *services) workflows() string { return s.provider + "/workflows" }

// person is a token of somebody with an e-mail address.
func (s *services) person(t *testing.T, email string) string {
	t.Helper()
	return s.token(t, map[string]any{"iss": s.people(), "sub": email, "email": email, "email_verified": true})
}

// workflow is a token of a run of a workflow of a repository, as GitHub Actions
// makes them.
func (s *services) workflow(t *testing.T, repository, runner string) string {
	t.Helper()
	return s.token(t, map[string]any{"iss": s.workflows(), "sub": "repo:" + repository + ":ref:refs/heads/main",
		"job_workflow_ref": repository + "/.github/workflows/release.yml@refs/heads/main", "job_workflow_sha": strings.Repeat("a", 40),
		"sha": strings.Repeat("a", 40), "event_name": "push", "repository": repository, "workflow": "release", "ref": "refs/heads/main",
		"runner_environment": runner, "repository_id": "1", "repository_owner": "example", "repository_owner_id": "2", "repository_visibility": "public",
		"workflow_ref": repository + "/.github/workflows/release.yml@refs/heads/main", "workflow_sha": strings.Repeat("a", 40), "run_id": "3", "run_attempt": "1"})
}

// config is a signing configuration of cosign v3 with all services.
func (s *services) config(t *testing.T, c tool) string {
	t.Helper()
	file := filepath.Join(c.home, "services.json")
	const more = ",start-time=2024-01-01T00:00:00Z,operator=test"
	c.run(t, nil, "signing-config", "create", "--out", file, "--fulcio", "url="+s.Fulcio+",api-version=1"+more,
		"--rekor", "url="+s.Rekor+",api-version=2"+more, "--rekor-config", "ANY", "--tsa", "url="+s.Timestamps+",api-version=1"+more, "--tsa-config", "ANY")
	return file
}

// signV3 signs as users of cosign v3 do: a bundle with an entry of Rekor v2 and a
// timestamp.
func (s *services) signV3(t *testing.T, img fixture.Image, token string, command ...string) {
	t.Helper()
	c := cosignV3(t)
	if len(command) == 0 {
		command = []string{"sign"}
	}
	args := append(command, "--identity-token", token, "--signing-config", s.config(t, c), "--trusted-root", s.file, "--allow-http-registry", "--yes",
		img.Reference.Name()+"@"+img.Descriptor.Digest.String())
	c.run(t, nil, args...)
}

// signV2 signs with cosign v2, in its legacy form: a certificate and a timestamp in
// annotations. A log of version 1, the only one that it knows, needs a database.
func (s *services) signV2(t *testing.T, img fixture.Image, token string) {
	t.Helper()
	c := cosignV2(t)
	c.run(t, []string{"SIGSTORE_ROOT_FILE=" + s.FulcioChain}, "sign", "--fulcio-url", s.Fulcio, "--identity-token", token, "--insecure-skip-verify",
		"--tlog-upload=false", "--timestamp-server-url", s.Timestamps, "--allow-http-registry", "--yes", img.Reference.Name()+"@"+img.Descriptor.Digest.String())
}

const (
	alice   = "alice@example.com"
	project = "example/app"
)

// by is a keyless verifier of one identity; there is no certificate transparency
// log.
func by(issuer, subject string, change func(*v1beta1.CosignVerifier)) v1beta1.VerifierSpec {
	verifier := &v1beta1.CosignVerifier{
		Signers: v1beta1.Signers{Keyless: &v1beta1.Keyless{TransparencyLog: v1beta1.TransparencyLog{RootTrustStoreRef: &v1beta1.TrustStoreRef{Name: trusted}},
			Identities: []v1beta1.Identity{{Issuer: issuer, Subject: subject}}, InsecureIgnoreSCT: true}}}
	if change != nil {
		change(verifier)
	}
	return v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign, Cosign: verifier}
}

func TestAcceptsKeylessSignaturesOfRealServicesAndDeniesTheirTwins(t *testing.T) {
	s := startServices(t)
	stranger, err := sigstore.New()
	require.NoError(t, err)
	strange, err := stranger.TrustedRoot()
	require.NoError(t, err)
	noLog := func(v *v1beta1.CosignVerifier) { v.Keyless.InsecureIgnoreTransparencyLog = true }
	for name, c := range map[string]struct {
		sign func(*testing.T, fixture.Image, string)
		kind string
		how  func(*v1beta1.CosignVerifier) // what the verifier needs to accept it
	}{
		"v3, bundle":       {func(t *testing.T, i fixture.Image, token string) { s.signV3(t, i, token) }, typeBundle, nil},
		"v2, legacy, TSA":  {s.signV2, typeTag, noLog},
		"v3, without logs": {func(t *testing.T, i fixture.Image, token string) { s.signV3(t, i, token) }, typeBundle, noLog},
	} {
		t.Run(name, func(t *testing.T) {
			registry := start(t, fixture.RegistryOptions{})
			img, other := push(t, registry, repository, "v1"), push(t, registry, repository, "v2")
			c.sign(t, img, s.person(t, alice))
			ask := func(spec v1beta1.VerifierSpec, root []byte, img fixture.Image) any {
				return decide(t, registry, spec, root, img.Reference).Verdict.Outcome().String()
			}
			requireAllowed(t, c.kind, decide(t, registry, by(s.people(), alice, c.how), s.root, img.Reference))
			requireDenied(t, "WrongIdentity", decide(t, registry, by(s.people(), "bob@example.com", c.how), s.root, img.Reference))
			requireDenied(t, "WrongIdentity", decide(t, registry, by(s.workflows(), alice, c.how), s.root, img.Reference))
			requireDenied(t, "Untrusted", decide(t, registry, by(s.people(), alice, c.how), strange, img.Reference))
			require.Equal(t, "denied", ask(by(s.people(), alice, c.how), s.root, other))
			withSCT := func(v *v1beta1.CosignVerifier) {
				if c.how != nil {
					c.how(v)
				}
				v.Keyless.InsecureIgnoreSCT = false
			}
			require.Contains(t, refused(t, resources(registry, by(s.people(), alice, withSCT), s.root)), "has no certificate transparency log")
			two := int32(2)
			threshold := func(v *v1beta1.CosignVerifier) {
				if c.how != nil {
					c.how(v)
				}
				v.Keyless.Thresholds = &v1beta1.Thresholds{Timestamps: &two}
			}
			requireDenied(t, "Untrusted", decide(t, registry, by(s.people(), alice, threshold), s.root, img.Reference))
			if c.kind == typeTag {
				requireDenied(t, "Untrusted", decide(t, registry, by(s.people(), alice, nil), s.root, img.Reference))
			}
		})
	}
}

// The claims of a workflow's certificate, as Fulcio writes them for GitHub Actions.
func TestAcceptsWorkflowsByTheirClaims(t *testing.T) {
	s := startServices(t)
	registry := start(t, fixture.RegistryOptions{})
	img := push(t, registry, repository, "v1")
	s.signV3(t, img, s.workflow(t, project, "github-hosted"))
	const subject = "https://github.com/" + project + "/.github/workflows/release.yml@refs/heads/main"
	for expression, reason := range map[string]string{
		`claims.sourceRepositoryURI == "https://github.com/example/app" && claims.runnerEnvironment == "github-hosted"`: "",
		`claims.sourceRepositoryRef == "refs/heads/main" && claims.githubWorkflowTrigger == "push"`:                     "",
		`claims.runnerEnvironment == "self-hosted"`:                                                                     "WrongIdentity",
		`claims.sourceRepositoryURI == "https://github.com/example/other"`:                                              "WrongIdentity",
		`claims.buildConfigURI == "x"`:                                                                                  "WrongIdentity",
	} {
		result := decide(t, registry, by(s.workflows(), subject, func(v *v1beta1.CosignVerifier) { v.Keyless.Expression = expression }), s.root, img.Reference)
		if reason == "" {
			requireAllowed(t, typeBundle, result)
			continue
		}
		requireDenied(t, reason, result)
	}
}

func TestAcceptsKeylessAttestationsOfRealServices(t *testing.T) {
	s := startServices(t)
	for what, p := range predicates {
		t.Run(what, func(t *testing.T) {
			registry := start(t, fixture.RegistryOptions{})
			img := push(t, registry, repository, "v1")
			file := filepath.Join(t.TempDir(), "predicate.json")
			require.NoError(t, os.WriteFile(file, []byte(p.predicate), 0o600))
			s.signV3(t, img, s.person(t, alice), "attest", "--type", p.kind, "--predicate", file)
			attested := func(subject, expression string) v1beta1.VerifierSpec {
				return v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeAttestation, Attestation: &v1beta1.AttestationVerifier{
					Signers: by(s.people(), subject, nil).Cosign.Signers, PredicateType: p.predicateType, Expression: expression}}
			}
			require.Equal(t, "allowed", decide(t, registry, attested(alice, p.yes), s.root, img.Reference).Verdict.Outcome().String())
			requireDenied(t, "Predicate", decide(t, registry, attested(alice, p.no), s.root, img.Reference))
			requireDenied(t, "WrongIdentity", decide(t, registry, attested("bob@example.com", p.yes), s.root, img.Reference))
			requireDenied(t, "WrongPredicate", decide(t, registry, by(s.people(), alice, nil), s.root, img.Reference))
		})
	}
}
