//go:build !e2e && !nightly

package evidence

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
	"github.com/landwaiter/landwaiter/test/kit/suite"
	"github.com/landwaiter/landwaiter/test/kit/tuf"
)

const provenance = "https://slsa.dev/provenance/v1"

// github is a stand-in of GitHub's own Sigstore instance, with its TUF repository.
type github struct {
	*sigstore.GitHub
	repository         *tuf.Repository
	address, authority string
}

func newGitHub(t *testing.T) *github {
	t.Helper()
	instance, err := sigstore.NewGitHub()
	require.NoError(t, err)
	repository, err := tuf.New()
	require.NoError(t, err)
	g := &github{GitHub: instance, repository: repository}
	g.address, g.authority = tuf.Serve(t, repository)
	g.publish(t)
	return g
}

// publish puts the trusted root as it is into the TUF repository.
func (g *github) publish(t *testing.T) {
	t.Helper()
	text, err := g.TrustedRoot()
	require.NoError(t, err)
	require.NoError(t, g.repository.Publish(text))
}

func (g *github) host() string { return strings.TrimPrefix(g.address, "https://") }

// source names the TUF repository.
func (g *github) source() *v1beta1.TUFSource {
	return &v1beta1.TUFSource{Mirror: g.address, Root: g.repository.Root(), CABundle: &v1beta1.CABundle{Inline: g.authority}}
}

// cluster is the recipe's ClusterTrustStore.
func (g *github) cluster() func(*resource.Objects) {
	store := &v1beta1.ClusterTrustStore{}
	store.Name, store.Spec.Type = "github", v1beta1.TrustStoreTypeSigstoreRoot
	store.Spec.Source.TUF = g.source()
	return func(o *resource.Objects) { o.Resources = append(o.Resources, store) }
}

// onThePage returns the specification of a Verifier in the recipe of docs/howto/github-attestations.md.
func onThePage(t *testing.T, name string) string {
	t.Helper()
	for _, b := range recipe(t) {
		for _, document := range strings.Split(b.Text, "\n---\n") {
			head, spec, _ := strings.Cut(document, "\nspec:\n")
			if b.Language == "yaml" && strings.Contains(head, "kind: Verifier\n") && strings.Contains(head, "name: "+name+",") {
				return spec
			}
		}
	}
	require.Fail(t, "the page has no Verifier "+name)
	return ""
}

func recipe(t *testing.T) []page.Block {
	t.Helper()
	blocks, err := page.Read("../..", "docs/howto/github-attestations.md")
	require.NoError(t, err)
	require.NotEmpty(t, blocks)
	return blocks
}

// changed replaces what the text must have once.
func changed(t *testing.T, text, from, to string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, from), "%s in %s", from, text)
	return strings.Replace(text, from, to, 1)
}

// verifying gives team-a a Verifier from YAML.
func verifying(t *testing.T, name, spec string) func(*resource.Objects) {
	t.Helper()
	verifier := &v1beta1.Verifier{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &verifier.Spec), spec)
	verifier.Name, verifier.Namespace = name, "team-a"
	return func(o *resource.Objects) { o.Resources = append(o.Resources, verifier) }
}

func build() sigstore.Build {
	return sigstore.Build{Owner: "example", Repository: "app", Workflow: "build.yml"}
}

// attested pushes an image with provenance of a build.
func (e *environment) attested(t *testing.T, by *sigstore.GitHub, b sigstore.Build) fixture.Image {
	t.Helper()
	img, err := e.registry.PushImage(t.Context(), "team-a/app", "v1")
	require.NoError(t, err)
	text, err := by.Attest(b, sigstore.Statement(img.Descriptor.Digest, provenance, b.Provenance()))
	require.NoError(t, err)
	e.bundle(t, img, text)
	return img
}

func (e *environment) bundle(t *testing.T, img fixture.Image, text []byte) {
	t.Helper()
	target, err := e.registry.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	_, err = fixture.PushBundle(t.Context(), target, img, text)
	require.NoError(t, err)
}

// eventually waits until a verdict in team-a is as wanted and says why.
func (e *environment) eventually(t *testing.T, img fixture.Image, want policy.Outcome, says string) {
	t.Helper()
	var last policy.Verdict
	require.Eventually(t, func() bool {
		last = e.Verify(t.Context(), "team-a", digestOf(img)).Verdict
		return last.Outcome() == want && strings.Contains(last.Reason, says)
	}, suite.Patience, 5*time.Millisecond, "want %v (%s): %s", want, says, &reason{&last})
}

// reason is printed when a test has failed.
type reason struct{ *policy.Verdict }

func (r *reason) String() string { return r.Reason }

