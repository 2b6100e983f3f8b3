package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// contents is what the sources have, by path.
type contents struct {
	mu   sync.Mutex
	text map[string]string
}

func (c *contents) put(path, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text[path] = text
}

func (c *contents) fetch(_ context.Context, source Source) (Content, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := c.text[source.Path]
	switch {
	case !ok:
		return Content{}, errDown
	case text == "panic":
		panic("boom")
	}
	return Content{Bytes: []byte(text)}, nil
}

// errDown is in our own words; any other error is not shown.
const errDown = problem("it is down")

const listed = "https://ok.example.com"

// kind is no constant, so that switches over kinds need not know it.
var kind = Kind("test")

// run starts a Fetcher in the bubble of t. It returns the contents that it fetches
// and the namespaces that it notifies.
func run(t *testing.T, options Options) (*Fetcher, *contents, chan verify.Namespace) {
	t.Helper()
	c := &contents{text: map[string]string{}}
	if options.Fetch == nil {
		options.Fetch = map[Kind]Fetch{kind: c.fetch}
	}
	options.Hosts = []string{"ok.example.com"}
	f := New(options, time.Now)
	changed := make(chan verify.Namespace, 1000)
	f.Notify(func(n verify.Namespace) { changed <- n })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	synctest.Wait()
	return f, c, changed
}

func await(t *testing.T, changed chan verify.Namespace, want verify.Namespace) {
	t.Helper()
	select {
	case got := <-changed:
		require.Equal(t, want, got)
	case <-time.After(24 * time.Hour):
		t.Fatalf("no change of %q was notified", want)
	}
}

func TestValuesAreFetchedAndNamespacesAreNotifiedOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, changed := run(t, Options{})
		a := Source{Owner: "team-a", Kind: kind, Address: listed, Path: "a"}
		require.ErrorContains(t, f.Known([]Source{a})[a].Err, "names more than", "it is not wanted")
		c.put("a", "first")
		require.Positive(t, f.Want("team-a", []Source{a}))
		await(t, changed, "team-a")
		require.Zero(t, f.Want("team-a", []Source{a}))
		v := f.Known([]Source{a})[a]
		require.Equal(t, "first", string(v.Content))
		require.NoError(t, v.Err)
		require.Equal(t, time.Now(), v.FetchedAt)
		c.put("a", "second")
		await(t, changed, "team-a")
		require.Equal(t, "second", string(f.Known([]Source{a})[a].Content))
		at := time.Now()
		time.Sleep(tellEvery)
		require.Empty(t, changed, "nothing changed")
		time.Sleep(defaultRefresh)
		require.Len(t, changed, 1, "but the time of the fetch, which a status shows")
		require.Greater(t, f.Known([]Source{a})[a].FetchedAt.Sub(at), tellEvery)
	})
}

func TestAnotherReasonOfAFailureIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		why := "there is no permission"
		f, _, changed := run(t, Options{Fetch: map[Kind]Fetch{kind: func(context.Context, Source) (Content, error) {
			mu.Lock()
			defer mu.Unlock()
			return Content{}, problem(why)
		}}})
		a := Source{Kind: kind}
		f.Want("", []Source{a})
		await(t, changed, "")
		time.Sleep(10 * time.Minute)
		require.Empty(t, changed, "the same failure again is none")
		mu.Lock()
		why = "there is no such account"
		mu.Unlock()
		await(t, changed, "")
		require.ErrorContains(t, f.Known([]Source{a})[a].Err, "there is no such account")
	})
}

func TestTheLastGoodValueIsKeptForAStatedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := error(errDown)
		var mu sync.Mutex
		become := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			state = err
		}
		f, _, changed := run(t, Options{Refresh: 2 * time.Hour, Keep: time.Hour, Fetch: map[Kind]Fetch{kind: func(context.Context, Source) (Content, error) {
			mu.Lock()
			defer mu.Unlock()
			return Content{Bytes: []byte("good")}, state
		}}})
		a := Source{Kind: kind, Address: listed, Path: "a"}
		known := func() Value { return f.Known([]Source{a})[a] }
		f.Want("", []Source{a})
		require.ErrorContains(t, known().Err, "has not answered yet")
		await(t, changed, "")
		require.ErrorContains(t, known().Err, "it is down")
		require.Nil(t, known().Content)
		become(nil)
		await(t, changed, "")
		time.Sleep(90 * time.Minute)
		require.Equal(t, "good", string(known().Content), "nothing failed")
		require.NoError(t, known().Err)
		become(errDown)
		await(t, changed, "")
		require.Nil(t, known().Content)
		require.ErrorContains(t, known().Err, "too old: test https://ok.example.com a could not be fetched: it is down")
	})
}

func TestTheLastGoodValueCountsWhileFetchingFailsAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, changed := run(t, Options{Keep: time.Hour})
		a := Source{Kind: kind, Address: listed, Path: "a"}
		known := func() Value { return f.Known([]Source{a})[a] }
		c.put("a", "good")
		f.Want("", []Source{a})
		await(t, changed, "")
		require.Zero(t, known().KeptUntil, "it is fetched again and again")
		c.mu.Lock()
		delete(c.text, "a")
		c.mu.Unlock()
		await(t, changed, "")
		require.Equal(t, "good", string(known().Content))
		require.ErrorContains(t, known().Err, "it is down")
		require.Equal(t, known().FetchedAt.Add(time.Hour), known().KeptUntil)
		time.Sleep(time.Hour)
		require.Nil(t, known().Content)
		require.ErrorContains(t, known().Err, "too old")
		await(t, changed, "") // owners learn that it has expired
		c.put("a", "good")
		await(t, changed, "")
		require.Equal(t, "good", string(known().Content))
		require.Zero(t, known().KeptUntil)
	})
}

func TestFailuresAndPanicsAreErrorsAndAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, changed := run(t, Options{})
		source := func(path string) Source { return Source{Kind: kind, Address: listed, Path: path} }
		c.put("panics", "panic")
		c.put("empty", "")
		c.put("large", string(make([]byte, maxContent+1)))
		says := map[Source]string{source("down"): "it is down", source("panics"): "internal error", source("empty"): "is empty",
			{Kind: "unknown"}: "not a kind that can be fetched", source("large"): "the limit is"}
		sources := slices.Collect(maps.Keys(says))
		f.Want("", sources)
		for range sources {
			await(t, changed, "")
		}
		known := f.Known(sources)
		for source, says := range says {
			require.ErrorContains(t, known[source].Err, says)
			require.Nil(t, known[source].Content)
		}
		c.put("down", "up")
		await(t, changed, "")
		require.Equal(t, "up", string(f.Known(sources)[source("down")].Content))
	})
}

func TestSourcesThatAreNoLongerWantedAreNotFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, changed := run(t, Options{})
		a, b := Source{Owner: "team-a", Kind: kind, Address: listed, Path: "a"}, Source{Owner: "team-b", Kind: kind, Address: listed, Path: "b"}
		c.put("a", "x")
		c.put("b", "x")
		f.Want("team-a", []Source{a})
		f.Want("team-b", []Source{b})
		<-changed
		<-changed
		f.Want("team-a", nil)
		require.Equal(t, []Source{b}, f.set.Keys())
		f.KeepOnly(map[verify.Namespace][]Source{})
		require.Empty(t, f.set.Keys())
	})
}

