//go:build e2e

package evidence

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
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
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	account = "123456789012"
	host    = "data-signer.eu-west-1.amazonaws.com"

	credentials = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: aws, namespace: team-a}\nstringData: {accessKeyID: AKIDTEAMA, secretAccessKey: secret}\n"
	everything  = `rules: [{images: ["**"], require: [{anyOf: [release]}]}]`
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
	case query.Get("platformId") != "Notation-OCI-SHA384-ECDSA" || query.Get("signatureTimestamp") == "" || len(query["certificateHashes"]) != 2 ||
		len(query["certificateHashes"][0]) != 192:
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

// serve starts a server that finds AWS Signer here.
func (a *api) serve(t *testing.T, resources string) *server {
	t.Helper()
	return serveWith(t, suite.ServerOptions{Binary: suite.FullServer, Args: []string{"--cloud-endpoint", host + "=" + a.address},
		Env: []string{"SSL_CERT_FILE=" + a.roots, "SSL_CERT_DIR=" + t.TempDir()}}, map[string]string{"all": resources})
}

// signedByAWS pushes an image with a signature as AWS Signer makes them.
func signedByAWS(t *testing.T, registry *fixture.Registry, name, profile, job string, signer *fixture.Certificate, cose bool) fixture.Image {
	t.Helper()
	img := pushed(t, registry, name, nil)
	options := fixture.NewAWSSignerJob(profile, job).Options()
	options.COSE = cose
	_, err := registry.SignNotation(t.Context(), img, signer, options)
	require.NoError(t, err)
	return img
}

func TestImagesThatAWSSignerSignedForATeamsProfileAreAdmitted(t *testing.T) {
	registry, aws := plainRegistry(t), startAPI(t)
	root, err := fixture.NewAuthority("AWS Signer Code Signing Root CA G1")
	require.NoError(t, err)
	leaf, err := root.IssueSigner("AWS Signer", fixture.CertificateOptions{})
	require.NoError(t, err)
	stranger, err := fixture.NewSigner("AWS Signer", fixture.CertificateOptions{})
	require.NoError(t, err)
	trusted := profileOf(account, "release")

	verifier := "type: Notation\nnotation:\n  signingAuthorities: {trustStoreRefs: [{name: aws-signer}]}\n  awsSigner: {profiles: [\"" + trusted + "\"]}"
	certificates := "type: SigningAuthorities\n" + inline("source", root.CertificatePEM)
	resources := store("", "loopback", []string{registry.Host()}, nil, plainHTTP) +
		namespaceOf("team-a") + credentials +
		document("TrustStore", "team-a", "aws-signer", certificates+"\nawsSigner: {secretRef: {name: aws}}") +
		document("Verifier", "team-a", "release", verifier) + document("VerificationPolicy", "team-a", "images", everything) +
		// A team that trusts the same root for a profile of another account, and one that
		// trusts the root without AWS Signer.
		namespaceOf("team-b") + document("TrustStore", "team-b", "aws-signer", certificates) +
		document("Verifier", "team-b", "release", strings.Replace(strings.Replace(verifier, account, "210987654321", 1), "\"]}", "\"], revocation: Ignore}", 1)) +
		document("VerificationPolicy", "team-b", "images", everything) +
		namespaceOf("team-c") + document("TrustStore", "team-c", "aws-signer", certificates) +
		document("Verifier", "team-c", "release", "type: Notation\nnotation: {signingAuthorities: {trustStoreRefs: [{name: aws-signer}]}, "+
			"trustedIdentities: [\"*\"]}") +
		document("VerificationPolicy", "team-c", "images", everything)
	good := signedByAWS(t, registry, "team-a/app", trusted, jobOf(1), leaf, false)
	inCOSE := signedByAWS(t, registry, "team-a/cose", trusted, jobOf(2), leaf, true)
	revoked := signedByAWS(t, registry, "team-a/revoked", trusted, jobOf(3), leaf, false)
	foreign := signedByAWS(t, registry, "team-a/foreign", profileOf("210987654321", "release"), jobOf(4), leaf, false)
	similar := signedByAWS(t, registry, "team-a/similar", profileOf(account, "release2"), jobOf(5), leaf, false)
	forged := signedByAWS(t, registry, "team-a/forged", trusted, jobOf(6), stranger, false)
	aws.become(false, jobOf(3))
	s := aws.serve(t, resources)

	for _, img := range []fixture.Image{good, inCOSE} {
		verdict, why := s.judged(t, "team-a", img.Reference.String())
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
		"unsigned":                    {"team-a", pushed(t, registry, "team-a/unsigned", nil), "release"},
		"a profile of another team":   {"team-b", good, "which is none of the profiles"},
		"no AWS Signer":               {"team-c", good, "does not trust AWS Signer"},
	} {
		verdict, why := s.judged(t, c.namespace, c.img.Reference.String())
		require.Equal(t, gatekeeper.Denied, verdict, name)
		require.Contains(t, why, c.says, name)
	}
	verdict, why := s.judged(t, "team-b", foreign.Reference.String())
	require.Equal(t, gatekeeper.Allowed, verdict, why)
	for _, job := range aws.jobs() {
		require.Contains(t, []string{jobOf(1), jobOf(2), jobOf(3)}, job, "AWS Signer is only asked about signatures that are trusted otherwise")
	}
}

func TestNobodyIsAdmittedWhileAWSSignerDoesNotAnswer(t *testing.T) {
	registry, aws := plainRegistry(t), startAPI(t)
	root, err := fixture.NewAuthority("AWS Signer Code Signing Root CA G1")
	require.NoError(t, err)
	leaf, err := root.IssueSigner("AWS Signer", fixture.CertificateOptions{})
	require.NoError(t, err)
	trusted := profileOf(account, "release")
	resources := store("", "loopback", []string{registry.Host()}, nil, plainHTTP) + namespaceOf("team-a") + credentials +
		document("TrustStore", "team-a", "aws-signer", "type: SigningAuthorities\n"+inline("source", root.CertificatePEM)+"\nawsSigner: {secretRef: {name: aws}}") +
		document("Verifier", "team-a", "release", "type: Notation\nnotation:\n  signingAuthorities: {trustStoreRefs: [{name: aws-signer}]}\n  awsSigner: "+
			"{profiles: [\""+trusted+"\"]}") +
		document("VerificationPolicy", "team-a", "images", everything)
	img := signedByAWS(t, registry, "team-a/app", trusted, jobOf(1), leaf, false)
	aws.become(true)
	s := aws.serve(t, resources)
	suite.Eventually(t, func(ctx context.Context) error {
		verdict, why, err := s.ask(ctx, "team-a", img.Reference.String())
		require.NoError(t, err)
		require.Equal(t, undecided, verdict)
		require.Contains(t, why, "it is not known whether AWS Signer has revoked the signature")
		if len(aws.jobs()) < 2 {
			return errors.New("it is asked again in the background")
		}
		return nil
	})
	aws.become(false)
	verdict, why := s.judged(t, "team-a", img.Reference.String())
	require.Equal(t, gatekeeper.Allowed, verdict, why)
}
