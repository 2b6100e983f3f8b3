package external

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// shelf is what sources have, as a test says.
type shelf struct {
	mu      sync.Mutex
	content map[string]string
	asked   map[string]int
}

func (s *shelf) put(path, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content[path] = content
}

func (s *shelf) fetch(_ context.Context, source Source) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[source.Path]++
	content, ok := s.content[source.Path]
	switch {
	case !ok:
		return nil, errors.New("it is down")
	case content == "panic":
		panic("boom")
	}
	return []byte(content), nil
}

const listed = "https://ok.example.com"

// kind is no constant, so that switches over kinds need not know it.
var kind = Kind("test")

func newShelf() *shelf { return &shelf{content: map[string]string{}, asked: map[string]int{}} }

func keeper(t *testing.T, options Options, now func() time.Time) (*Keeper, *shelf, chan verify.Namespace) {
	t.Helper()
	s := newShelf()
	if options.Fetch == nil {
		options.Fetch = map[Kind]Fetch{kind: s.fetch}
	}
	options.Hosts = []string{"ok.example.com"}
	if now == nil {
		now = time.Now
	}
	k := New(options, now)
	changed := make(chan verify.Namespace, 1000)
	k.Notify(func(n verify.Namespace) { changed <- n })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return k, s, changed
}

func await(t *testing.T, changed chan verify.Namespace, want verify.Namespace) {
	t.Helper()
	select {
	case got := <-changed:
		require.Equal(t, want, got)
	case <-time.After(10 * time.Second):
		t.Fatalf("no change of %q was told", want)
	}
}

func TestMaterialIsFetchedAndChangesAreTold(t *testing.T) {
	k, s, changed := keeper(t, Options{Refresh: 5 * time.Millisecond}, nil)
	a := Source{Owner: "team-a", Kind: kind, Address: listed, Path: "a"}
	require.ErrorContains(t, k.Known([]Source{a})[a].Err, "names more than", "it is not wanted")
	s.put("a", "first")
	require.Positive(t, k.Want("team-a", []Source{a}))
	await(t, changed, "team-a")
	require.Zero(t, k.Want("team-a", []Source{a}))
	m := k.Known([]Source{a})[a]
	require.Equal(t, "first", string(m.Content))
	require.NoError(t, m.Err)
	require.False(t, m.FetchedAt.IsZero())
	s.put("a", "second")
	await(t, changed, "team-a")
	require.Equal(t, "second", string(k.Known([]Source{a})[a].Content))
	select {
	case n := <-changed:
		t.Fatalf("nothing changed for %q", n)
	default:
	}
}

func TestTheLastGoodMaterialIsKeptForAStatedTime(t *testing.T) {
	var late atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	s := newShelf()
	k := New(Options{Keep: time.Hour, Fetch: map[Kind]Fetch{kind: s.fetch}}, now)
	a := Source{Kind: kind, Address: listed, Path: "a"}
	k.Want("", []Source{a})
	e := k.entries[a]
	require.ErrorContains(t, k.Known([]Source{a})[a].Err, "has not answered yet")
	k.store(e, []byte("good"), nil)
	late.Add(int64(2 * time.Hour))
	require.Equal(t, "good", string(k.Known([]Source{a})[a].Content), "nothing failed")
	k.store(e, nil, errors.New("it is down"))
	m := k.Known([]Source{a})[a]
	require.Nil(t, m.Content)
	require.ErrorContains(t, m.Err, "too old: it is down")
	late.Store(0)
	m = k.Known([]Source{a})[a]
	require.Equal(t, "good", string(m.Content))
	require.ErrorContains(t, m.Err, "it is down")
}

func TestFailuresAndPanicsAreErrorsAndTriedAgain(t *testing.T) {
	k, s, changed := keeper(t, Options{}, nil)
	sources := []Source{{Kind: kind, Address: listed, Path: "down"}, {Kind: kind, Address: listed, Path: "panics"}, {Kind: kind, Address: listed, Path: "empty"}, {Kind: "unknown"}, {Kind: kind, Address: listed, Path: "large"}}
	s.put("panics", "panic")
	s.put("empty", "")
	s.put("large", string(make([]byte, maxContent+1)))
	k.Want("", sources)
	for range sources {
		await(t, changed, "")
	}
	for source, says := range map[int]string{0: "it is down", 1: "internal error: boom", 2: "has nothing", 3: "not a source that can be asked", 4: "the limit is"} {
		m := k.Known(sources)[sources[source]]
		require.ErrorContains(t, m.Err, says)
		require.Nil(t, m.Content)
	}
	s.put("down", "up")
	await(t, changed, "")
	require.Equal(t, "up", string(k.Known(sources)[sources[0]].Content))
}

