package registry

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestAccountsShareALimitOnlyAtHostsThatAClusterAdminNamed(t *testing.T) {
	const host = "registry.example.com"
	client := NewClient(Options{})
	t.Cleanup(client.Close)
	only, err := NewLogin(host, Credential{Username: "u", Password: "p"})
	require.NoError(t, err)
	login := Logins{only}
	cluster, other := policy.ObjectRef{Kind: "ClusterStore", Name: "hub"}, policy.ObjectRef{Kind: "ClusterStore", Name: "other"}
	team := policy.ObjectRef{Kind: "Store", Namespace: "team-a", Name: "hub"}
	named := map[string]HostRule{host: {}}
	of := func(access Access, place bool, store Store, host string) *shared {
		found, leave := (&guard{session: &session{client: client, access: access}, origin: "registry.example.com", named: place, store: store,
			credential: firstOf(store)}).shared(host)
		leave()
		return found
	}
	anonymous := of(Access{Namespace: "team-a", Hosts: named}, false, Store{}, host)
	require.NotNil(t, anonymous)
	ofLogin := of(Access{Namespace: "team-a", Hosts: named}, false, Store{Source: cluster, Logins: login}, host)
	require.NotNil(t, ofLogin)
	require.NotSame(t, anonymous, ofLogin, "a registry limits each login")
	elsewhere := of(Access{Hosts: map[string]HostRule{"cdn.example.net": {}}}, false, Store{}, "cdn.example.net")
	for name, c := range map[string]struct {
		access Access
		place  bool
		store  Store
		host   string
		want   *shared
	}{
		"another account":                           {Access{Namespace: "team-b", Hosts: named}, false, Store{}, host, anonymous},
		"a ClusterStore without a login":            {Access{Namespace: "team-b", Hosts: named}, false, Store{Source: cluster}, host, anonymous},
		"a Store of a team without a login":         {Access{Namespace: "team-a", Hosts: named}, false, Store{Source: team}, host, anonymous},
		"the place of a mirror that an admin named": {Access{Namespace: "team-b"}, true, Store{}, host, anonymous},
		"a ClusterStore's login":                    {Access{Namespace: "team-b", Hosts: named}, false, Store{Source: cluster, Logins: login}, host, ofLogin},
		"a team's own login":                        {Access{Namespace: "team-a", Hosts: named}, false, Store{Source: team, Logins: login}, host, nil},
		"a team's own client certificate": {Access{Namespace: "team-a", Hosts: named}, false,
			Store{Source: team, Registries: []string{host}, ClientCertificate: &tls.Certificate{}}, host, nil},
		"a redirect from a host with a login": {Access{Namespace: "team-a", Hosts: map[string]HostRule{"cdn.example.net": {}}}, false,
			Store{Source: team, Logins: login}, "cdn.example.net", elsewhere},
		"a host that only a team's Store names": {Access{Namespace: "team-a"}, false, Store{Source: team}, host, nil},
		"a host that a pattern matches": {Access{Namespace: "team-a", Patterns: []PatternRule{{Hosts: pattern(t, "*.example.com")}}}, false,
			Store{Source: cluster}, host, nil},
		"a redirect from a mirror to any host": {Access{Namespace: "team-a"}, true, Store{}, "cdn.example.net", nil},
	} {
		require.Same(t, c.want, of(c.access, c.place, c.store, c.host), name)
	}
	require.NotSame(t, ofLogin, of(Access{Hosts: named}, false, Store{Source: other, Logins: login}, host), "another ClusterStore may have another login")
	require.NotSame(t, anonymous, of(Access{Hosts: map[string]HostRule{"other.example.com": {}}}, false, Store{}, "other.example.com"))
}

// firstOf is the first login of a store.
func firstOf(store Store) Credential {
	credentials, _ := store.Logins.For("registry.example.com", "app", true)
	return credentials[0]
}

func TestAPauseIsBoundedAndOthersGoFirst(t *testing.T) {
	for name, c := range map[string]struct{ asked, want time.Duration }{
		"seconds":            {7 * time.Second, 7 * time.Second},
		"an hour":            {time.Hour, maxBackOff},
		"a part of a second": {time.Millisecond, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newShared(500)
			s.refuse("refused", c.asked)
			began := time.Now()
			require.NoError(t, s.enter(t.Context(), "other"))
			require.Equal(t, c.want, time.Since(began), name)
			require.NoError(t, s.enter(t.Context(), "refused"))
			require.Equal(t, c.want+othersFirst, time.Since(began), name)
		})
	}
}

func TestARequestThatCannotWaitOutThePauseFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(500)
		s.refuse("a", 2*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		for _, account := range []verify.Account{"a", "b"} {
			err := s.enter(ctx, account)
			require.ErrorIs(t, err, errBackOff)
			require.Contains(t, explain(err, "look up x", "registry.example.com").Error(), "registry.example.com asked for a pause")
			require.False(t, verify.IsPermanent(explain(err, "look up x", "registry.example.com")))
		}
		require.Zero(t, time.Since(began))
		var none *shared
		require.NoError(t, none.enter(ctx, "a"), "nothing is shared")
	})
}

func TestAfterAPauseAccountsTakeTurnsWhileOneFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(500)
		s.refuse("flood", time.Second)
		var all sync.WaitGroup
		var mu sync.Mutex
		var served []verify.Account
		ask := func(account verify.Account) {
			all.Go(func() {
				if s.enter(t.Context(), account) == nil {
					mu.Lock()
					served = append(served, account)
					mu.Unlock()
				}
			})
		}
		soFar := func() []verify.Account { mu.Lock(); defer mu.Unlock(); return slices.Clone(served) }
		for range 200 {
			ask("flood")
		}
		synctest.Wait()
		ask("quiet")
		time.Sleep(time.Second + othersFirst + 100*time.Millisecond) // virtual time
		require.Equal(t, verify.Account("quiet"), soFar()[0], "the account that was refused goes last")
		before := len(soFar())
		require.Less(t, before, 100, "it goes on at a lower rate")
		ask("quiet")
		time.Sleep(20 * time.Millisecond)
		require.Contains(t, soFar()[before:before+3], verify.Account("quiet"), "the next one waits for a turn of the flood, and not for its queue")
		all.Wait()
		require.Len(t, served, 202)
	})
}

// What one account is refused, or many, must not silence another that the registry answers.
func TestAccountsThatAreRefusedForEverHoldUpAnotherForAPartOfTheTime(t *testing.T) {
	for name, c := range map[string]struct {
		accounts  int
		pause     time.Duration
		part      float64 // of the time in which the other account is paused, at most
		perSecond float64 // requests of the other account, at least
	}{
		"one account, long pauses":    {1, time.Hour, .11, 100},
		"one account, short pauses":   {1, time.Second, .11, 30},
		"many accounts, long pauses":  {40, time.Hour, .51, 4},
		"many accounts, short pauses": {40, time.Second, .51, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const hours = .5
				s := newShared(500)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(hours*float64(time.Hour)))
				defer cancel()
				var all sync.WaitGroup
				for n := range c.accounts {
					for range 3 {
						all.Go(func() {
							account := verify.Account(fmt.Sprint("flood", n))
							for s.enter(ctx, account) == nil {
								time.Sleep(10 * time.Millisecond)
								s.refuse(account, c.pause)
							}
						})
					}
				}
				asked, paused, looked := 0, 0, 0
				all.Go(func() {
					for ctx.Err() == nil {
						if asked++; s.enter(ctx, "quiet") != nil {
							return
						}
						time.Sleep(5 * time.Millisecond)
					}
				})
				for ctx.Err() == nil {
					if looked++; !s.paused("quiet").IsZero() {
						paused++
					}
					time.Sleep(100 * time.Millisecond)
				}
				all.Wait()
				part, perSecond := float64(paused)/float64(looked), float64(asked)/hours/3600
				t.Logf("paused for %.3f of the time, %.2f requests a second", part, perSecond)
				require.LessOrEqual(t, part, c.part)
				require.GreaterOrEqual(t, perSecond, c.perSecond)
				require.LessOrEqual(t, len(s.accounts), c.accounts)
			})
		})
	}
}

func TestTheRateOfAHostRecoversSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(500)
		s.refuse("a", time.Second)
		require.InDelta(t, 250, s.current(time.Now()), .1)
		time.Sleep(11 * time.Second)
		require.InDelta(t, 300, s.current(time.Now()), .1)
		s.refuse("b", time.Second)
		require.InDelta(t, 150, s.current(time.Now()), .1)
		s.refuse("c", time.Second)
		require.InDelta(t, 150, s.current(time.Now()), .1, "it was under way when the pause began")
		require.True(t, s.limited())
		time.Sleep(time.Minute + 12*time.Second)
		require.False(t, s.limited())
		s.refuse("d", time.Second)
		require.Len(t, s.accounts, 1, "pauses that are over are forgotten")
		low := newShared(1)
		low.refuse("a", time.Second)
		time.Sleep(2 * time.Second)
		require.False(t, low.limited(), "nobody asks faster than accounts may")
	})
}
