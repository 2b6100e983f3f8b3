package serving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func newRotation(t *testing.T, k *kube) *Rotation {
	t.Helper()
	r, err := NewRotation(k, k.providers, quiet(), RotationOptions{Secret: tlsSecret(), Service: "landwaiter",
		Names: []string{"localhost", "127.0.0.1"}, Providers: []Provider{
			{Name: "verify", URL: "https://landwaiter/v1/verify", TimeoutSeconds: 3},
			{Name: "mutate", URL: "https://landwaiter/v1/mutate", TimeoutSeconds: 1, Role: "mutate-provider"}}})
	require.NoError(t, err)
	return r
}

// lead runs a replica that leads, until the returned function is called.
func lead(t *testing.T, r *Rotation) (stop func()) {
	t.Helper()
	end := background(t, r.Run)
	resign := background(t, r.Lead)
	return func() {
		resign()
		end()
	}
}

func TestRefusesToRotateWithoutANamespace(t *testing.T) {
	for _, options := range []RotationOptions{
		{Service: "x", Secret: types.NamespacedName{Name: "x"}},
		{Service: "x", Secret: types.NamespacedName{Namespace: "x"}},
		{Secret: tlsSecret()},
	} {
		_, err := NewRotation(nil, nil, quiet(), options)
		require.Error(t, err)
	}
}

func TestMakesACertificateAndGivesItsAuthorityToProviders(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		began := time.Now()
		k.makeProvider(t, "of somebody else")
		lead(t, newRotation(t, k))

		data := k.secret(t).Data
		authority, served := certificateOf(t, data["ca.crt"]), certificateOf(t, data["tls.crt"])
		require.NoError(t, served.CheckSignatureFrom(authority))
		require.Equal(t, []string{"landwaiter.landwaiter-system.svc", "landwaiter.landwaiter-system.svc.cluster.local", "localhost", "landwaiter"}, served.DNSNames)
		require.Equal(t, "127.0.0.1", served.IPAddresses[0].String())
		require.Len(t, served.IPAddresses, 1)
		require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, served.ExtKeyUsage)
		require.False(t, served.IsCA)
		for _, certificate := range []*x509.Certificate{authority, served} {
			key, ok := certificate.PublicKey.(*ecdsa.PublicKey)
			require.True(t, ok)
			require.Equal(t, elliptic.P256(), key.Curve)
		}
		require.Equal(t, []*x509.Certificate{authority}, k.bundle(t, "verify"))
		require.Empty(t, k.bundle(t, "of somebody else"))
		require.Equal(t, began, time.Now(), "nothing waited for a timer")

		verify, mutate := k.provider(t, "verify"), k.provider(t, "mutate")
		require.Equal(t, []any{"https://landwaiter/v1/verify", int64(3)}, []any{verify["url"], verify["timeout"]})
		require.Equal(t, []any{"https://landwaiter/v1/mutate", int64(1), verify["caBundle"]}, []any{mutate["url"], mutate["timeout"], mutate["caBundle"]})
	})
}

