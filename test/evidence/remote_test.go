//go:build !e2e && !nightly

package evidence

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// vault is a server that answers as HashiCorp Vault does for one transit key.
type vault struct {
	address, host, authority string

	mu   sync.Mutex
	keys []string // PEM, by version
}

func newVault(t *testing.T) *vault {
	t.Helper()
	ca, err := fixture.NewAuthority("vault")
	require.NoError(t, err)
	certificate, err := ca.IssueServer("127.0.0.1")
	require.NoError(t, err)
	v := &vault{authority: string(ca.CertificatePEM)}
	server := httptest.NewUnstartedServer(v)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate.TLS}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	v.address, v.host = server.URL, strings.TrimPrefix(server.URL, "https://")
	return v
}

func (v *vault) rotate(keys ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys = keys
}

// ServeHTTP answers "Read key" of the transit engine to the right token.
func (v *vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.Header.Get("X-Vault-Token") != "token-of-a" || r.URL.Path != "/v1/transit/keys/release" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	versions := map[string]any{}
	for i, key := range v.keys {
		versions[string(rune('1'+i))] = map[string]any{"name": "ecdsa-p256", "public_key": key}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"keys": versions, "latest_version": len(v.keys)}})
}

// keptInVault gives a namespace a trust store with a key in Vault, a Secret with a
// token for it, and a verifier.
func (v *vault) keptInVault(t *testing.T, namespace, token string) func(*resource.Objects) {
	t.Helper()
	trust := trustStore(namespace, "release", v1beta1.TrustStoreTypePublicKeys, "")
	trust.Spec.Source.Vault = &v1beta1.VaultSource{Address: v.address, Path: "transit/keys/release",
		CABundle: &v1beta1.CABundle{Inline: v.authority}, TokenSecretKeyRef: &v1beta1.KeyReference{Name: "vault", Key: "token"}}
	secret := corev1.Secret{StringData: map[string]string{"token": token}}
	secret.Namespace, secret.Name = namespace, "vault"
	verifier := &v1beta1.Verifier{Spec: byKey("release")}
	verifier.Namespace, verifier.Name = namespace, "release"
	return func(o *resource.Objects) {
		o.Resources, o.Secrets = append(o.Resources, trust, verifier), append(o.Secrets, secret)
	}
}

// fetching applies resources, and again whenever what they keep elsewhere changes,
// as the server does.
func (e *environment) fetching(t *testing.T, options service.Options, resources ...func(*resource.Objects)) (problems func() []resource.Problem) {
	t.Helper()
	e.start(t, options)
	var last atomic.Pointer[[]resource.Problem]
	e.Reapply(func(problems []resource.Problem) { last.Store(&problems) })
	first := e.apply(t, resources...)
	last.CompareAndSwap(nil, &first) // else it was applied again meanwhile
	return func() []resource.Problem { return *last.Load() }
}

func TestKeysInVaultAreFetchedForTheTenantThatHasTheToken(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	v := newVault(t)
	old, fresh := e.signed(t, "app/old", "old"), e.signed(t, "app/new", "new")
	v.rotate(string(e.signer(t, "old").PEM))
	problems := e.fetching(t, service.Options{EgressHosts: []string{v.host}, External: external.Options{Refresh: 10 * time.Millisecond}},
		v.keptInVault(t, "team-a", "token-of-a"), v.keptInVault(t, "team-b", "stolen"))
	verdict := func(namespace verify.Namespace, img fixture.Image) policy.Verdict {
		return e.Verify(t.Context(), namespace, img.Reference).Verdict
	}
	allowed := func(img fixture.Image) func() bool {
		return func() bool { return verdict("team-a", img).Outcome() == policy.Allowed }
	}
	require.Eventually(t, allowed(old), suite.Patience, time.Millisecond)
	require.Equal(t, policy.Denied, verdict("team-a", fresh).Outcome())
	require.Eventually(t, func() bool {
		return strings.Contains(verdict("team-b", old).Reason, "Vault refuses the token")
	}, suite.Patience, time.Millisecond)
	// Problems are reported after what they are about is in force.
	require.Eventually(t, func() bool { return len(problems()) == 2 }, suite.Patience, time.Millisecond, "the trust store of team-b, and its verifier")
	require.Equal(t, policy.ReasonUnreadable, problems()[0].Reason)
	report := conditions.Reports(e.Set().Snapshot(), "team-a")[policy.ObjectRef{Kind: v1beta1.KindTrustStore, Namespace: "team-a", Name: "release"}]
	require.Len(t, report.Fingerprints, 1)
	require.NotZero(t, report.FetchedAt)

	v.rotate(string(e.signer(t, "old").PEM), string(e.signer(t, "new").PEM))
	require.Eventually(t, allowed(fresh), suite.Patience, time.Millisecond, "a new version")
	require.Equal(t, policy.Allowed, verdict("team-a", old).Outcome(), "and the old one still")
	v.rotate(string(e.signer(t, "new").PEM))
	require.Eventually(t, func() bool { return verdict("team-a", old).Outcome() == policy.Denied }, suite.Patience, time.Millisecond, "until it is gone")
}

func TestVaultsThatNoAdminHasListedAreNotAsked(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	v := newVault(t)
	img := e.signed(t, "app/old", "old")
	v.rotate(string(e.signer(t, "old").PEM))
	e.fetching(t, service.Options{}, v.keptInVault(t, "team-a", "token-of-a"))
	require.Eventually(t, func() bool {
		verdict := e.Verify(t.Context(), "team-a", img.Reference).Verdict
		return verdict.Outcome() == policy.Denied && strings.Contains(verdict.Reason, "--egress-host")
	}, suite.Patience, time.Millisecond)
}