// options ask the TUF repository all the time.
func (g *github) options() service.Options {
	return service.Options{External: external.Options{Refresh: 10 * time.Millisecond}}
}

func TestAttestationsOfPrivateRepositoriesCountUnderGitHubsOwnRoot(t *testing.T) {
	e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
	stranger, err := sigstore.NewGitHub()
	require.NoError(t, err)
	e.fetching(t, g.options(), g.cluster(), verifying(t, "release", onThePage(t, "github-private")), e.policy(t, "team-a", "p", releaseNeeded))
	e.eventually(t, e.attested(t, g.GitHub, build()), policy.Allowed, "")
	for name, c := range map[string]struct {
		by     *sigstore.GitHub
		change func(*sigstore.Build)
		says   string
	}{
		"no timestamp":                 {g.GitHub, func(b *sigstore.Build) { b.WithoutTimestamp = true }, "has no trusted time"},
		"another timestamp authority":  {g.GitHub, func(b *sigstore.Build) { b.Stamper = stranger }, "does not hold under ClusterTrustStore github"},
		"another instance of GitHub's": {stranger, func(*sigstore.Build) {}, "does not hold under ClusterTrustStore github"},
		"another CA":                   {stranger, func(b *sigstore.Build) { b.Stamper = g.GitHub }, "does not hold under ClusterTrustStore github"},
		"another owner":                {g.GitHub, func(b *sigstore.Build) { b.Owner = "evil" }, "an identity that the Verifier does not trust"},
		"another repository":           {g.GitHub, func(b *sigstore.Build) { b.Repository = "other" }, "an identity that the Verifier does not trust"},
		"another workflow":             {g.GitHub, func(b *sigstore.Build) { b.Workflow = "test.yml" }, "an identity that the Verifier does not trust"},
		"before the authorities":       {g.GitHub, func(b *sigstore.Build) { b.Time = time.Now().AddDate(-1, 0, 0) }, "does not hold under ClusterTrustStore github"},
	} {
		t.Run(name, func(t *testing.T) {
			b := build()
			c.change(&b)
			e.eventually(t, e.attested(t, c.by, b), policy.Denied, c.says)
		})
	}
	t.Run("signed under the public-good root", func(t *testing.T) {
		publicGood, err := sigstore.New()
		require.NoError(t, err)
		img, err := e.registry.PushImage(t.Context(), "team-a/app", "v1")
		require.NoError(t, err)
		text, err := publicGood.Bundle("release@example.com", sigstore.GitHubIssuer, sigstore.Statement(img.Descriptor.Digest, provenance, build().Provenance()),
			sigstore.SignOptions{})
		require.NoError(t, err)
		e.bundle(t, img, text)
		e.eventually(t, img, policy.Denied, "does not hold under ClusterTrustStore github")
	})
	t.Run("without any attestation", func(t *testing.T) {
		img, err := e.registry.PushImage(t.Context(), "team-a/app", "v1")
		require.NoError(t, err)
		e.eventually(t, img, policy.Denied, "no attestation was found")
	})
}

func TestWorkflowsOfABranchCountAsThePageNamesThem(t *testing.T) {
	e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
	text, err := os.ReadFile("../../docs/howto/github-attestations.md")
	require.NoError(t, err)
	pattern := regexp.MustCompile("`subjectRegExp: ([^`]+)`").FindSubmatch(text)
	require.NotNil(t, pattern)
	spec := changed(t, onThePage(t, "github-private"), "subject: https://github.com/example/app/.github/workflows/build.yml@refs/heads/main", "subjectRegExp: "+string(pattern[1]))
	e.fetching(t, g.options(), g.cluster(), verifying(t, "release", spec), e.policy(t, "team-a", "p", releaseNeeded))
	named := build()
	named.Repository = "web"
	e.eventually(t, e.attested(t, g.GitHub, named), policy.Allowed, "")
	for _, change := range []func(*sigstore.Build){
		func(b *sigstore.Build) { b.Ref = "refs/pull/1/merge" }, func(b *sigstore.Build) { b.Ref = "refs/heads/dev" }, func(b *sigstore.Build) {
			b.Ref = "refs/heads/x@refs/heads/main"
		},
		func(b *sigstore.Build) { b.Repository = "other" }, func(b *sigstore.Build) { b.Repository = "web-evil" }, func(b *sigstore.Build) {
			b.Workflow = "test.yml"
		},
	} {
		b := build()
		b.Repository = "web"
		change(&b)
		e.eventually(t, e.attested(t, g.GitHub, b), policy.Denied, "an identity that the Verifier does not trust")
	}
}

