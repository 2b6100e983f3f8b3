package live

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/service"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func TestATokenArrivesAtAnotherVaultOnlyIfTheChangeIsTrusted(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		var seen atomic.Int32
		vault := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Vault-Token") != "" {
				seen.Add(1)
			}
			w.WriteHeader(http.StatusNotFound)
		}))
		t.Cleanup(vault.Close)
		store := vaulted(vault.URL)
		store.Spec.Source.Vault.CABundle = &v1alpha1.ClusterCABundle{Inline: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: vault.Certificate().Raw}))}
		login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "login"}, Data: map[string][]byte{"token": []byte("t")}}
		change := Change{SendSecrets: trusted}
		require.NoError(t, change.Objects.Add(store))
		before, after, err := reader(t, login).Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{team}}, change)
		require.NoError(t, err)
		s, _, err := service.Open(t.Context(), before.Objects, service.Options{})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		_, problems := s.Rehearse(t.Context(), after.Objects)
		require.Equal(t, trusted, seen.Load() > 0, "%v", problems)
	}
}
