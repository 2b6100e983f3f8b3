package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestARegistryThatSaysNoIsWithinReach(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var answer error
	asked := 0
	has, known := false, false
	p := &registryProbe{hosts: func() []string { return []string{"a.example.com"} }, now: func() time.Time { return at },
		referrers: func(string) (bool, bool) { return has, known },
		resolve: func(_ context.Context, namespace verify.Namespace, _ image.Reference) (image.Reference, error) {
			require.Equal(t, verify.Cluster, namespace)
			asked++
			return image.Reference{}, answer
		}}

	answer = ErrNotReady
	require.Empty(t, p.look(t.Context()), "nothing is known before rules are in force")

	answer = verify.Permanent(policy.ReasonNotFound, errors.New("no such image"))
	facts := p.look(t.Context())
	require.Equal(t, []resource.Fact{{ID: resource.FactRegistryUnreachable, Message: "registry a.example.com answers", About: "a.example.com"}}, facts)
	require.Equal(t, facts, p.look(t.Context()))
	require.Equal(t, 2, asked, "what is well is not asked again so soon")
	known = true
	require.Equal(t,
		append(facts, resource.Fact{ID: resource.FactReferrersMissing, Bad: true, Message: "registry a.example.com lacks the referrers API", About: "a.example.com"}),
		p.look(t.Context()))
	has = true
	facts = append(facts, resource.Fact{ID: resource.FactReferrersMissing, Message: "registry a.example.com has the referrers API", About: "a.example.com"})
	require.Equal(t, facts, p.look(t.Context()))
	known = false
	require.Equal(t, facts, p.look(t.Context()), "what was known last")

	at, answer = at.Add(registriesEvery), errors.New("connection refused")
	require.True(t, p.look(t.Context())[0].Bad)
	require.NotContains(t, p.look(t.Context())[0].Message, "refused")
	require.Equal(t, 3, asked, "a registry in trouble is left alone for a while")
	for i, wait := range []time.Duration{registryRetry, 2 * registryRetry, registryLongest, registryLongest, registryLongest} {
		at = at.Add(wait - time.Second)
		require.True(t, p.look(t.Context())[0].Bad)
		require.Equal(t, 3+i, asked, "too early")
		at = at.Add(time.Second)
		require.True(t, p.look(t.Context())[0].Bad)
		require.Equal(t, 4+i, asked, "what is not well is asked again sooner, but not for ever")
	}
}

func TestARegistryInTroubleDoesNotMakeOthersBeAsked(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	hosts := []string{"good.example.com", "bad.example.com", "good.example.com"}
	var lock sync.Mutex
	asked := map[string]int{}
	p := &registryProbe{hosts: func() []string { return hosts }, now: func() time.Time { return at }, referrers: func(string) (bool, bool) { return false, false },
		resolve: func(_ context.Context, _ verify.Namespace, ref image.Reference) (image.Reference, error) {
			lock.Lock()
			defer lock.Unlock()
			asked[ref.Host]++
			if ref.Host == "bad.example.com" {
				return image.Reference{}, errors.New("too many requests")
			}
			return ref, nil
		}}
	facts := p.look(t.Context())
	require.Len(t, facts, 2)
	require.True(t, facts[0].Bad)
	require.False(t, facts[1].Bad)
	at = at.Add(registryRetry)
	require.Equal(t, facts, p.look(t.Context()))
	require.Equal(t, map[string]int{"bad.example.com": 2, "good.example.com": 1}, asked)

	hosts = []string{"good.example.com", "new.example.com"}
	facts = p.look(t.Context())
	require.Len(t, facts, 2)
	require.Equal(t, []string{"good.example.com", "new.example.com"}, []string{facts[0].About, facts[1].About})
	require.Equal(t, map[string]int{"bad.example.com": 2, "good.example.com": 1, "new.example.com": 1}, asked,
		"a new one is asked at once, and one that no ClusterStore lists no more")
}

func TestSoManyRegistriesAreAskedAtMost(t *testing.T) {
	p := &registryProbe{now: time.Now, referrers: func(string) (bool, bool) { return false, false }, hosts: func() (hosts []string) {
		for i := range 2 * maxProbedRegistries {
			hosts = append(hosts, fmt.Sprintf("r%d.example.com", i))
		}
		return hosts
	}, resolve: func(_ context.Context, _ verify.Namespace, ref image.Reference) (image.Reference, error) {
		return ref, nil
	}}
	require.Len(t, p.look(t.Context()), maxProbedRegistries)
}