func TestOneNamespacesHangingServersDelayNoOtherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hanging atomic.Int32
		f, _, changed := run(t, Options{Fetch: map[Kind]Fetch{kind: func(ctx context.Context, s Source) (Content, error) {
			if s.Owner == "team-a" {
				hanging.Add(1)
				<-ctx.Done()
			}
			return Content{Bytes: []byte("x")}, ctx.Err()
		}}})
		var many []Source
		for i := range 2 * maxSources {
			many = append(many, Source{Owner: "team-a", Kind: kind, Address: listed, Path: fmt.Sprint(i)})
		}
		f.Want("team-a", many)
		require.ErrorContains(t, f.Known(many)[many[maxSources]].Err, "more than 32")
		synctest.Wait()
		require.EqualValues(t, maxFetchesEach, hanging.Load())
		b := Source{Owner: "team-b", Kind: kind, Address: listed}
		f.Want("team-b", []Source{b})
		synctest.Wait()
		require.Len(t, changed, 1)
		await(t, changed, "team-b")
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.Await(ctx) // ends with ctx
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestTheNamespacesOfOneAccountShareItsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hanging atomic.Int32
		end := make(chan struct{})
		account := func(n verify.Namespace) verify.Account {
			if strings.HasPrefix(string(n), "merger-") {
				return "tenant/merger"
			}
			return n.Account()
		}
		f, _, changed := run(t, Options{Account: account, Fetch: map[Kind]Fetch{kind: func(_ context.Context, s Source) (Content, error) {
			if strings.HasPrefix(string(s.Owner), "merger-") {
				hanging.Add(1)
				<-end // also after its context
			}
			return Content{Bytes: []byte("x")}, nil
		}}})
		for edit := range 40 { // forty namespaces, and each edits its source again and again
			for i := range 40 {
				owner := verify.Namespace(fmt.Sprintf("merger-%d", i))
				f.Want(owner, []Source{{Owner: owner, Kind: kind, Address: listed, Path: fmt.Sprint(edit)}})
			}
			synctest.Wait()
		}
		require.EqualValues(t, maxFetchesEach, hanging.Load())
		for _, owner := range []verify.Namespace{"team-b", verify.Cluster} {
			f.Want(owner, []Source{{Owner: owner, Kind: kind, Address: listed}})
			synctest.Wait()
			require.Len(t, changed, 1)
			await(t, changed, owner)
		}
		f.KeepOnly(nil)
		close(end)
	})
}

func TestTheClusterWaitsForNoTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, changed := run(t, Options{Fetch: map[Kind]Fetch{kind: func(ctx context.Context, s Source) (Content, error) {
			if s.Owner != verify.Cluster {
				<-ctx.Done()
			}
			return Content{Bytes: []byte("x")}, ctx.Err()
		}}})
		for i := range maxFetches {
			owner := verify.Namespace(fmt.Sprintf("team-%d", i))
			f.Want(owner, []Source{{Owner: owner, Kind: kind, Address: listed}})
		}
		synctest.Wait()
		f.Want(verify.Cluster, []Source{{Kind: kind}})
		synctest.Wait()
		require.Len(t, changed, 1)
		await(t, changed, verify.Cluster)
	})
}

func TestAnEmptySecretIsNobodyAndNeverThePod(t *testing.T) {
	for name, credentials := range map[string]map[string]string{
		"nothing": nil, "an empty map": {}, "an empty value": {"accessKeyID": ""}, "blanks": {"accessKeyID": " \n\t", "secretAccessKey": "\r\n"},
		"an empty file": {"credentials.json": ""},
	} {
		as, err := Given(credentials)
		require.ErrorContains(t, err, "holds no credentials", name)
		require.Nil(t, as, name)
	}
	for _, namespace := range []verify.Namespace{"team-a", "landwaiter-system", " ", "-", "kube-system"} {
		as, err := Pod(namespace)
		require.Error(t, err, namespace)
		require.Nil(t, as)
	}
	as, err := Pod(verify.Cluster)
	require.NoError(t, err)
	require.IsType(t, pod{}, as)
	_, ambient, err := held(nil)
	require.ErrorContains(t, err, "no credentials")
	require.False(t, ambient)
	_, ambient, err = held(given(`{"accessKeyID":"x"}`), "accessKeyID", "secretAccessKey")
	require.ErrorContains(t, err, "have no secretAccessKey; needed: accessKeyID, secretAccessKey")
	require.False(t, ambient)
}

func TestWhatALibrarySaysIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for says, err := range map[string]error{
			"its answer cannot be used": errors.New("remote text"), "it took too long": fmt.Errorf("remote text: %w", context.DeadlineExceeded),
			"host vault.example.com redirects": fmt.Errorf("remote text: %w", &egress.Error{Host: "vault.example.com", Cause: egress.Redirected}),
			"it is down":                       fmt.Errorf("remote text: %w", errDown),
		} {
			f, _, changed := run(t, Options{Fetch: map[Kind]Fetch{kind: func(context.Context, Source) (Content, error) { return Content{}, err }}})
			source := Source{Kind: kind}
			f.Want("", []Source{source})
			<-changed
			got := f.Known([]Source{source})[source].Err
			require.ErrorContains(t, got, says)
			require.NotContains(t, got.Error(), "remote text")
		}
	})
}

func TestTenantsReachListedHostsWithTheirOwnCredentials(t *testing.T) {
	hosts, err := egress.ParseHosts([]string{"vault.example.com", "vault.example.com:8200"})
	require.NoError(t, err)
	own := given(`{"x":"y"}`)
	for name, c := range map[string]struct {
		source Source
		says   string
	}{
		"a listed host":            {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://vault.example.com:8200", As: own}, ""},
		"in capitals":              {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://Vault.example.com", As: own}, ""},
		"a listed host, as nobody": {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://vault.example.com"}, "credentials of its own for Vault"},
		"an own ServiceAccount": {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://vault.example.com", As: account{namespace: "team-a", name: "puller"}},
			""},
		"another's, for Vault": {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://vault.example.com", As: account{namespace: "team-b", name: "puller"}},
			"credentials of its own"},
		"another's, for keys": {Source{Owner: "team-a", Kind: KMS, Address: "awskms:///alias/x", As: account{namespace: "team-b", name: "puller"}},
			"credentials of its own"},
		"another's, for images": {Source{Owner: "team-a", Kind: Registry, Path: "ECR", As: account{namespace: "team-b", name: "puller"}},
			"credentials of its own"},
		"another host":             {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://evil.example.com"}, "not one that a namespace's resource may name"},
		"another port":             {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://vault.example.com:1"}, "not one that"},
		"the metadata service":     {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://169.254.169.254"}, "not one that"},
		"without TLS":              {Source{Owner: "team-a", Kind: VaultKeys, Address: "http://vault.example.com"}, "not an https address"},
		"with a user":              {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://u@vault.example.com"}, "not an https address"},
		"a socket":                 {Source{Owner: "team-a", Kind: VaultKeys, Address: "unix:///run/vault"}, "not an https address"},
		"no address":               {Source{Owner: "team-a", Kind: VaultKeys}, "not an https address"},
		"cluster, any host":        {Source{Kind: VaultKeys, Address: "https://evil.example.com"}, ""},
		"cluster, without TLS":     {Source{Kind: VaultKeys, Address: "http://vault.example.com"}, "not an https address"},
		"Sigstore's repository":    {Source{Owner: "team-a", Kind: TUF}, ""},
		"a mirror that is not":     {Source{Owner: "team-a", Kind: TUF, Address: "https://mirror.example.com"}, "not one that"},
		"the pod's identity":       {Source{Owner: "team-a", Kind: KMS, Address: "awskms:///alias/x"}, "credentials of its own"},
		"own credentials":          {Source{Owner: "team-a", Kind: KMS, Address: "awskms:///alias/x", As: own}, ""},
		"own credentials, Google":  {Source{Owner: "team-a", Kind: KMS, Address: "gcpkms://projects/p", As: own}, ""},
		"an endpoint of a tenant":  {Source{Owner: "team-a", Kind: KMS, Address: "awskms://169.254.169.254/alias/x", As: own}, "cannot name the endpoint"},
		"the pod's, by its type":   {Source{Owner: "team-a", Kind: KMS, Address: "awskms:///alias/x", As: pod{}}, "credentials of its own"},
		"registry, by its type":    {Source{Owner: "team-a", Kind: Registry, Path: "ECR", As: pod{}}, "credentials of its own"},
		"cluster, pod's identity":  {Source{Kind: KMS, Address: "awskms:///alias/x"}, ""},
		"registry of a tenant":     {Source{Owner: "team-a", Kind: Registry, Path: "ECR"}, "credentials of its own"},
		"own registry login":       {Source{Owner: "team-a", Kind: Registry, Path: "ECR", As: own}, ""},
		"registry of the cluster":  {Source{Kind: Registry, Path: "ECR"}, ""},
		"certificates, other host": {Source{Owner: "team-a", Kind: VaultCertificates, Address: "https://evil.example.com"}, "not one that"},
	} {
		err := c.source.permitted(hosts)
		if c.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	as, err := Given(map[string]string{"token": "hunter2"})
	require.NoError(t, err)
	source := Source{Kind: VaultKeys, Address: "https://vault", Path: "transit/keys/x", As: as}
	written, err := json.Marshal(source)
	require.NoError(t, err)
	for _, text := range []string{source.String(), fmt.Sprintf("%v", source), fmt.Sprintf("%+v", source), fmt.Sprintf("%#v", source), fmt.Sprintf("%s", as),
		string(written), source.Fingerprint()} {
		require.NotContains(t, text, "hunter2")
	}
	require.Equal(t, "hunter2", source.Credential("token"))
	require.Empty(t, source.Credential("other"))
	other := source
	other.As, err = Given(map[string]string{"token": "hunter3"})
	require.NoError(t, err)
	require.NotEqual(t, source.Fingerprint(), other.Fingerprint())
}

func TestSigstoresRootIsFetchedOnceForAllNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		answer := make(chan struct{})
		f, _, changed := run(t, Options{Fetch: map[Kind]Fetch{
			kind: func(ctx context.Context, _ Source) (Content, error) { <-ctx.Done(); return Content{}, ctx.Err() },
			TUF: func(_ context.Context, s Source) (Content, error) {
				<-answer
				asked.Add(1)
				return Content{Bytes: []byte("root for " + string(s.Owner) + s.Authority)}, nil
			}}})
		var hanging []Source
		for i := range maxSources {
			hanging = append(hanging, Source{Kind: kind, Address: listed, Path: fmt.Sprint(i)})
		}
		f.Want(verify.Cluster, hanging) // the root does not wait for these
		synctest.Wait()
		for i := range maxFetches { // all common places, by as many tenants
			owner := verify.Namespace(fmt.Sprintf("slow-%d", i))
			f.Want(owner, []Source{{Owner: owner, Kind: kind, Address: listed}})
		}
		synctest.Wait()
		for i := range 50 {
			owner := verify.Namespace(fmt.Sprintf("team-%d", i))
			f.Want(owner, []Source{{Owner: owner, Kind: TUF}})
		}
		close(answer)
		synctest.Wait()
		require.Len(t, changed, 50)
		require.EqualValues(t, 1, asked.Load())
		source := Source{Owner: "team-7", Kind: TUF}
		require.Equal(t, "root for ", string(f.Known([]Source{source})[source].Content))
		require.Zero(t, f.Want("late", []Source{{Owner: "late", Kind: TUF}}))
		time.Sleep(publicGoodRefresh)
		require.EqualValues(t, 2, asked.Load())

		own := Source{Owner: "team-7", Kind: TUF, Authority: "of team-7"}
		f.Want("team-7", []Source{own})
		synctest.Wait()
		require.Equal(t, "root for team-7of team-7", string(f.Known([]Source{own})[own].Content), "a source with a CA bundle is not shared")
		f.KeepOnly(nil)
		require.Empty(t, f.set.Keys())
	})
}
