//go:build !e2e && !nightly

package evidence

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/test/kit/edge"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// nameserver, if set, is asked instead of the machine's own.
var nameserver atomic.Pointer[string]

// The resolver is replaced before any test: work that goes on after its test reads it.
func TestMain(m *testing.M) {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if other := nameserver.Load(); other != nil {
			network, address = "udp", *other
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	os.Exit(m.Run())
}

// serve asks through an HTTPS server with a deadline, as Gatekeeper does.
func (e *environment) serve(t *testing.T, deadline time.Duration) func(keys ...string) externaldata.Response {
	t.Helper()
	server := edge.Start(t, e, provider.Options{VerifyTimeout: deadline})
	server.HTTP.Timeout = suite.Patience
	return func(keys ...string) externaldata.Response {
		response, err := server.Ask(t.Context(), gatekeeper.VerifyPath, keys...)
		require.NoError(t, err, "no answer in time")
		return response
	}
}

// onlyTheDeadlineEnds starts a service that waits for registries for as long as it may.
func (e *environment) onlyTheDeadlineEnds(t *testing.T) {
	t.Helper()
	e.start(t, service.Options{Engine: verify.Options{WorkTimeout: time.Hour}, Registry: registry.Options{RequestTimeout: time.Hour, DialTimeout: time.Hour}})
}

// late asks with a short deadline until an answer says that it was too short for the images: on a busy machine it may end
// before there is a turn for them. No answer has items.
func (e *environment) late(t *testing.T, says string, keys ...string) {
	t.Helper()
	ask := e.serve(t, 100*time.Millisecond)
	for end := time.Now().Add(suite.Patience); ; {
		answer := ask(keys...)
		require.Empty(t, answer.Items, "an item for one would be kept, and the other be asked for again in vain")
		require.NotEmpty(t, answer.SystemError)
		if strings.Contains(answer.SystemError, says) {
			return
		}
		require.True(t, time.Now().Before(end), answer.SystemError)
	}
}

func TestARegistryThatHangsIsAnsweredInTimeAndLateWorkIsKept(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	e.onlyTheDeadlineEnds(t)
	slow, quick := e.signed(t, "slow", "a"), e.signed(t, "quick", "a")
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a")))
	release := make(chan struct{})
	e.registry.SetIntercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if bytes.Contains([]byte(r.URL.Path), []byte("/slow/")) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return false
	})
	keys := []string{"[team-a]" + slow.Reference.String(), "[team-a]" + quick.Reference.String()}
	e.late(t, slow.Reference.String(), keys...)
	_, known := e.Recall("team-a", slow.Reference)
	require.False(t, known)

	close(release)
	// Nobody asks again: the work that was late goes on.
	for _, img := range []fixture.Image{slow, quick} {
		require.Eventually(t, func() bool { _, known := e.Recall("team-a", img.Reference); return known }, suite.Patience, time.Millisecond)
	}
	before := e.registry.Asked("/manifests/sha256:")
	answer := e.serve(t, 30*time.Second)(keys...)
	require.Len(t, answer.Items, 2)
	require.Equal(t, before, e.registry.Asked("/manifests/sha256:"), "the retry finds what was worked out")
}

func TestAPodOfManyTagsFitsIntoTheSmallestQuota(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	var keys []string
	for i := range verify.MinInFlight + 8 {
		keys = append(keys, "[team-a]"+e.signed(t, fmt.Sprintf("app-%d", i), "a").Reference.String())
	}
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), func(o *resource.Objects) {
		quota := &v1beta1.ClusterQuota{Spec: v1beta1.ClusterQuotaSpec{Namespaces: []string{"team-a"}, MaxInFlight: verify.MinInFlight}}
		quota.Name = "small"
		o.Resources = append(o.Resources, quota)
	}))
	e.registry.SetLatency(10 * time.Millisecond)
	answer := e.serve(t, 30*time.Second)(keys...)
	require.Empty(t, answer.SystemError)
	require.Len(t, answer.Items, len(keys))
}

func TestNamesThatAreNeverResolvedAreAnsweredInTime(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0") // a DNS server that says nothing
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	address := silent.LocalAddr().String()
	nameserver.Store(&address)
	t.Cleanup(func() { nameserver.Store(nil) })
	e := newEnvironment(t, fixture.RegistryOptions{})
	e.onlyTheDeadlineEnds(t)
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a")))
	e.late(t, "registry.example.com/app:v1 was not finished in time", "[team-a]registry.example.com/app:v1")
}

func TestARedisThatSaysNothingCostsNoAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() }) // connections stay in its backlog
	e := newEnvironment(t, fixture.RegistryOptions{})
	e.start(t, service.Options{CacheBytes: 1 << 20, Redis: &service.Redis{
		Connection: cache.Connection{URL: "redis://" + silent.Addr().String() + "/0"}, Keys: fixture.NewSealKey()}})
	var keys []string
	for _, name := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight"} {
		keys = append(keys, "[team-a]"+e.signed(t, name, "a").Reference.String())
	}
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a")))
	answer := e.serve(t, 30*time.Second)(keys...)
	require.Empty(t, answer.SystemError)
	require.Len(t, answer.Items, len(keys))
}
