package serving

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// files writes a certificate of the CA, and the CA as that of clients.
func files(t *testing.T, a *fixture.Authority) Options {
	t.Helper()
	dir := t.TempDir()
	options := Options{CertificateFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
		ClientCAFiles: []string{filepath.Join(dir, "ca.crt")}}
	data := issuedBy(t, a)
	replace(t, options.CertificateFile, data["tls.crt"])
	replace(t, options.KeyFile, data["tls.key"])
	replace(t, options.ClientCAFiles[0], data["ca.crt"])
	return options
}

func poolOf(authorities ...*fixture.Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AddCert(a.Chain[0])
	}
	return pool
}

func requireTrusted(t *testing.T, i *Identity, authorities ...*fixture.Authority) {
	t.Helper()
	pool, err := i.ClientCAs()
	require.NoError(t, err)
	require.True(t, poolOf(authorities...).Equal(pool))
}

// requireServed checks that the certificate in force is the one of the data.
func requireServed(t *testing.T, i *Identity, data map[string][]byte, why ...any) {
	t.Helper()
	certificate, err := i.Certificate()
	require.NoError(t, err)
	require.Equal(t, certificateOf(t, data["tls.crt"]), certificate.Leaf, why...)
}

func TestOptionsThatCanOnlyBeMistakesAreRefused(t *testing.T) {
	k := newKube()
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no certificate file":      {func(o *Options) { o.CertificateFile = "/nowhere" }, "read certificate file"},
		"key as certificate":       {func(o *Options) { o.CertificateFile = o.KeyFile }, "load certificate"},
		"CA without certificate":   {func(o *Options) { o.ClientCAFiles = []string{o.KeyFile} }, "no certificate in it"},
		"no certificate":           {func(o *Options) { o.CertificateFile, o.KeyFile = "", "" }, "either two files or a Secret"},
		"no key":                   {func(o *Options) { o.KeyFile = "" }, "either two files or a Secret"},
		"two certificates":         {func(o *Options) { o.CertificateSecret = tlsSecret() }, "either two files or a Secret"},
		"a negative overlap":       {func(o *Options) { o.ClientCAOverlap = -1 }, "negative"},
		"a negative file interval": {func(o *Options) { o.FileInterval = -1 }, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			options := files(t, newAuthorityOf(t, "authority"))
			c.change(&options)
			_, err := New(k, quiet(), options)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := New(nil, quiet(), Options{CertificateSecret: tlsSecret()})
	require.ErrorContains(t, err, "no client for the Kubernetes API")
}

func TestWithoutClientAuthoritiesThereAreNone(t *testing.T) {
	options := files(t, newAuthorityOf(t, "authority"))
	options.ClientCAFiles = nil
	i, err := New(nil, quiet(), options)
	require.NoError(t, err)
	pool, err := i.ClientCAs()
	require.NoError(t, err)
	require.Nil(t, pool)
}

func TestBadNewFilesLeaveTheOldOnesInForce(t *testing.T) {
	options := files(t, newAuthorityOf(t, "authority"))
	options.Metrics = prometheus.NewRegistry()
	i, err := New(nil, quiet(), options)
	require.NoError(t, err)
	before := i.current.Load()
	i.refresh(time.Now())
	require.Same(t, before, i.current.Load(), "nothing has changed")
	for name, file := range map[string]string{"certificate": options.CertificateFile, "key": options.KeyFile, "CA": options.ClientCAFiles[0]} {
		for _, bad := range []string{"", "not PEM", strings.Repeat("x", maxFileBytes+1)} {
			good := contentOf(t, file)
			replace(t, file, []byte(bad))
			i.refresh(time.Now())
			require.Same(t, before, i.current.Load(), name)
			replace(t, file, good)
		}
	}
	i.refresh(time.Now())
	require.Same(t, before, i.current.Load())
	require.Equal(t, 6.0, testutil.ToFloat64(i.errors.WithLabelValues("certificate")))
	require.Equal(t, 3.0, testutil.ToFloat64(i.errors.WithLabelValues("client_ca")))
}

func TestNewCertificateIsTakenOverBesideABrokenCAFile(t *testing.T) {
	a := newAuthorityOf(t, "authority")
	options := files(t, a)
	i, err := New(nil, quiet(), options)
	require.NoError(t, err)
	before := i.current.Load()
	replace(t, options.ClientCAFiles[0], nil)
	data := issuedBy(t, a)
	replace(t, options.KeyFile, data["tls.key"])
	replace(t, options.CertificateFile, data["tls.crt"])
	i.refresh(time.Now())
	requireServed(t, i, data)
	require.Same(t, before.clientCAs, i.current.Load().clientCAs)
}

func TestFilesAreReadAgainAfterTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, next := newAuthorityOf(t, "authority"), newAuthorityOf(t, "next")
		options := files(t, a)
		i, err := New(nil, quiet(), options)
		require.NoError(t, err)
		background(t, i.Run)
		replace(t, options.ClientCAFiles[0], append(append([]byte{}, a.CertificatePEM...), next.CertificatePEM...))
		time.Sleep(defaultFileInterval)
		synctest.Wait()
		requireTrusted(t, i, a, next)
	})
}

