//go:build e2e

package admission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// site is a folder with what an admin of a site without a network has.
type site struct {
	dir        string
	instance   *sigstore.Sigstore
	repository *sigstore.Repository
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir()}
	var err error
	s.instance, err = sigstore.New()
	require.NoError(t, err)
	s.repository, err = sigstore.NewRepository()
	require.NoError(t, err)
	text, err := s.instance.TrustedRoot()
	require.NoError(t, err)
	s.sign(t, sigstore.RepositoryState{Version: 1, Expires: time.Now().Add(20 * 24 * time.Hour), Fresh: time.Now().Add(24 * time.Hour), TrustedRoot: text})
	initial, err := os.ReadFile(filepath.Join(s.dir, "tuf-copy", "root.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "root.json"), initial, 0o600))
	return s
}

// sign writes the copy of the repository.
func (s *site) sign(t *testing.T, state sigstore.RepositoryState) {
	t.Helper()
	copied := filepath.Join(s.dir, "tuf-copy")
	require.NoError(t, os.RemoveAll(copied))
	require.NoError(t, s.repository.Write(copied, state))
}

// lasting is a root whose only authority goes on for a year.
func lasting(t *testing.T) []byte {
	t.Helper()
	ca, err := fixture.NewAuthorityWith("lasting", fixture.CertificateOptions{NotAfter: time.Now().AddDate(1, 0, 0)})
	require.NoError(t, err)
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{Root: ca.Chain[0], URI: "https://fulcio.example.com"}}, nil, nil, nil)
	require.NoError(t, err)
	text, err := made.MarshalJSON()
	require.NoError(t, err)
	return text
}

func (w *world) keyless(t *testing.T, s *site, repository string) string {
	t.Helper()
	img, err := w.Registry.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	text, err := s.instance.Bundle("release@example.com", "https://accounts.example.com",
		sigstore.Statement(img.Descriptor.Digest, cosign.PredicateTypeSignature, map[string]any{}), sigstore.SignOptions{SCTs: []int{0}})
	require.NoError(t, err)
	target, err := w.Registry.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	_, err = fixture.PushBundle(t.Context(), target, img, text)
	require.NoError(t, err)
	return w.Registry.Host() + "/" + repository + ":v1"
}

