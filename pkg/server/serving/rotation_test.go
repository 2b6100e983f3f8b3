package serving

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

func newRotation(t *testing.T, k *kube) *Rotation {
	t.Helper()
	r, err := NewRotation(k, k.providers, quiet(), RotationOptions{Secret: tlsSecret(), Service: "landwaiter",
		DNSNames: []string{"localhost"}, Providers: []Provider{
			{Name: "verify", URL: "https://landwaiter/v1/verify", TimeoutSeconds: 3},
			{Name: "mutate", URL: "https://landwaiter/v1/mutate", TimeoutSeconds: 1, Role: "mutate-provider"}}})
	require.NoError(t, err)
	return r
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
		background(t, newRotation(t, k).Run)

		data := k.secret(t).Data
		authority, served := certificateOf(t, data["ca.crt"]), certificateOf(t, data["tls.crt"])
		require.NoError(t, served.CheckSignatureFrom(authority))
		require.Equal(t, []string{"landwaiter.landwaiter-system.svc", "landwaiter.landwaiter-system.svc.cluster.local", "localhost"}, served.DNSNames)
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
				background(t, newRotation(t, k).Run)
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
		background(t, newRotation(t, k).Run)
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
		stop := background(t, newRotation(t, k).Run)
		before := k.provider(t, "mutate")
		stop()
		older := newRotation(t, k)
		older.options.Providers = older.options.Providers[:1]
		background(t, older.Run)
		require.Equal(t, before, k.provider(t, "mutate"))
	})
}

func TestNothingHappensWhileNothingChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		background(t, newRotation(t, k).Run)
		written, applied, calls := k.written.Load(), k.applied.Load(), len(k.Actions())
		time.Sleep(200 * 24 * time.Hour)
		require.Equal(t, written, k.written.Load())
		require.Equal(t, applied, k.applied.Load())
		require.Len(t, k.Actions(), calls)
	})
}

func TestADeletedSecretIsMadeAgainAtOnceUnderAnotherAuthority(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		background(t, newRotation(t, k).Run)
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
		background(t, newRotation(t, k).Run)
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
		background(t, newRotation(t, k).Run)
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
		stop := background(t, r.Run)
		old := certificateOf(t, k.secret(t).Data["ca.crt"])
		stop()
		time.Sleep(time.Until(old.NotAfter.Add(-renewBefore)))
		background(t, newRotation(t, k).Run) // another replica, which has not seen the old CA in use
		next := certificateOf(t, k.secret(t).Data["ca.crt"])
		require.True(t, next.NotAfter.After(old.NotAfter))
		require.Equal(t, []*x509.Certificate{next, old}, k.bundle(t, "verify"))
	})
}

func TestTheOverlapOutlivesALostLease(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		r := newRotation(t, k)
		stop := background(t, r.Run)
		k.remove(t, tlsSecret())
		synctest.Wait()
		require.Len(t, k.bundle(t, "verify"), 2)
		stop()
		stop = background(t, r.Run)
		require.Len(t, k.bundle(t, "verify"), 2)
		stop()
		k.remove(t, tlsSecret())
		synctest.Wait()
		_, err := k.CoreV1().Secrets(own).Get(t.Context(), "landwaiter-tls", metav1.GetOptions{})
		require.Error(t, err, "a server that does not lead writes nothing")
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
			end := background(t, newRotation(t, other).Run)
			data := other.secret(t).Data
			end()
			k.put(t, tlsSecret(), data)
			synctest.Wait()
			stop()
		},
		"replaced while nobody led": func(t *testing.T, k *kube, stop func()) {
			other := newKube()
			end := background(t, newRotation(t, other).Run)
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
				stop := background(t, newRotation(t, k).Run)
				old := certificateOf(t, k.secret(t).Data["ca.crt"])
				change(t, k, stop)
				stop = background(t, newRotation(t, k).Run)
				next := certificateOf(t, k.secret(t).Data["ca.crt"])
				require.NotEqual(t, old, next)
				require.Equal(t, []*x509.Certificate{next, old}, k.bundle(t, "verify"))
				stop()
				time.Sleep(authorityOverlap - time.Second)
				stop = background(t, newRotation(t, k).Run)
				require.Equal(t, []*x509.Certificate{next, old}, k.bundle(t, "verify"))
				time.Sleep(time.Second)
				synctest.Wait()
				require.Equal(t, []*x509.Certificate{next}, k.bundle(t, "verify"), "and not for ever")
				stop()
				background(t, newRotation(t, k).Run)
				require.Equal(t, []*x509.Certificate{next}, k.bundle(t, "verify"))
			})
		})
	}
}

// Somebody may keep the Secret as it was, and clocks may differ.
func TestThePreviousAuthorityCannotKeepTheLeaderBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		background(t, newRotation(t, k).Run)
		old := certificateOf(t, k.secret(t).Data["ca.crt"])
		k.remove(t, tlsSecret())
		synctest.Wait()
		next := certificateOf(t, k.secret(t).Data["ca.crt"])
		data := k.secret(t).Data
		delete(data, previousKey)
		delete(data, previousUntilKey)
		written := k.written.Load()
		for range 5 {
			k.put(t, tlsSecret(), maps.Clone(data))
			synctest.Wait()
		}
		require.LessOrEqual(t, k.written.Load(), written+5+1, "it is written once more at most")
		require.Contains(t, k.bundle(t, "verify"), next)

		data[previousKey], data[previousUntilKey] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: old.Raw}), []byte(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		bundle, end := withPrevious(data, time.Now())
		require.Equal(t, 2, bytes.Count(bundle, []byte("BEGIN CERTIFICATE")))
		require.Equal(t, time.Now().Add(authorityOverlap), end, "no longer than an overlap, whatever the clock of who wrote it")
	})
}

func TestASecretThatCannotBeReadIsNotReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		down := errors.New("the API server is down")
		k.down.Store(&down)
		background(t, newRotation(t, k).Run)
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
		background(t, newRotation(t, k).Run)
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