func clientCA() types.NamespacedName {
	return types.NamespacedName{Namespace: "gatekeeper-system", Name: "cert"}
}

// fromSecrets runs an identity of Secrets alone.
func fromSecrets(t *testing.T, k *kube) *Identity {
	t.Helper()
	i, err := New(k, quiet(), Options{CertificateSecret: tlsSecret(), ClientCAOverlap: time.Minute,
		ClientCASecrets: []SecretKey{{clientCA().Namespace, clientCA().Name, "ca.crt"}}})
	require.NoError(t, err)
	background(t, i.Run)
	return i
}

// Secrets may come late, or by parts. Until there is something to serve with, the
// server is told that there is nothing.
func TestWaitsForItsSecretsAndHasNothingBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		i := fromSecrets(t, k)
		_, err := i.Certificate()
		require.ErrorContains(t, err, "has not been read yet")
		_, err = i.ClientCAs()
		require.ErrorContains(t, err, "has not been read yet")

		a := newAuthorityOf(t, "authority")
		data := issuedBy(t, a)
		k.put(t, tlsSecret(), map[string][]byte{"tls.crt": data["tls.crt"]})
		synctest.Wait()
		_, err = i.Certificate()
		require.Error(t, err, "the key is missing")
		k.put(t, tlsSecret(), data)
		synctest.Wait()
		requireServed(t, i, data, "at once")
		pool, err := i.ClientCAs()
		require.Error(t, err)
		require.Nil(t, pool)
		k.put(t, clientCA(), map[string][]byte{"another key": a.CertificatePEM})
		synctest.Wait()
		_, err = i.ClientCAs()
		require.Error(t, err)
		k.put(t, clientCA(), map[string][]byte{"ca.crt": a.CertificatePEM})
		synctest.Wait()
		requireTrusted(t, i, a)
	})
}

// reloadErrors returns what an identity exports, by part.
func reloadErrors(t *testing.T, metrics *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	counts := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	return counts
}

// The Secrets come in any order, and Gatekeeper's is empty at first; a start that only
// waits for them is healthy.
func TestAHealthyStartCountsNoReloadErrorInWhateverOrderSecretsCome(t *testing.T) {
	none := map[string]float64{"certificate": 0, "client_ca": 0}
	for name, before := range map[string]bool{"Secrets that are there": true, "Secrets that come late": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *kube) {
				a := newAuthorityOf(t, "authority")
				data := issuedBy(t, a)
				arrive := func() {
					k.put(t, clientCA(), map[string][]byte{"ca.crt": a.CertificatePEM})
					synctest.Wait()
					k.put(t, tlsSecret(), data)
				}
				if before {
					arrive()
				}
				metrics, lines := prometheus.NewRegistry(), &bytes.Buffer{}
				log := quiet()
				log.SetOutput(lines)
				i, err := New(k, log, Options{CertificateSecret: tlsSecret(), Metrics: metrics,
					ClientCASecrets: []SecretKey{{clientCA().Namespace, clientCA().Name, "ca.crt"}}})
				require.NoError(t, err)
				require.Equal(t, none, reloadErrors(t, metrics), "exported before anything happens")
				background(t, i.Run)
				if !before {
					k.put(t, clientCA(), nil)
					time.Sleep(time.Minute)
					arrive()
				}
				synctest.Wait()
				requireServed(t, i, data)
				requireTrusted(t, i, a)
				require.Equal(t, none, reloadErrors(t, metrics))
				require.NotContains(t, lines.String(), "level=error")

				k.remove(t, tlsSecret())
				synctest.Wait()
				require.Equal(t, map[string]float64{"certificate": 1, "client_ca": 0}, reloadErrors(t, metrics), "the old one stays in force")
				require.Contains(t, lines.String(), "level=error")
			})
		})
	}
}