func TestAProviderThatSomebodyChangesIsSetAgainAtOnce(t *testing.T) {
	for name, change := range map[string]string{
		"its CA": `{"spec":{"caBundle":"cGxhY2Vob2xkZXI="}}`, "its url": `{"spec":{"url":"https://else"}}`,
		"its timeout": `{"spec":{"timeout":1}}`, "its owner": `{"metadata":{"ownerReferences":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *kube) {
				began := time.Now()
				lead(t, newRotation(t, k))
				providers := k.providers.Resource(providerResource())
				before, err := providers.Get(t.Context(), "mutate", metav1.GetOptions{})
				require.NoError(t, err)
				_, err = providers.Patch(t.Context(), "mutate", types.MergePatchType, []byte(change), metav1.PatchOptions{})
				require.NoError(t, err)
				synctest.Wait()
				after, err := providers.Get(t.Context(), "mutate", metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, before.Object, after.Object)
				require.Equal(t, began, time.Now(), "nothing waited for a timer")
			})
		})
	}
}

func TestAProviderThatIsDeletedIsMadeAgainAtOnceUnlessItsRoleHasGone(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		lead(t, newRotation(t, k))
		providers := k.providers.Resource(providerResource())
		before := k.provider(t, "mutate")
		require.NoError(t, providers.Delete(t.Context(), "mutate", metav1.DeleteOptions{}))
		synctest.Wait()
		require.Equal(t, before, k.provider(t, "mutate"))

		require.NoError(t, k.RbacV1().ClusterRoles().Delete(t.Context(), "mutate-provider", metav1.DeleteOptions{}))
		require.NoError(t, providers.Delete(t.Context(), "mutate", metav1.DeleteOptions{}))
		time.Sleep(time.Hour)
		_, err := providers.Get(t.Context(), "mutate", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.NotEmpty(t, k.provider(t, "verify"))
	})
}

// As in a roll-out that adds a Provider: replicas of both versions lead in turns.
func TestAReplicaThatDoesNotListAProviderLeavesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		stop := lead(t, newRotation(t, k))
		before := k.provider(t, "mutate")
		stop()
		older := newRotation(t, k)
		older.options.Providers = older.options.Providers[:1]
		lead(t, older)
		require.Equal(t, before, k.provider(t, "mutate"))
	})
}

func TestNothingHappensWhileNothingChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		lead(t, newRotation(t, k))
		written, applied, calls := k.written.Load(), k.applied.Load(), len(k.Actions())
		time.Sleep(200 * 24 * time.Hour)
		require.Equal(t, written, k.written.Load())
		require.Equal(t, applied, k.applied.Load())
		require.Len(t, k.Actions(), calls)
	})
}

func TestADeletedSecretIsMadeAgainAtOnceUnderAnotherAuthority(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		lead(t, newRotation(t, k))
		old := certificateOf(t, k.secret(t).Data["ca.crt"])
		began := time.Now()
		k.remove(t, tlsSecret())
		synctest.Wait()
		next := certificateOf(t, k.secret(t).Data["ca.crt"])
		require.NotEqual(t, old, next)
		require.Equal(t, []*x509.Certificate{next, old}, k.bundle(t, "verify"), "both, as long as some replica serves the old certificate")
		require.Equal(t, began, time.Now(), "nothing waited for a timer")

		time.Sleep(authorityOverlap - time.Second)
		require.Len(t, k.bundle(t, "verify"), 2)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []*x509.Certificate{next}, k.bundle(t, "verify"))
	})
}

func TestACertificateThatIsRemovedIsMadeByTheSameAuthority(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		lead(t, newRotation(t, k))
		data := k.secret(t).Data
		delete(data, "tls.crt")
		k.put(t, tlsSecret(), data)
		synctest.Wait()
		after := k.secret(t).Data
		require.Equal(t, data["ca.crt"], after["ca.crt"])
		require.NoError(t, certificateOf(t, after["tls.crt"]).CheckSignatureFrom(certificateOf(t, data["ca.crt"])))
	})
}

func TestTheCertificateIsRenewedLongBeforeItExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		lead(t, newRotation(t, k))
		before := k.secret(t).Data
		expiry := certificateOf(t, before["tls.crt"]).NotAfter
		time.Sleep(time.Until(expiry.Add(-renewBefore)) - time.Second)
		require.Equal(t, before, k.secret(t).Data)
		time.Sleep(time.Second)
		synctest.Wait()
		after := k.secret(t).Data
		require.Equal(t, before["ca.crt"], after["ca.crt"])
		require.True(t, certificateOf(t, after["tls.crt"]).NotAfter.After(expiry))
	})
}

func TestTheAuthorityIsReplacedLongBeforeItExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		r := newRotation(t, k)
		stop := lead(t, r)
		old := certificateOf(t, k.secret(t).Data["ca.crt"])
		stop()
		time.Sleep(time.Until(old.NotAfter.Add(-renewBefore)))
		lead(t, newRotation(t, k)) // another replica, which has not seen the old CA in use
		next := certificateOf(t, k.secret(t).Data["ca.crt"])
		require.True(t, next.NotAfter.After(old.NotAfter))
		require.Equal(t, []*x509.Certificate{next, old}, k.bundle(t, "verify"))
	})
}

func TestTheOverlapOutlivesALostLease(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		r := newRotation(t, k)
		end := background(t, r.Run)
		resign := background(t, r.Lead)
		old := certificateOf(t, k.secret(t).Data["ca.crt"])
		k.remove(t, tlsSecret())
		synctest.Wait()
		require.Len(t, k.bundle(t, "verify"), 2)
		resign()
		resign = background(t, r.Lead)
		require.Contains(t, k.bundle(t, "verify"), old)
		resign()
		data := k.secret(t).Data
		delete(data, "tls.crt")
		k.put(t, tlsSecret(), data)
		synctest.Wait()
		require.NotContains(t, k.secret(t).Data, "tls.crt", "a replica that does not lead replaces nothing")
		end()
	})
}

// Replicas serve the certificate of the previous authority for some time, whoever leads.
func TestANewLeaderKnowsThePreviousAuthority(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, k *kube, stop func()){
		"replaced by the leader before": func(t *testing.T, k *kube, stop func()) {
			k.remove(t, tlsSecret())
			synctest.Wait()
			stop()
		},
		"replaced by somebody else": func(t *testing.T, k *kube, stop func()) {
			other := newKube()
			end := lead(t, newRotation(t, other))
			data := other.secret(t).Data
			end()
			k.put(t, tlsSecret(), data)
			synctest.Wait()
			stop()
		},
		"replaced while nobody led": func(t *testing.T, k *kube, stop func()) {
			other := newKube()
			end := lead(t, newRotation(t, other))
			data := other.secret(t).Data
			end()
			stop()
			k.put(t, tlsSecret(), data)
		},
		"deleted while nobody led": func(t *testing.T, k *kube, stop func()) {
			stop()
			k.remove(t, tlsSecret())
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *kube) {
				stop := lead(t, newRotation(t, k))
				old := certificateOf(t, k.secret(t).Data["ca.crt"])
				change(t, k, stop)
				stop = lead(t, newRotation(t, k))
				next := certificateOf(t, k.secret(t).Data["ca.crt"])
				require.NotEqual(t, old, next)
				require.Equal(t, []*x509.Certificate{next, old}, k.bundle(t, "verify"))
				time.Sleep(authorityOverlap - time.Second)
				require.Equal(t, []*x509.Certificate{next, old}, k.bundle(t, "verify"))
				time.Sleep(time.Second)
				synctest.Wait()
				require.Equal(t, []*x509.Certificate{next}, k.bundle(t, "verify"), "and not for ever")
				stop()
				lead(t, newRotation(t, k))
				require.Equal(t, []*x509.Certificate{next}, k.bundle(t, "verify"))
			})
		})
	}
}

// In a roll-out to another certificate the leader may be a replica of the version before, which serves its own.
func TestAReplicaWithAnotherCertificateThanTheLeadersIsTrustedBeforeItIsReady(t *testing.T) {
	theirs := newAuthorityOf(t, "theirs")
	file := filepath.Join(t.TempDir(), "ca.crt")
	replace(t, file, theirs.CertificatePEM)
	given := func(t *testing.T, k *kube) *Rotation {
		r := newRotation(t, k)
		r.options.AuthorityFile, r.readCA = file, readFiles(defaultFileInterval, file)
		return r
	}
	for name, c := range map[string]struct {
		before, after func(t *testing.T, k *kube) *Rotation
	}{
		"issued, then given": {newRotation, given},
		"given, then issued": {given, newRotation},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *kube) {
				old := c.before(t, k)
				end := background(t, old.Run)
				resign := background(t, old.Lead)
				require.NoError(t, old.Ready())
				before := k.bundle(t, "verify")
				require.Len(t, before, 1)

				next := c.after(t, k)
				background(t, next.Run)
				require.Error(t, next.Ready(), "Gatekeeper has to learn of it")
				require.Len(t, k.bundle(t, "verify"), 2)
				require.Contains(t, k.bundle(t, "verify"), before[0])
				time.Sleep(authoritySettle)
				synctest.Wait()
				require.NoError(t, next.Ready())

				resign()
				background(t, next.Lead)
				require.Len(t, k.bundle(t, "verify"), 2)
				end()
				time.Sleep(authorityOverlap)
				synctest.Wait()
				require.Len(t, k.bundle(t, "verify"), 1)
				require.NotContains(t, k.bundle(t, "verify"), before[0])
				require.Equal(t, k.bundle(t, "verify"), k.bundle(t, "mutate"))
			})
		})
	}
}

func TestNamesThatNoCertificateCanHaveAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "::1": "::1", "0:0:0:0:0:0:0:1": "::1", "::ffff:10.0.0.1": "10.0.0.1", "FD00::A": "fd00::a",
		"Landwaiter.Example.COM.": "landwaiter.example.com", "*.example.com": "*.example.com", "1password.example": "1password.example",
		"fe80::1%eth0": "", "[::1]": "", "https://x": "", "a b": "", "": "", "x_y": "", "*": "", "a.*.b": "", "10.0.0.0/8": "", "10.0.0.256": "", "1.2.3": "",
		"host:8443": "", "-a": "", "bücher.example": "",
	} {
		names, err := certificateNames([]string{name, name})
		if want == "" {
			require.ErrorContains(t, err, "is neither a DNS name nor an IP address", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, []string{want}, names)
		newAuthority, newCertificate := renewedAt(t, nil, time.Now(), names...)
		require.True(t, newAuthority && newCertificate)
	}
	var many []string
	for i := range maxNames + 1 {
		many = append(many, fmt.Sprintf("a%d.example", i))
	}
	_, err := certificateNames(many)
	require.ErrorContains(t, err, "the limit is")
}

// As cert-manager does if a Certificate names the same Secret.
func TestSomebodyWhoWritesTheSameSecretMeetsAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		theirs := newAuthorityOf(t, "theirs")
		data := issuedBy(t, theirs)
		k.stranger.Store(&data)
		lead(t, newRotation(t, k))
		k.put(t, tlsSecret(), data)
		time.Sleep(maxPacing)
		require.Less(t, k.written.Load(), int64(20), "both together")
		object, err := k.providers.Resource(providerResource()).Get(t.Context(), "verify", metav1.GetOptions{})
		require.NoError(t, err)
		require.Contains(t, object.GetAnnotations()[v1beta1.AnnotationCertificateProblem], `"cert-manager" changes it again and again`)
		require.Contains(t, k.bundle(t, "verify"), certificateOf(t, theirs.CertificatePEM), "what is served is trusted meanwhile")

		k.stranger.Store(nil)
		time.Sleep(maxPacing)
		synctest.Wait()
		object, err = k.providers.Resource(providerResource()).Get(t.Context(), "verify", metav1.GetOptions{})
		require.NoError(t, err)
		require.Empty(t, object.GetAnnotations()[v1beta1.AnnotationCertificateProblem])
		written := k.written.Load()
		time.Sleep(paceMemory)
		require.Equal(t, written, k.written.Load())
	})
}

func TestASecretThatCannotBeReadIsNotReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		down := errors.New("the API server is down")
		k.down.Store(&down)
		lead(t, newRotation(t, k))
		time.Sleep(time.Hour)
		require.Zero(t, k.written.Load())
		require.Zero(t, k.applied.Load())
		k.down.Store(nil)
		time.Sleep(time.Minute)
		require.Equal(t, int64(1), k.written.Load())
		require.Len(t, k.bundle(t, "verify"), 1)
	})
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		failures := 5
		k.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, errors.New("the quota is used up")
		})
		lead(t, newRotation(t, k))
		require.Zero(t, k.written.Load())
		time.Sleep(5 * maxRetry)
		require.Equal(t, int64(1), k.written.Load())
		require.Equal(t, -1, failures)
	})
}

// renewedAt says what happens to the data of a Secret.
func renewedAt(t *testing.T, data map[string][]byte, now time.Time, names ...string) (newAuthority, newCertificate bool) {
	t.Helper()
	next, changed, _, err := renewed(data, names, now)
	require.NoError(t, err)
	newAuthority = string(next["ca.crt"]) != string(data["ca.crt"])
	newCertificate = string(next["tls.crt"]) != string(data["tls.crt"])
	require.Equal(t, newAuthority || newCertificate, changed)
	if _, again, _, err := renewed(next, names, now); err != nil || again {
		t.Fatalf("what was made is not accepted: %v", err)
	}
	return newAuthority, newCertificate
}

func TestWhatIsReplacedAndWhatStays(t *testing.T) {
	now := time.Now()
	good, _, _, err := renewed(nil, []string{"a", "b"}, now)
	require.NoError(t, err)
	other, _, _, err := renewed(nil, []string{"a", "b"}, now)
	require.NoError(t, err)
	with := func(from map[string][]byte, keys ...string) map[string][]byte {
		changed := map[string][]byte{"extra": []byte("kept")}
		for _, key := range []string{"ca.crt", "ca.key", "tls.crt", "tls.key"} {
			changed[key] = good[key]
		}
		for _, key := range keys {
			changed[key] = from[key]
		}
		return changed
	}
	for name, c := range map[string]struct {
		data                   map[string][]byte
		after                  time.Duration
		names                  []string
		authority, certificate bool
	}{
		"nothing there":              {nil, 0, nil, true, true},
		"as it should be":            {with(nil), 0, nil, false, false},
		"fewer names wanted":         {with(nil), 0, []string{"b"}, false, false},
		"another name wanted":        {with(nil), 0, []string{"a", "c"}, false, true},
		"no certificate":             {with(nil, "tls.crt"), 0, nil, false, true},
		"no key":                     {with(nil, "tls.key"), 0, nil, false, true},
		"key of another certificate": {with(other, "tls.key"), 0, nil, false, true},
		"another's certificate":      {with(other, "tls.key", "tls.crt"), 0, nil, false, true},
		"no CA":                      {with(nil, "ca.crt"), 0, nil, true, true},
		"no key of the CA":           {with(nil, "ca.key"), 0, nil, true, true},
		"another's CA key":           {with(other, "ca.key"), 0, nil, true, true},
		"another CA":                 {with(other, "ca.crt", "ca.key"), 0, nil, false, true},
		"a leaf as CA":               {map[string][]byte{"ca.crt": good["tls.crt"], "ca.key": good["tls.key"]}, 0, nil, true, true},
		"garbage":                    {map[string][]byte{"ca.crt": []byte("x"), "ca.key": []byte("x")}, 0, nil, true, true},
		"certificate due":            {with(nil), certificateLife - renewBefore, nil, false, true},
		"certificate not due":        {with(nil), certificateLife - renewBefore - time.Second, nil, false, false},
		"CA due":                     {with(nil), authorityLife - renewBefore, nil, true, true},
		"a clock that is far behind": {with(nil), -2 * backdate, nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			names := c.names
			if names == nil {
				names = []string{"a", "b"}
			}
			authority, certificate := renewedAt(t, c.data, now.Add(c.after), names...)
			require.Equal(t, c.authority, authority, "authority")
			require.Equal(t, c.certificate, certificate, "certificate")
		})
	}
	next, _, _, err := renewed(with(nil, "tls.crt"), []string{"a"}, now)
	require.NoError(t, err)
	require.Equal(t, "kept", string(next["extra"]))
}

func TestACertificateNeverOutlivesItsAuthority(t *testing.T) {
	now := time.Now()
	data, _, _, err := renewed(nil, []string{"a"}, now)
	require.NoError(t, err)
	delete(data, "tls.crt")
	data, _, _, err = renewed(data, []string{"a"}, now.Add(authorityLife-renewBefore-time.Hour))
	require.NoError(t, err)
	require.Equal(t, certificateOf(t, data["ca.crt"]).NotAfter, certificateOf(t, data["tls.crt"]).NotAfter)
}

// OPA's cert-controller makes RSA keys in PKCS #1.
func TestAnAuthorityOfTheCertControllerStays(t *testing.T) {
	now := time.Now()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(0), Subject: pkix.Name{CommonName: authorityName}, DNSNames: []string{authorityName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(authorityLife), BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	authority, certificate := renewedAt(t, map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"ca.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}, now, "a")
	require.False(t, authority)
	require.True(t, certificate)
}