// The commands of docs/howto/air-gap.md run in its order. Nothing serves the TUF repository, and
// the responder of the certificates does not exist.
func TestTheCommandsOfThePageOnSitesWithoutANetworkWork(t *testing.T) {
	w := installed(t)
	ns, s := w.namespace(t), newSite(t)
	byIdentity := w.keyless(t, s, "airgap/keyless")
	ca, err := fixture.NewAuthority("signers")
	require.NoError(t, err)
	byCertificate, revoked := w.notationSigned(t, ca, "airgap/good"), w.notationSigned(t, ca, "airgap/revoked")
	list, err := ca.RevocationListPEM(fixture.ListOptions{Revoked: revoked.certificate.Chain[:1]})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "ca.crl"), list, 0o600))
	t.Cleanup(func() {
		w.remove(t, `{apiVersion: landwaiter.dev/v1beta1, kind: ClusterTrustStore, metadata: {name: company}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterTrustStore, metadata: {name: revocation-revocation-lists}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: company, namespace: landwaiter-system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: revocation, namespace: landwaiter-system}}`)
	})
	programs := filepath.Join(t.TempDir(), "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	require.NoError(t, os.Symlink(suite.MustTool(t, suite.Landwaiter), filepath.Join(programs, "landwaiter")))
	runner := page.Runner{Dir: s.dir, Progress: t.Output(), Environment: []string{"HOME=" + s.dir, "KUBECONFIG=" + w.Kubeconfig(),
		"PATH=" + programs + ":" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")},
		Substitutions: []page.Substitution{{Page: "team-a", Test: ns, Why: "the namespace is the test's"}},
		StandIns: map[string]func(context.Context, page.Block) (string, error){"update": func(context.Context, page.Block) (string, error) {
			s.sign(t, sigstore.RepositoryState{Version: 2, Expires: time.Now().AddDate(0, 6, 0), Fresh: time.Now().Add(24 * time.Hour), TrustedRoot: lasting(t)})
			return "", nil
		}}}
	blocks, err := page.Read(suite.Root, "docs/howto/air-gap.md")
	require.NoError(t, err)
	section := func(title string) {
		t.Helper()
		own := slices.DeleteFunc(slices.Clone(blocks), func(b page.Block) bool { return b.Section != title })
		require.NotEmpty(t, own, title)
		require.NoError(t, runner.Run(t.Context(), own...))
	}

	section("Trust")
	w.apply(t,
		policy(ns, "images", `{rules: [{images: ["`+w.Registry.Host()+`/airgap/keyless"], require: [{anyOf: [release]}]}, {images: ["**"], require: [{anyOf: `+
			`[notation]}]}]}`))
	w.admitted(t, ns, byIdentity)
	said := w.conditionOf(t, v1beta1.ConditionExpiresSoon, &v1beta1.ClusterTrustStore{}, "", "company", metav1.ConditionTrue, "Expiring")
	require.Contains(t, said.Message, "TUF role targets, version 1 expires at")

	section("Revocation lists")
	w.apply(t, header(ns, "TrustStore", "signers")+"spec:\n  type: Certificates\n  source:\n    inline: |\n"+indent(string(ca.CertificatePEM)))
	notation, err := os.ReadFile(filepath.Join(s.dir, "notation.yaml"))
	require.NoError(t, err)
	w.apply(t, string(notation))
	w.admitted(t, ns, byCertificate.image)
	w.denied(t, ns, revoked.image, "is revoked")

	section("Renew before it ends")
	w.denied(t, ns, byIdentity, "release") // by the authority that is no longer trusted
	_, err = stack.Get(t.Context(), w.Current().MetricsURL+"/metrics")
	require.NoError(t, err)
}

type notationImage struct {
	image       string
	certificate *fixture.Certificate
}

// notationSigned pushes an image that is signed with a certificate whose responder nobody
// can reach.
func (w *world) notationSigned(t *testing.T, ca *fixture.Authority, repository string) notationImage {
	t.Helper()
	certificate, err := ca.IssueSigner("release", fixture.CertificateOptions{Responder: "http://ocsp.invalid", Lists: "http://crl.invalid/ca.crl"})
	require.NoError(t, err)
	img, err := w.Registry.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	_, err = w.Registry.SignNotation(t.Context(), img, certificate, fixture.NotationOptions{})
	require.NoError(t, err)
	return notationImage{w.Registry.Host() + "/" + repository + ":v1", certificate}
}

func TestTrustIsExportedOnlyFromAVerifiedCopy(t *testing.T) {
	s := newSite(t)
	export := func(flags ...string) suite.Result {
		return landwaiter(t).
			Run(t, "", append([]string{"trust", "export", "--mirror", filepath.Join(s.dir, "tuf-copy"), "--root", filepath.Join(s.dir, "root.json")}, flags...)...)
	}
	first := export()
	require.Equal(t, 0, first.Code, first)
	require.Contains(t, first.Stderr, "TUF role targets, version 1 expires at")
	require.Equal(t, first.Stdout, export().Stdout, "Git shows a change only where there is one")
	rules := t.TempDir()
	r := export("--timestamp-authorities", "--out", rules)
	require.Equal(t, 0, r.Code, r)
	landwaiter(t).Must(t, "check", "--strict", rules)

	other := newSite(t)
	none := filepath.Join(t.TempDir(), "none.yaml")
	for name, c := range map[string]struct {
		spoil func()
		flags []string
		code  int
		says  string
	}{
		"another root": {nil, []string{"--root", filepath.Join(other.dir, "root.json")}, 1, "not signed by the keys of its root"},
		"no root file": {nil, []string{"--root", "nothing.json"}, 64, "nothing.json"},
		"no mirror":    {nil, []string{"--mirror", "https://127.0.0.1:1"}, 69, "TUF repository"},
		"a name":       {nil, []string{"--name", "A"}, 64, "--name"},
		"changed": {func() {
			names, err := filepath.Glob(filepath.Join(s.dir, "tuf-copy", "targets", "*"))
			require.NoError(t, err)
			text, err := os.ReadFile(names[0])
			require.NoError(t, err)
			text[len(text)/2] ^= 1 // of the same length
			require.NoError(t, os.WriteFile(names[0], text, 0o600))
		}, nil, 1, "not what its metadata says"},
		"expired": {func() {
			s.sign(t, sigstore.RepositoryState{Version: 3, Expires: time.Now().AddDate(1, 0, 0), Fresh: time.Now().Add(-time.Minute), TrustedRoot: lasting(t)})
		}, nil, 1, "has expired"},
		"incomplete": {func() { require.NoError(t, os.Remove(filepath.Join(s.dir, "tuf-copy", "timestamp.json"))) }, nil, 1, "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s.sign(t, sigstore.RepositoryState{Version: 2, Expires: time.Now().AddDate(1, 0, 0), Fresh: time.Now().Add(time.Hour), TrustedRoot: lasting(t)})
			if c.spoil != nil {
				c.spoil()
			}
			r := export(append([]string{"--out", none}, c.flags...)...)
			require.Equal(t, c.code, r.Code, r)
			require.Contains(t, r.Stderr, c.says)
			require.Empty(t, r.Stdout)
			require.NoFileExists(t, none)
		})
	}
}