func TestAUselessFirstCertificateIsAnErrorAndNotWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		k.put(t, tlsSecret(), map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("x")})
		metrics := prometheus.NewRegistry()
		i, err := New(k, quiet(), Options{CertificateSecret: tlsSecret(), Metrics: metrics})
		require.NoError(t, err)
		background(t, i.Run)
		require.Equal(t, map[string]float64{"certificate": 1, "client_ca": 0}, reloadErrors(t, metrics))
	})
}

func TestWhateverHappensToASecretItsLastUsableContentStays(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		a := newAuthorityOf(t, "authority")
		data := issuedBy(t, a)
		k.put(t, tlsSecret(), data)
		k.put(t, clientCA(), data)
		i := fromSecrets(t, k)
		for name, spoil := range map[string]func(){
			"empty": func() { k.put(t, tlsSecret(), nil); k.put(t, clientCA(), nil) },
			"garbage": func() {
				k.put(t, tlsSecret(), map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("x"), "ca.crt": a.CertificatePEM})
				k.put(t, clientCA(), map[string][]byte{"ca.crt": []byte("x")})
			},
			"gone": func() { k.remove(t, tlsSecret()); k.remove(t, clientCA()) },
		} {
			spoil()
			time.Sleep(time.Hour)
			requireServed(t, i, data, name)
			requireTrusted(t, i, a)
			k.put(t, tlsSecret(), data)
			k.put(t, clientCA(), data)
			synctest.Wait()
		}
	})
}

func TestASecretSaysWhyItCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		i, err := New(k, quiet(), Options{CertificateSecret: tlsSecret()})
		require.NoError(t, err)
		_, _, err = i.readPair(time.Now())
		require.ErrorContains(t, err, "has not answered")
		denied := error(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "landwaiter-tls", errors.New("no")))
		k.down.Store(&denied)
		background(t, i.Run)
		_, _, err = i.readPair(time.Now())
		require.ErrorContains(t, err, "forbidden")
		k.down.Store(nil)
		time.Sleep(time.Minute)
		_, _, err = i.readPair(time.Now())
		require.ErrorContains(t, err, "does not exist")
		k.put(t, tlsSecret(), map[string][]byte{"tls.crt": []byte("x")})
		synctest.Wait()
		_, _, err = i.readPair(time.Now())
		require.ErrorContains(t, err, "no key tls.key")
	})
}

func TestACertificateOfAnotherAuthorityIsServedAfterTheSettleTime(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		a, b := newAuthorityOf(t, "a"), newAuthorityOf(t, "b")
		first, second, third := issuedBy(t, a), issuedBy(t, a), issuedBy(t, b)
		k.put(t, tlsSecret(), first)
		i := fromSecrets(t, k)
		requireServed(t, i, first)
		k.put(t, tlsSecret(), second)
		synctest.Wait()
		requireServed(t, i, second, "of the same CA: at once")
		k.put(t, tlsSecret(), third)
		time.Sleep(authoritySettle - time.Millisecond)
		requireServed(t, i, second)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		requireServed(t, i, third)
	})
}

func TestAReplacedClientAuthorityStaysForTheOverlap(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		a, b := newAuthorityOf(t, "a"), newAuthorityOf(t, "b")
		k.put(t, clientCA(), map[string][]byte{"ca.crt": a.CertificatePEM})
		i := fromSecrets(t, k)
		requireTrusted(t, i, a)
		k.put(t, clientCA(), map[string][]byte{"ca.crt": b.CertificatePEM})
		synctest.Wait()
		requireTrusted(t, i, a, b)
		time.Sleep(time.Minute - time.Millisecond)
		requireTrusted(t, i, a, b)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		requireTrusted(t, i, b)
	})
}