func TestWhatIsNoLongerWantedIsNotFetched(t *testing.T) {
	k, s, changed := keeper(t, Options{Refresh: time.Millisecond}, nil)
	a, b := Source{Owner: "team-a", Kind: kind, Address: listed, Path: "a"}, Source{Owner: "team-b", Kind: kind, Address: listed, Path: "b"}
	s.put("a", "x")
	s.put("b", "x")
	k.Want("team-a", []Source{a})
	k.Want("team-b", []Source{b})
	<-changed
	<-changed
	k.Want("team-a", nil)
	k.KeepOnly(map[verify.Namespace][]Source{})
	k.mu.Lock()
	require.Empty(t, k.entries)
	k.mu.Unlock()
}

func TestOneNamespacesHangingServersKeepNobodyWaiting(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	k, _, changed := keeper(t, Options{Fetch: map[Kind]Fetch{kind: func(ctx context.Context, s Source) ([]byte, error) {
		if s.Owner == "team-a" {
			select {
			case <-hold:
			case <-ctx.Done():
			}
		}
		return []byte("x"), nil
	}}}, nil)
	var many []Source
	for i := range 2 * maxSources {
		many = append(many, Source{Owner: "team-a", Kind: kind, Address: listed, Path: fmt.Sprint(i)})
	}
	k.Want("team-a", many)
	require.ErrorContains(t, k.Known(many)[many[maxSources]].Err, "more than 32")
	b := Source{Owner: "team-b", Kind: kind, Address: listed}
	k.Want("team-b", []Source{b})
	await(t, changed, "team-b")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	k.Await(ctx) // ends with ctx
}

func TestTenantsReachWhatIsListedWithTheirOwnCredentials(t *testing.T) {
	hosts := []string{"vault.example.com", "vault.example.com:8200"}
	for name, c := range map[string]struct {
		source Source
		says   string
	}{
		"a listed host":            {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://vault.example.com:8200"}, ""},
		"in capitals":              {Source{Owner: "team-a", Kind: VaultKeys, Address: "https://Vault.example.com"}, ""},
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
		"own credentials":          {Source{Owner: "team-a", Kind: KMS, Address: "awskms:///alias/x", Credentials: "{}"}, ""},
		"own credentials, Google":  {Source{Owner: "team-a", Kind: KMS, Address: "gcpkms://projects/p", Credentials: "{}"}, ""},
		"an endpoint of a tenant":  {Source{Owner: "team-a", Kind: KMS, Address: "awskms://169.254.169.254/alias/x", Credentials: "{}"}, "cannot name the endpoint"},
		"cluster, pod's identity":  {Source{Kind: KMS, Address: "awskms:///alias/x"}, ""},
		"registry of a tenant":     {Source{Owner: "team-a", Kind: Registry, Path: "ECR"}, "credentials of its own"},
		"own registry login":       {Source{Owner: "team-a", Kind: Registry, Path: "ECR", Credentials: "{}"}, ""},
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
	source := Source{Kind: VaultKeys, Address: "https://vault", Path: "transit/keys/x", Credentials: `{"token":"hunter2"}`}
	for _, text := range []string{source.String(), fmt.Sprintf("%v", source), fmt.Sprintf("%+v", source), fmt.Sprintf("%#v", source)} {
		require.NotContains(t, text, "hunter2")
	}
}

func TestSigstoresRootIsAskedForOnceForAllNamespaces(t *testing.T) {
	var asked atomic.Int32
	k, _, changed := keeper(t, Options{Fetch: map[Kind]Fetch{TUF: func(context.Context, Source) ([]byte, error) {
		asked.Add(1)
		return []byte("root"), nil
	}}}, nil)
	for i := range 50 {
		owner := verify.Namespace(fmt.Sprintf("team-%d", i))
		k.Want(owner, []Source{{Owner: owner, Kind: TUF}})
	}
	for range 50 {
		<-changed
	}
	require.EqualValues(t, 1, asked.Load())
	source := Source{Owner: "team-7", Kind: TUF}
	require.Equal(t, "root", string(k.Known([]Source{source})[source].Content))
	k.KeepOnly(nil)
	k.mu.Lock()
	require.Empty(t, k.busy)
	k.mu.Unlock()
}

func TestAddressesOfTheNetworkAreNotTold(t *testing.T) {
	for says, err := range map[string]error{
		"host vault.example.com cannot be found": &net.OpError{Op: "dial", Err: &net.DNSError{Name: "vault.example.com", Server: "10.0.0.53:53", Err: "no such host"}},
		"the server cannot be reached":           &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}, Err: errors.New("refused")},
	} {
		k, _, changed := keeper(t, Options{Fetch: map[Kind]Fetch{kind: func(context.Context, Source) ([]byte, error) {
			return nil, fmt.Errorf("get: %w", err)
		}}}, nil)
		source := Source{Kind: kind}
		k.Want("", []Source{source})
		<-changed
		got := k.Known([]Source{source})[source].Err
		require.ErrorContains(t, got, says)
		require.NotContains(t, got.Error(), "10.")
	}
}
