//go:build e2e

package signer

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

const (
	account = "123456789012"
	host    = "data-signer.eu-west-1.amazonaws.com"
)

func profileOf(account, name string) string {
	return "arn:aws:signer:eu-west-1:" + account + ":/signing-profiles/" + name
}

func jobOf(n int) string {
	return fmt.Sprintf("arn:aws:signer:eu-west-1:%s:/signing-jobs/e218ee67-5dd3-4dc4-8caf-%012d", account, n)
}

// api is a stand-in of AWS Signer's GetRevocationStatus.
type api struct {
	roots, address string

	mu      sync.Mutex
	revoked []string
	down    bool
	asked   []string // jobs
}

func startAPI(t *testing.T) *api {
	t.Helper()
	authority, err := fixture.NewAuthority("Amazon")
	require.NoError(t, err)
	issued, err := authority.IssueServer(host)
	require.NoError(t, err)
	a := &api{roots: filepath.Join(t.TempDir(), "roots.pem")}
	require.NoError(t, os.WriteFile(a.roots, authority.CertificatePEM, 0o600))
	server := httptest.NewUnstartedServer(a)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{issued.TLS}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	a.address = strings.TrimPrefix(server.URL, "https://")
	return a
}

// ServeHTTP answers requests that are signed for the region by the team's key.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	query := r.URL.Query()
	job := query.Get("jobArn")
	a.asked = append(a.asked, job)
	authorization := r.Header.Get("Authorization")
	switch {
	case a.down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.Host != host || r.Method != http.MethodGet || r.URL.Path != "/revocations",
		!strings.HasPrefix(authorization, "AWS4-HMAC-SHA256 Credential=AKIDTEAMA/") || !strings.Contains(authorization, "/eu-west-1/signer/aws4_request"):
		w.WriteHeader(http.StatusForbidden)
		return
	case query.Get("platformId") != "Notation-OCI-SHA384-ECDSA" || query.Get("signatureTimestamp") == "" || len(query["certificateHashes"]) != 2 || len(query["certificateHashes"][0]) != 192:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := map[string][]string{"revokedEntities": {}}
	for _, entity := range []string{job, query.Get("profileVersionArn")} {
		if slices.Contains(a.revoked, entity) {
			answer["revokedEntities"] = append(answer["revokedEntities"], entity)
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *api) become(down bool, revoked ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down, a.revoked = down, revoked
}

func (a *api) jobs() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// signed pushes an image with a signature as AWS Signer makes them.
func signed(t *testing.T, registry *fixture.Registry, name, profile, job string, signer *fixture.Certificate, cose bool) fixture.Image {
	t.Helper()
	img := push(t, registry, name)
	options := fixture.NewAWSSignerJob(profile, job).Options()
	options.COSE = cose
	_, err := registry.SignNotation(t.Context(), img, signer, options)
	require.NoError(t, err)
	return img
}

func TestImagesThatAWSSignerSignedForATeamsProfileAreAdmitted(t *testing.T) {
	registry, aws := startRegistry(t), startAPI(t)
	root, err := fixture.NewAuthority("AWS Signer Code Signing Root CA G1")
	require.NoError(t, err)
	leaf, err := root.IssueSigner("AWS Signer", fixture.CertificateOptions{})
	require.NoError(t, err)
	stranger, err := fixture.NewSigner("AWS Signer", fixture.CertificateOptions{})
	require.NoError(t, err)
	trusted := profileOf(account, "release")

	dir := t.TempDir()
	verifier := "type: Notation\nnotation:\n  signingAuthorities: {trustStoreRefs: [{name: aws-signer}]}\n  awsSigner: {profiles: [\"" + trusted + "\"]}"
	certificates := "type: SigningAuthorities\n" + inline(string(root.CertificatePEM))
	write(t, dir, "all", loopback(registry),
		teamOf("team-a"), "apiVersion: v1\nkind: Secret\nmetadata: {name: aws, namespace: team-a}\nstringData: {accessKeyID: AKIDTEAMA, secretAccessKey: secret}\n",
		resource("TrustStore", "team-a", "aws-signer", certificates+"\nawsSigner: {secretRef: {name: aws}}"),
		resource("Verifier", "team-a", "release", verifier), resource("VerificationPolicy", "team-a", "images", everything),
		// A team that trusts the same root for a profile of another account, and one that
		// trusts the root without AWS Signer.
		teamOf("team-b"), resource("TrustStore", "team-b", "aws-signer", certificates),
		resource("Verifier", "team-b", "release", strings.Replace(strings.Replace(verifier, account, "210987654321", 1), "\"]}", "\"], revocation: Ignore}", 1)),
		resource("VerificationPolicy", "team-b", "images", everything),
		teamOf("team-c"), resource("TrustStore", "team-c", "aws-signer", certificates),
		resource("Verifier", "team-c", "release", "type: Notation\nnotation: {signingAuthorities: {trustStoreRefs: [{name: aws-signer}]}, trustedIdentities: [\"*\"]}"),
		resource("VerificationPolicy", "team-c", "images", everything),
	)
	good := signed(t, registry, "team-a/app", trusted, jobOf(1), leaf, false)
	inCOSE := signed(t, registry, "team-a/cose", trusted, jobOf(2), leaf, true)
	revoked := signed(t, registry, "team-a/revoked", trusted, jobOf(3), leaf, false)
	foreign := signed(t, registry, "team-a/foreign", profileOf("210987654321", "release"), jobOf(4), leaf, false)
	similar := signed(t, registry, "team-a/similar", profileOf(account, "release2"), jobOf(5), leaf, false)
	forged := signed(t, registry, "team-a/forged", trusted, jobOf(6), stranger, false)
	aws.become(false, jobOf(3))
	w := start(t, registry, dir, aws.roots, "--cloud-endpoint", host+"="+aws.address)

	for _, img := range []fixture.Image{good, inCOSE} {
		verdict, why := w.judged(t, "team-a", img)
		require.Equal(t, gatekeeper.Allowed, verdict, why)
	}
	for name, c := range map[string]struct {
		namespace string
		img       fixture.Image
		says      string
	}{
		"revoked":                     {"team-a", revoked, "AWS Signer has revoked signing job"},
		"another account":             {"team-a", foreign, "210987654321:/signing-profiles/release, which is none of the profiles"},
		"a name that begins the same": {"team-a", similar, "release2, which is none of the profiles"},
		"another root":                {"team-a", forged, "does not lead to a trust store"},
		"unsigned":                    {"team-a", push(t, registry, "team-a/unsigned"), "release"},
		"a profile of another team":   {"team-b", good, "which is none of the profiles"},
		"no AWS Signer":               {"team-c", good, "does not trust AWS Signer"},
	} {
		verdict, why := w.judged(t, c.namespace, c.img)
		require.Equal(t, gatekeeper.Denied, verdict, name)
		require.Contains(t, why, c.says, name)
	}
	verdict, why := w.judged(t, "team-b", foreign)
	require.Equal(t, gatekeeper.Allowed, verdict, why)
	for _, job := range aws.jobs() {
		require.Contains(t, []string{jobOf(1), jobOf(2), jobOf(3)}, job, "AWS Signer is only asked about signatures that are trusted otherwise")
	}
}

func TestNobodyIsAdmittedWhileAWSSignerDoesNotAnswer(t *testing.T) {
	registry, aws := startRegistry(t), startAPI(t)
	root, err := fixture.NewAuthority("AWS Signer Code Signing Root CA G1")
	require.NoError(t, err)
	leaf, err := root.IssueSigner("AWS Signer", fixture.CertificateOptions{})
	require.NoError(t, err)
	trusted := profileOf(account, "release")
	dir := t.TempDir()
	write(t, dir, "all", loopback(registry), teamOf("team-a"),
		"apiVersion: v1\nkind: Secret\nmetadata: {name: aws, namespace: team-a}\nstringData: {accessKeyID: AKIDTEAMA, secretAccessKey: secret}\n",
		resource("TrustStore", "team-a", "aws-signer", "type: SigningAuthorities\n"+inline(string(root.CertificatePEM))+"\nawsSigner: {secretRef: {name: aws}}"),
		resource("Verifier", "team-a", "release", "type: Notation\nnotation:\n  signingAuthorities: {trustStoreRefs: [{name: aws-signer}]}\n  awsSigner: {profiles: [\""+trusted+"\"]}"),
		resource("VerificationPolicy", "team-a", "images", everything))
	img := signed(t, registry, "team-a/app", trusted, jobOf(1), leaf, false)
	aws.become(true)
	w := start(t, registry, dir, aws.roots, "--cloud-endpoint", host+"="+aws.address)
	for len(aws.jobs()) < 2 { // it is asked again in the background
		answer, _ := w.ask(t, "team-a", img)
		require.Contains(t, answer.SystemError, "it is not known whether AWS Signer has revoked the signature")
		require.Empty(t, answer.Items)
	}
	aws.become(false)
	verdict, why := w.judged(t, "team-a", img)
	require.Equal(t, gatekeeper.Allowed, verdict, why)
}
