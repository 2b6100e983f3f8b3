package external

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

func TestTenantsSourcesDoNotUseTheProxy(t *testing.T) {
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	environment, err := egress.ParseEnvironment(func(name string) string { return map[string]string{"HTTPS_PROXY": proxy.URL}[name] })
	require.NoError(t, err)
	fetchers := network{proxy: environment}.fetchers()
	as, err := Given(map[string]string{"token": "hvs.x"})
	require.NoError(t, err)
	for owner, through := range map[verify.Namespace]bool{verify.Cluster: true, "team-a": false} {
		before := asked.Load()
		_, err := fetchers[VaultKeys](context.Background(),
			Source{Owner: owner, Kind: VaultKeys, Address: "https://vault.invalid", Path: "transit/keys/release", As: as})
		require.Error(t, err)
		require.Equal(t, through, strings.Contains(err.Error(), "does not let this host through"), "%q: %v", owner, err)
		require.Equal(t, through, asked.Load() > before, "%q", owner)
	}
}