func TestAReplicaServesWhatTheLeaderRotates(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		i := fromSecrets(t, k)
		background(t, newRotation(t, k).Run)
		first := k.secret(t).Data
		requireServed(t, i, first)
		k.remove(t, tlsSecret())
		synctest.Wait()
		requireServed(t, i, first)
		time.Sleep(authoritySettle)
		synctest.Wait()
		requireServed(t, i, k.secret(t).Data)
	})
}

func TestAReplacedValueStaysForTheOverlap(t *testing.T) {
	o := overlap{length: time.Minute}
	now := time.Now()
	join := func(value string, after time.Duration) string {
		joined, until := o.join([]byte(value), now.Add(after))
		require.Equal(t, len(joined) > len(value), !until.IsZero())
		return string(joined)
	}
	require.Equal(t, "old\n", join("old\n", 0))
	require.Equal(t, "new\nold\n", join("new\n", 0))
	require.Equal(t, "new\nold\n", join("new\n", 59*time.Second))
	require.Equal(t, "new\n", join("new\n", time.Minute))
}

// Gatekeeper's pods get a renewed Secret one after the other, so some may have the first of three CAs.
func TestEachReplacedValueStaysForAnOverlapOfItsOwn(t *testing.T) {
	o := overlap{length: time.Minute}
	now := time.Now()
	join := func(value string, after, again time.Duration) string {
		joined, until := o.join([]byte(value), now.Add(after))
		if again == 0 {
			require.Zero(t, until)
		} else {
			require.Equal(t, now.Add(again), until)
		}
		return strings.ReplaceAll(strings.TrimSpace(string(joined)), "\n", " ")
	}
	require.Equal(t, "a", join("a", 0, 0))
	require.Equal(t, "b a", join("b", 0, time.Minute))
	require.Equal(t, "c b a", join("c", 20*time.Second, time.Minute))
	require.Equal(t, "c b", join("c", time.Minute, 80*time.Second))
	require.Equal(t, "b c", join("b", 70*time.Second, 130*time.Second), "what is in force again is not there twice")
	require.Equal(t, "c b", join("c", 71*time.Second, 131*time.Second))
	require.Equal(t, "c", join("c", 131*time.Second, 0))
	for i := range 2 * maxReplaced {
		join(fmt.Sprint(i), 200*time.Second, 260*time.Second)
	}
	require.Len(t, strings.Fields(join("last", 200*time.Second, 260*time.Second)), 1+maxReplaced)
	require.Equal(t, "last", join("last", 260*time.Second, 0))
}

func TestACertificateOfAnotherAuthorityWaitsUntilTheAuthorityIsKnown(t *testing.T) {
	s := &settlingPair{settle: time.Minute}
	from := func(authority, certificate string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"ca.crt": []byte(authority), "tls.crt": []byte(certificate)}}
	}
	now := time.Now()
	served := func(secret *corev1.Secret, after time.Duration) string {
		inForce, until := s.settled(secret, now.Add(after))
		require.Equal(t, inForce != secret, until.After(now.Add(after)))
		return string(inForce.Data["tls.crt"])
	}
	require.Equal(t, "1", served(from("A", "1"), 0))
	require.Equal(t, "2", served(from("A", "2"), 0), "of the same CA: at once")
	require.Equal(t, "2", served(from("B", "3"), 0))
	require.Equal(t, "2", served(from("B", "4"), 59*time.Second))
	require.Equal(t, "4", served(from("B", "4"), time.Minute))
	require.Equal(t, "4", served(from("C", "5"), time.Hour))
	require.Equal(t, "4", served(from("D", "6"), time.Hour+59*time.Second), "yet another CA has its own time")
	require.Equal(t, "4", served(from("D", "6"), time.Hour+61*time.Second))
	require.Equal(t, "6", served(from("D", "6"), time.Hour+119*time.Second))
}