// The block that writes the ClusterTrustStore runs as it stands, with the root of the stand-in.
func TestThePageWritesGitHubsRootAsItIs(t *testing.T) {
	e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
	runner := page.Runner{Dir: t.TempDir(), Environment: []string{"PATH=" + os.Getenv("PATH")}, Progress: io.Discard}
	require.NoError(t, os.WriteFile(filepath.Join(runner.Dir, "root.json"), []byte(g.repository.Root()), 0o600))
	ran := 0
	for _, b := range recipe(t) {
		if b.Mark == page.By && b.Name == t.Name() {
			b.Mark = page.Run
			require.NoError(t, runner.Run(t.Context(), b))
			ran++
		}
	}
	require.Equal(t, 1, ran)
	text, err := os.ReadFile(filepath.Join(runner.Dir, "github-root.yaml"))
	require.NoError(t, err)
	store := &v1beta1.ClusterTrustStore{}
	require.NoError(t, yaml.UnmarshalStrict(text, store))
	require.Equal(t, "https://tuf-repo.github.com", store.Spec.Source.TUF.Mirror)
	require.JSONEq(t, g.repository.Root(), store.Spec.Source.TUF.Root)
	store.Spec.Source.TUF.Mirror, store.Spec.Source.TUF.CABundle = g.address, &v1beta1.CABundle{Inline: g.authority}
	e.fetching(t, g.options(), func(o *resource.Objects) { o.Resources = append(o.Resources, store) },
		verifying(t, "release", onThePage(t, "github-private")), e.policy(t, "team-a", "p", releaseNeeded))
	e.eventually(t, e.attested(t, g.GitHub, build()), policy.Allowed, "")
}

func TestTheOwnerInTheCertificateCountsWhateverTheSubjectIs(t *testing.T) {
	e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
	spec := changed(t, onThePage(t, "github-private"), "subject: https://github.com/example/app/.github/workflows/build.yml@refs/heads/main", "subjectRegExp: https://github\\.com/.*\n        insecureAllowAnySubject: true")
	e.fetching(t, g.options(), g.cluster(), verifying(t, "release", spec), e.policy(t, "team-a", "p", releaseNeeded))
	e.eventually(t, e.attested(t, g.GitHub, build()), policy.Allowed, "")
	evil := build()
	evil.Owner = "evil"
	e.eventually(t, e.attested(t, g.GitHub, evil), policy.Denied, "does not meet the keyless expression")
}

// What the root does not have must be ignored by name, and the condition says which field.
func TestAVerifierThatDemandsLogsOfGitHubIsToldWhatToSet(t *testing.T) {
	for field, says := range map[string]string{
		"insecureIgnoreTransparencyLog": "ClusterTrustStore github has no transparency log, so no signature could count: set " +
			"spec.attestation.keyless.insecureIgnoreTransparencyLog to true",
		"insecureIgnoreSCT": "ClusterTrustStore github has no certificate transparency log, so no signature could count: set " +
			"spec.attestation.keyless.insecureIgnoreSCT to true",
	} {
		e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
		spec := changed(t, onThePage(t, "github-private"), field+": true", field+": false")
		problems := e.fetching(t, g.options(), g.cluster(), verifying(t, "release", spec), e.policy(t, "team-a", "p", releaseNeeded))
		e.eventually(t, e.attested(t, g.GitHub, build()), policy.Denied, says)
		// Problems are reported after what they are about is in force.
		require.Eventually(t, func() bool {
			found := problems()
			return len(found) > 0 && found[0].Reason == policy.ReasonInvalid && strings.Contains(found[0].Message, says)
		}, suite.Patience, 5*time.Millisecond)
	}
}

// GitHub replaces its authorities every few months. Nothing is restarted for it.
func TestANewRootOfGitHubIsTakenOverAtTheNextRefresh(t *testing.T) {
	e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
	e.fetching(t, g.options(), g.cluster(), verifying(t, "release", onThePage(t, "github-private")), e.policy(t, "team-a", "p", releaseNeeded))
	now := time.Now()
	earlier := build()
	earlier.Time = now.Add(-time.Hour)
	old, late := e.attested(t, g.GitHub, earlier), e.attested(t, g.GitHub, build())
	e.eventually(t, old, policy.Allowed, "")
	e.eventually(t, late, policy.Allowed, "")

	require.NoError(t, g.Rotate(now.Add(-2*time.Hour), now.Add(-30*time.Minute)))
	next := build()
	next.Generation = 1
	fresh := e.attested(t, g.GitHub, next)
	e.eventually(t, fresh, policy.Denied, "does not hold under ClusterTrustStore github")
	text, err := g.TrustedRoot()
	require.NoError(t, err)
	require.NoError(t, g.repository.PublishWith(2, text), "fewer keys than the root demands")
	require.Eventually(t, func() bool { return g.repository.Served("/2.targets.json") > 1 }, suite.Patience, 5*time.Millisecond)
	e.eventually(t, fresh, policy.Denied, "does not hold under ClusterTrustStore github")
	g.publish(t)
	e.eventually(t, fresh, policy.Allowed, "")
	e.eventually(t, old, policy.Allowed, "") // signed while the first generation was in use
	e.eventually(t, late, policy.Denied, "does not hold under ClusterTrustStore github")

	report := conditions.Reports(e.Set().Snapshot(), verify.Cluster)[policy.ObjectRef{Kind: v1beta1.KindClusterTrustStore, Name: "github"}]
	require.Equal(t, policy.ReasonValid, report.Ready.Reason)
	require.NotZero(t, report.FetchedAt)

	g.Drop()
	g.publish(t)
	e.eventually(t, old, policy.Denied, "does not hold under ClusterTrustStore github")
	e.eventually(t, fresh, policy.Allowed, "")
}

