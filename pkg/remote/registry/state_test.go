package registry

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestWhatAnAnswerTeachesIsKeptForItsAccountAndRepository(t *testing.T) {
	client := NewClient(Options{})
	t.Cleanup(client.Close)
	ref := image.Reference{Host: "registry.example.com", Repository: "app"}
	other := image.Reference{Host: "registry.example.com", Repository: "other"}
	key := func(namespace verify.Namespace, account verify.Account, hosts map[string]HostRule, ref image.Reference) apiKey {
		return (&location{session: &session{client: client, access: Access{Namespace: namespace, Account: account, Hosts: hosts}}, at: ref}).apiKey()
	}
	own := key("team-a", "", nil, ref)
	require.NotEqual(t, own, key("team-b", "", nil, ref), "another account")
	require.NotEqual(t, own, key("team-a", "", nil, other), "another repository")
	require.NotEqual(t, own, key("", "", nil, ref), "cluster resources")
	require.Equal(t, own, key("team-a", "", map[string]HostRule{"registry.example.com:5000": {}}, ref), "a cluster admin named another port only")
	require.Equal(t, key("dev", "tenant/x", nil, ref), key("prod", "tenant/x", nil, ref), "one account")
	named := map[string]HostRule{ref.Host: {}}
	require.Equal(t, key("team-a", "", named, ref), key("team-b", "", named, other), "a host that a cluster admin named")
	require.NotEqual(t, own, key("team-a", "", named, ref))
}

func TestADeletedNamespaceLeavesNothingBehind(t *testing.T) {
	client := NewClient(Options{})
	t.Cleanup(client.Close)
	for _, account := range []verify.Account{verify.Namespace("team-a").Account(), "tenant/x"} {
		client.apis.Set(apiKey{account: account, host: "registry.example.com", repository: "app"}, true)
		client.backOffs.Set(backOffKey{account: account, host: "registry.example.com"}, time.Now().Add(time.Minute))
	}
	client.Forget("team-a")
	for key := range client.apis.Keys() {
		require.Equal(t, verify.Account("tenant/x"), key.account)
	}
	for key := range client.backOffs.Keys() {
		require.Equal(t, verify.Account("tenant/x"), key.account)
	}
}

// The answer of a token server says nothing about the registry's API.
func TestOnlyAnAnswerAboutReferrersSaysThatTheAPIIsMissing(t *testing.T) {
	for at, want := range map[string]bool{
		"https://r.example.com/v2/app/referrers/sha256:0":          true,
		"https://r.example.com/token?scope=repository:app:pull":    false,
		"https://auth.example.com/v2token":                         false,
		"https://auth.example.com/service/token?service=r&scope=x": false,
	} {
		asked, err := url.Parse(at)
		require.NoError(t, err)
		for _, status := range []int{http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented} {
			require.Equal(t, want, unsupported(&errcode.ErrorResponse{Method: http.MethodGet, URL: asked, StatusCode: status}), "%s: %d", at, status)
		}
		require.False(t, unsupported(&errcode.ErrorResponse{Method: http.MethodGet, URL: asked, StatusCode: http.StatusForbidden}), at)
	}
	require.False(t, unsupported(errors.New("connection refused")))
}