// Go says which names it looks up if it is asked to. Whoever names no server has none.
func TestAServerWithStaticKeysLooksUpNoName(t *testing.T) {
	w := installed(t)
	lookups := func(resources string, ask func(client *gatekeeper.Client)) func() string {
		rules := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(rules, "rules.yaml"), []byte(resources), 0o600))
		server, err := suite.ForTest(t).
			Server(suite.Within(t), suite.ServerOptions{Binary: suite.LandwaiterServer, Timeout: suite.Patience, Env: []string{"GODEBUG=netdns=go+2"},
				Args: []string{"--config-dir", rules, "--client-name", gatekeeper.ClientName, "--egress-host", "ocsp.invalid"}})
		require.NoError(t, err)
		ask(server.Client)
		return func() string {
			var found []string
			for _, line := range strings.Split(server.Tail(1000), "\n") {
				if strings.Contains(line, "hostLookupOrder") {
					found = append(found, line)
				}
			}
			return strings.Join(found, "\n")
		}
	}
	store := header("", "Store", "registry") + "spec: {registries: [\"" + w.Registry.Host() + "\"], insecurePlainHTTP: true}\n"
	ns := "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}\n"
	ca, err := fixture.NewAuthority("offline")
	require.NoError(t, err)
	image := w.notationSigned(t, ca, "airgap/offline")
	list, err := ca.RevocationListPEM(fixture.ListOptions{})
	require.NoError(t, err)
	certificates := header("team-a", "TrustStore", "ca") + "spec:\n  type: Certificates\n  source:\n    inline: |\n" + indent(string(ca.CertificatePEM)) +
		header("team-a", "TrustStore", "lists") + "spec:\n  type: RevocationLists\n  source:\n    inline: |\n" + indent(string(list))
	notation := func(more string) string {
		return header("team-a", "Verifier", "release") + "spec: {type: Notation, notation: {trustStoreRefs: [{name: ca}], trustedIdentities: [\"*\"], " +
			"revocation: Check" + more + "}}\n"
	}
	verdict := func(image, want string) func(*gatekeeper.Client) {
		return func(client *gatekeeper.Client) {
			response, err := client.Ask(t.Context(), gatekeeper.VerifyPath, "[team-a]"+image)
			require.NoError(t, err)
			said := response.SystemError
			if said == "" {
				judged, why := gatekeeper.Judge(response.Items[0])
				said = string(judged) + " " + why
			}
			require.Contains(t, said, want)
		}
	}
	byKey := lookups(store+ns+own("team-a", w.teamA), verdict(w.byTeamA, "allowed"))
	byLists := lookups(store+ns+certificates+notation(", revocationListTrustStoreRefs: [{name: lists}]"), verdict(image.image, "allowed"))
	// This test could see one. A busy machine answers before it has looked the name up.
	found := lookups(store+ns+certificates+notation(""), verdict(image.image, "revo"))
	suite.Eventually(t, func(context.Context) error {
		if !strings.Contains(found(), "ocsp.invalid") {
			return fmt.Errorf("the lookups are %q", found())
		}
		return nil
	})
	require.Empty(t, byKey())
	require.Empty(t, byLists())
}