func TestTheLastRootOfGitHubCountsWhileItsRepositoryIsDown(t *testing.T) {
	e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
	g.repository.Break(true)
	img := e.attested(t, g.GitHub, build())
	e.fetching(t, g.options(), g.cluster(), verifying(t, "release", onThePage(t, "github-private")), e.policy(t, "team-a", "p", releaseNeeded))
	e.eventually(t, img, policy.Denied, "ClusterTrustStore github")
	g.repository.Break(false)
	e.eventually(t, img, policy.Allowed, "")
	g.repository.Break(true)
	e.eventually(t, e.attested(t, g.GitHub, build()), policy.Allowed, "")
}

func TestAProvenanceUnderEitherRootIsEnoughWithTwoVerifiers(t *testing.T) {
	e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
	publicGood, err := sigstore.New()
	require.NoError(t, err)
	// The stand-in certifies e-mail addresses, without an SCT.
	public := changed(t, onThePage(t, "github-public"), "subject: https://github.com/example/app/.github/workflows/build.yml@refs/heads/main", "subject: release@example.com")
	public = changed(t, public, "      expression: |\n        claims.sourceRepositoryOwnerURI == \"https://github.com/example\"",
		"      rootTrustStoreRef: {name: root}\n      insecureIgnoreSCT: true")
	text, err := publicGood.TrustedRoot()
	require.NoError(t, err)
	root := trustStore("team-a", "root", v1beta1.TrustStoreTypeSigstoreRoot, string(text))
	e.fetching(t, g.options(), g.cluster(), verifying(t, "private", onThePage(t, "github-private")), verifying(t, "public", public),
		func(o *resource.Objects) { o.Resources = append(o.Resources, root) },
		e.policy(t, "team-a", "p", `rules: [{images: ["**"], require: [{anyOf: [private, public]}]}]`))
	e.eventually(t, e.attested(t, g.GitHub, build()), policy.Allowed, "")
	signed := func(options sigstore.SignOptions) fixture.Image {
		img, err := e.registry.PushImage(t.Context(), "team-a/app", "v1")
		require.NoError(t, err)
		text, err := publicGood.Bundle("release@example.com", sigstore.GitHubIssuer,
			sigstore.Statement(img.Descriptor.Digest, provenance, build().Provenance()), options)
		require.NoError(t, err)
		e.bundle(t, img, text)
		return img
	}
	e.eventually(t, signed(sigstore.SignOptions{}), policy.Allowed, "")
	e.eventually(t, signed(sigstore.SignOptions{WithoutLog: true}), policy.Denied, "is in no transparency log")
}

func TestATeamNamesGitHubsRepositoryOnlyIfAnAdminListsIt(t *testing.T) {
	for name, c := range map[string]struct {
		listed bool
		want   policy.Outcome
		says   string
	}{"listed": {true, policy.Allowed, ""}, "not listed": {false, policy.Denied, "--egress-host"}} {
		t.Run(name, func(t *testing.T) {
			e, g := newEnvironment(t, fixture.RegistryOptions{}), newGitHub(t)
			options := g.options()
			if c.listed {
				options.EgressHosts = []string{g.host()}
			}
			store := trustStore("team-a", "github", v1beta1.TrustStoreTypeSigstoreRoot, "")
			store.Spec.Source.TUF = g.source()
			e.fetching(t, options, func(o *resource.Objects) { o.Resources = append(o.Resources, store) },
				verifying(t, "release", changed(t, onThePage(t, "github-private"), "kind: ClusterTrustStore, ", "")), e.policy(t, "team-a", "p", releaseNeeded))
			e.eventually(t, e.attested(t, g.GitHub, build()), c.want, c.says)
		})
	}
}
