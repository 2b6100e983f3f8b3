package serving

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// newGiven is a Rotation for a certificate that somebody else issues under the CAs.
func newGiven(t *testing.T, k *kube, file string, served *fixture.Certificate, authorities ...*fixture.Authority) *Rotation {
	t.Helper()
	var text []byte
	for _, a := range authorities {
		text = append(text, a.CertificatePEM...)
	}
	replace(t, file, text)
	r := newRotation(t, k)
	r.options.AuthorityFile, r.readCA = file, readFiles(defaultFileInterval, file)
	if served != nil {
		r.options.Served = func() (*tls.Certificate, error) {
			pair, err := tls.X509KeyPair(served.CertificatePEM, served.KeyPEM)
			return &pair, err
		}
	}
	return r
}

func TestAReplicaWhoseCertificateGatekeeperCannotTrustIsNotReadyAndSaysWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	for name, c := range map[string]struct {
		other bool // CA
		host  string
		want  string
	}{
		"as it should be":  {false, "landwaiter", ""},
		"of another CA":    {true, "landwaiter", "certificate signed by unknown authority"},
		"for another host": {false, "elsewhere", "certificate is valid for elsewhere, not landwaiter"},
		"for an address":   {false, "127.0.0.1", "x509"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *kube) {
				right, by := newAuthorityOf(t, "right"), newAuthorityOf(t, "other")
				if !c.other {
					by = right
				}
				served, err := by.IssueServer(c.host)
				require.NoError(t, err)
				r := newGiven(t, k, file, served, right)
				background(t, r.Run)
				time.Sleep(time.Minute)
				if c.want == "" {
					require.NoError(t, r.Ready())
					return
				}
				require.ErrorContains(t, r.Ready(), c.want)
			})
		})
	}
}

func TestACertificateThatComesLaterIsExaminedToo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	inBubble(t, func(t *testing.T, k *kube) {
		right, wrong := newAuthorityOf(t, "right"), newAuthorityOf(t, "wrong")
		served, err := wrong.IssueServer("landwaiter")
		require.NoError(t, err)
		r := newGiven(t, k, file, served, right)
		there, later := r.options.Served, time.Now().Add(time.Minute)
		r.options.Served = func() (*tls.Certificate, error) {
			if time.Now().Before(later) {
				return nil, errors.New("not there yet")
			}
			return there()
		}
		background(t, r.Run)
		time.Sleep(30 * time.Second)
		require.Error(t, r.Ready())
		time.Sleep(time.Hour)
		require.ErrorContains(t, r.Ready(), "certificate signed by unknown authority")
	})
}

// As after a change from a given certificate whose Secret has the name of ours, while a replica of before leads.
func TestAGivenCertificateThatGatekeeperTrustsIsServedUntilAReplicaLeads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	inBubble(t, func(t *testing.T, k *kube) {
		theirs := newAuthorityOf(t, "theirs")
		served, err := theirs.IssueServer("landwaiter")
		require.NoError(t, err)
		before := newGiven(t, k, file, served, theirs)
		background(t, before.Run)
		resign := background(t, before.Lead)
		k.put(t, tlsSecret(), map[string][]byte{"tls.crt": served.CertificatePEM, "tls.key": served.KeyPEM})
		r := newRotation(t, k)
		r.options.Served = before.options.Served
		background(t, r.Run)
		time.Sleep(authoritySettle)
		require.NoError(t, r.Ready())
		require.Empty(t, k.secret(t).Data["ca.crt"])
		resign()
		background(t, r.Lead)
		require.NotEmpty(t, k.secret(t).Data["ca.crt"])
		require.Contains(t, k.bundle(t, "verify"), certificateOf(t, theirs.CertificatePEM))
	})
}

// Two sources of certificates may exist for long: a roll-out that does not go on, a canary.
func TestReplicasOfTwoSourcesDoNotUndoEachOther(t *testing.T) {
	var many []*fixture.Authority
	for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		many = append(many, newAuthorityOf(t, name))
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	inBubble(t, func(t *testing.T, k *kube) {
		leader := newRotation(t, k)
		background(t, leader.Run)
		background(t, leader.Lead)
		follower := newGiven(t, k, file, nil, many...)
		background(t, follower.Run)
		time.Sleep(authoritySettle)
		synctest.Wait()
		require.NoError(t, follower.Ready())
		require.Len(t, k.bundle(t, "verify"), len(many)+1)
		written := k.applied.Load()
		for range 10 {
			time.Sleep(authorityOverlap)
		}
		require.Less(t, k.applied.Load()-written, int64(300), "in a hundred minutes")
	})
}

func TestWhoeverTakesTheAuthorityOutOfTheSecretIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, k *kube) {
		data := issuedBy(t, newAuthorityOf(t, "theirs"))
		delete(data, "ca.crt")
		k.stranger.Store(&data)
		r := newRotation(t, k)
		background(t, r.Run)
		background(t, r.Lead)
		k.put(t, tlsSecret(), data)
		time.Sleep(maxPacing)
		object, err := k.providers.Resource(providerResource()).Get(t.Context(), "verify", metav1.GetOptions{})
		require.NoError(t, err)
		require.Contains(t, object.GetAnnotations()[v1beta1.AnnotationCertificateProblem], `"cert-manager" changes it again and again`)

		k.stranger.Store(nil)
		time.Sleep(maxPacing)
		synctest.Wait()
		object, err = k.providers.Resource(providerResource()).Get(t.Context(), "verify", metav1.GetOptions{})
		require.NoError(t, err)
		require.Empty(t, object.GetAnnotations()[v1beta1.AnnotationCertificateProblem])
	})
}

func TestACertificateOfAnotherAuthorityIsServedOnceGatekeeperTrustsIt(t *testing.T) {
	s := &settlingPair{settle: authoritySettle}
	trusted := errors.New("not yet")
	s.trusts = func(*tls.Certificate) bool { return trusted == nil }
	now := time.Now()
	first, next := secretOf(t, "a"), secretOf(t, "b")
	served, _ := s.settled(first, now)
	require.Equal(t, first, served)
	served, _ = s.settled(next, now)
	require.Equal(t, first, served)
	served, again := s.settled(next, now.Add(time.Hour))
	require.Equal(t, first, served)
	require.Equal(t, now.Add(time.Hour+authoritySettle), again)
	trusted = nil
	served, _ = s.settled(next, now.Add(time.Hour))
	require.Equal(t, next, served)

	trusted = errors.New("never")
	served, _ = s.settled(first, now.Add(time.Hour))
	require.Equal(t, next, served)
	bare := secretOf(t, "c")
	delete(bare.Data, "ca.crt")
	without := &settlingPair{settle: authoritySettle, trusts: s.trusts}
	renewed := bare.DeepCopy()
	renewed.Data = issuedBy(t, newAuthorityOf(t, "d"))
	delete(renewed.Data, "ca.crt")
	served, _ = without.settled(bare, now)
	require.Equal(t, bare, served)
	served, _ = without.settled(renewed, now.Add(time.Hour))
	require.Equal(t, bare, served, "a Secret may not say its CA")

	end := certificateOf(t, next.Data["tls.crt"]).NotAfter
	served, _ = s.settled(first, end.Add(time.Second))
	require.Equal(t, first, served, "the one in force is of no use any more")
}

func secretOf(t *testing.T, authority string) *corev1.Secret {
	t.Helper()
	return &corev1.Secret{Data: issuedBy(t, newAuthorityOf(t, authority))}
}
