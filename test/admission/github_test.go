//go:build e2e

package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
	"github.com/landwaiter/landwaiter/test/kit/suite"
	"github.com/landwaiter/landwaiter/test/kit/tuf"
)

const provenance = "https://slsa.dev/provenance/v1"

// fromGitHub is a Verifier as in docs/howto/github-attestations.md.
func fromGitHub(ns, ignore string) string {
	return header(ns, "Verifier", "release") + `spec:
  type: Attestation
  attestation:
    predicateType: ` + provenance + `
    keyless:
      rootTrustStoreRef: {kind: ClusterTrustStore, name: github}
      identities:
      - issuer: https://token.actions.githubusercontent.com
        subject: https://github.com/example/app/.github/workflows/build.yml@refs/heads/main
      expression: claims.sourceRepositoryOwnerURI == "https://github.com/example" && claims.runnerEnvironment == "github-hosted"
      ` + ignore + "\n"
}

// attested pushes an image with the provenance of a build.
func (w *world) attested(t *testing.T, by *sigstore.GitHub, change func(*sigstore.Build)) string {
	t.Helper()
	b := sigstore.Build{Owner: "example", Repository: "app", Workflow: "build.yml"}
	change(&b)
	repository := fmt.Sprintf("example/app-%d", w.names.Add(1))
	img, err := w.Registry.PushImage(suite.Within(t), repository, "v1")
	require.NoError(t, err)
	text, err := by.Attest(b, sigstore.Statement(img.Descriptor.Digest, provenance, b.Provenance()))
	require.NoError(t, err)
	target, err := w.Registry.Repository(suite.Within(t), repository)
	require.NoError(t, err)
	_, err = fixture.PushBundle(suite.Within(t), target, img, text)
	require.NoError(t, err)
	return w.Registry.Host() + "/" + repository + ":v1"
}

// githubRoot makes the recipe's ClusterTrustStore for a stand-in of GitHub's TUF repository,
// which is down at first.
func (w *world) githubRoot(t *testing.T, instance *sigstore.GitHub) *tuf.Repository {
	t.Helper()
	repository, err := tuf.New()
	require.NoError(t, err)
	text, err := instance.TrustedRoot()
	require.NoError(t, err)
	require.NoError(t, repository.Publish(text))
	repository.Break(true)
	address, authority := tuf.Serve(t, repository)
	store := &v1beta1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: "github"}}
	store.Spec.Type = v1beta1.TrustStoreTypeSigstoreRoot
	store.Spec.Source.TUF = &v1beta1.TUFSource{Mirror: address, Root: repository.Root(),
		CABundle: &v1beta1.CABundle{Inline: authority}}
	require.NoError(t, w.Client.Create(suite.Within(t), store))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), store); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete ClusterTrustStore github: %v", err)
		}
	})
	return repository
}

func TestPodsNeedProvenanceUnderGitHubsOwnRoot(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	instance, err := sigstore.NewGitHub()
	require.NoError(t, err)
	stranger, err := sigstore.NewGitHub()
	require.NoError(t, err)
	good := w.attested(t, instance, func(*sigstore.Build) {})
	w.apply(t, fromGitHub(ns, "insecureIgnoreSCT: true")+policy(ns, "release", needing("{anyOf: [release]}")))
	// Statuses are being written: the pauses between fetches double for as long as the
	// repository is down.
	w.condition(t, &v1beta1.Verifier{}, ns, "release", metav1.ConditionFalse, "NotFound")
	repository := w.githubRoot(t, instance)
	w.condition(t, &v1beta1.ClusterTrustStore{}, "", "github", metav1.ConditionFalse, "Unreadable")
	w.denied(t, ns, good, "ClusterTrustStore github")

	repository.Break(false)
	store := &v1beta1.ClusterTrustStore{}
	w.condition(t, store, "", "github", metav1.ConditionTrue, "Valid")
	suite.Eventually(t, func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(store), store); err != nil {
			return err
		}
		if store.Status.FetchedAt.IsZero() {
			return errors.New("status.fetchedAt is not set")
		}
		return nil
	})
	said := w.condition(t, &v1beta1.Verifier{}, ns, "release", metav1.ConditionFalse, "Invalid")
	require.Contains(t, said.Message, "set spec.attestation.keyless.insecureIgnoreTransparencyLog to true")
	w.denied(t, ns, good, "set spec.attestation.keyless.insecureIgnoreTransparencyLog to true")

	w.apply(t, fromGitHub(ns, "insecureIgnoreSCT: true\n      insecureIgnoreTransparencyLog: true"))
	w.condition(t, &v1beta1.Verifier{}, ns, "release", metav1.ConditionTrue, "Valid")
	w.admitted(t, ns, good)
	for says, image := range map[string]string{
		"has no trusted time":                                 w.attested(t, instance, func(b *sigstore.Build) { b.WithoutTimestamp = true }),
		"does not hold under ClusterTrustStore github":        w.attested(t, stranger, func(*sigstore.Build) {}),
		"timestamp of the signature does not hold":            w.attested(t, instance, func(b *sigstore.Build) { b.Stamper = stranger }),
		"an identity that the Verifier does not trust":        w.attested(t, instance, func(b *sigstore.Build) { b.Owner = "evil" }),
		"To fix, if your build made it: sign in the workflow": w.attested(t, instance, func(b *sigstore.Build) { b.Ref = "refs/pull/1/merge" }),
	} {
		w.denied(t, ns, image, says)
	}
}
