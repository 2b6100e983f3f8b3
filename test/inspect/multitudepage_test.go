//go:build nightly

package inspect

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	// mostOfPage is what the page of a large cluster may take.
	mostOfPage = 200 << 20
	// Requests to the API server, at most: discovery once, a reading of what Landwaiter's resources and
	// reports say, and an examination of the installation.
	mostDiscovery, mostReading, mostExamination = 30, 36, 50
)

// gate counts the requests of the page to the API server, by verb and resource.
type gate struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
	size int64 // bytes answered
}

// collection and discovery match paths of the API server.
var (
	collection = regexp.MustCompile(`^/apis?/(?:[^/]+/)?v[^/]+/(?:namespaces/[^/]+/)?([a-z]+)(/.+)?$`)
	discovery  = regexp.MustCompile(`^/apis?(/[^/]+){0,2}$`)
)

// gateTo starts a gate to an API server.
func gateTo(t *testing.T, c *cluster.Cluster) *gate {
	t.Helper()
	to, err := url.Parse(c.Config.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(c.Config)
	require.NoError(t, err)
	g := &gate{seen: map[string]int{}}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error { r.Body = counted{r.Body, g}; return nil }}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.count(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gate) count(r *http.Request) {
	name := "discovery"
	if match := collection.FindStringSubmatch(r.URL.Path); match != nil && !discovery.MatchString(r.URL.Path) {
		verb := map[bool]string{true: "list", false: "get"}[match[2] == ""]
		name = verb + " " + match[1]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[name]++
}

// counted adds what is read to the size of answers.
type counted struct {
	io.ReadCloser
	of *gate
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.size += int64(n)
	return n, err
}

// taken returns what was counted since the last call.
func (g *gate) taken() (seen map[string]int, size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen, size = g.seen, g.size
	g.seen, g.size = map[string]int{}, 0
	return seen, size
}

// sum adds up requests that begin with a word.
func sum(seen map[string]int, word string) (n int) {
	for name, count := range seen {
		if strings.HasPrefix(name, word) {
			n += count
		}
	}
	return n
}

// visit is a browser with the page of a large cluster.
type visit struct {
	*http.Client
	gate *gate
	pid  int
	base string
}

// visits starts the page behind a gate, and opens it.
func (m *multitude) visits(t *testing.T) (*visit, string) {
	t.Helper()
	v := &visit{gate: gateTo(t, m.Cluster)}
	config := api.NewConfig()
	config.Clusters["many"], config.CurrentContext = &api.Cluster{Server: v.gate.URL}, "many"
	config.Contexts["many"] = &api.Context{Cluster: "many"} // the gate has the administrator's token
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	began := time.Now()
	address, process := serves(t, suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Kubeconfig: kubeconfig})
	v.pid = process
	t.Logf("the address was printed after %s", time.Since(began).Round(time.Millisecond))
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	v.Client = &http.Client{Jar: jar}
	began = time.Now()
	at, text := v.fetch(t, address)
	v.base = strings.TrimSuffix(at, "/")
	t.Logf("the first answer took %s", time.Since(began).Round(time.Millisecond))
	updates := 0
	for deadline := time.Now().Add(suite.Patience); !strings.Contains(text, homeOf(0)+"<"); updates++ { // as page.js updates
		require.True(t, time.Now().Before(deadline), "the view still waits for facts")
		_, text = v.fetch(t, v.base+"/")
	}
	t.Logf("the first view had facts after %s and %d updates", time.Since(began).Round(time.Millisecond), updates)
	return v, text
}

// fetch returns where an address leads, and what is there.
func (v *visit) fetch(t *testing.T, address string) (at, text string) {
	t.Helper()
	answer, err := v.Get(address)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
	return answer.Request.URL.String(), string(body)
}

// opens fetches a view that must have some texts.
func (v *visit) opens(t *testing.T, path string, texts ...string) {
	t.Helper()
	began := time.Now()
	_, got := v.fetch(t, v.base+path)
	t.Logf("%s: %s, %d KiB", path, time.Since(began).Round(time.Millisecond), len(got)>>10)
	for _, text := range texts {
		require.True(t, strings.Contains(got, text), "%s has no %q", path, text) // the view is long
	}
}

// settles waits until the view of the cluster waits for nothing.
func (v *visit) settles(t *testing.T) {
	t.Helper()
	began := time.Now()
	for deadline := began.Add(suite.Patience); ; {
		_, text := v.fetch(t, v.base+"/")
		if !strings.Contains(text, "data-pending") {
			break
		}
		require.True(t, time.Now().Before(deadline), "the view still waits for facts")
	}
	t.Logf("the findings of check were there %s later", time.Since(began).Round(time.Millisecond))
}

// took logs the requests since the last call, and returns them.
func (v *visit) took(t *testing.T, what string) map[string]int {
	t.Helper()
	seen, size := v.gate.taken()
	all := make([]string, 0, len(seen))
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, fmt.Sprintf("%s %d", name, seen[name]))
	}
	t.Logf("%s: %d requests, %d KiB answered: %s", what, sum(seen, ""), size>>10, strings.Join(all, ", "))
	return seen
}

// peak returns the most memory that the page has taken.
func (v *visit) peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.pid))
	require.NoError(t, err)
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, match)
	kib, err := strconv.ParseInt(string(match[1]), 10, 64)
	require.NoError(t, err)
	return kib << 10
}

func TestThePageOfAThousandNamespacesTakesFewRequestsAndLittleMemory(t *testing.T) {
	look(t, settle(t))
}

// look opens views one after the other. What they take is logged: the machine may be busy.
func look(t *testing.T, m *multitude) {
	v, first := m.visits(t)
	require.True(t, strings.Contains(first, "1 to 100 of "), "namespaces are shown by the hundred")
	v.settles(t)
	seen := v.took(t, "the first view and its updates")
	require.LessOrEqual(t, seen["discovery"], mostDiscovery)
	require.LessOrEqual(t, sum(seen, "list"), mostReading+mostExamination)
	require.LessOrEqual(t, sum(seen, "get"), mostExamination)

	last, image := spaceOf(teamsOfMany-1, spacesEach-1), imageOf(teamsOfMany-1, 1)
	v.opens(t, "/?page=2", "101 to 200")
	v.opens(t, "/?team="+homeOf(7), spaceOf(7, 4), "deny")
	v.opens(t, "/?team="+homeOf(10), spaceOf(10, 4), "warn")
	v.opens(t, "/namespaces/"+last, "Tenant "+homeOf(teamsOfMany-1), "app-9", "found no signature")
	v.opens(t, "/namespaces/"+spaceOf(3, 1), "Deployment/shop")
	v.opens(t, "/search?q="+homeOf(teamsOfMany-1)+"/app-1", image)
	v.opens(t, "/search?q=app-")
	require.Empty(t, v.took(t, "further views"), "they show what was read")
	v.opens(t, imagePathOf(last, image), "app-1")
	v.took(t, "an image")
	v.idles(t)
	peak := v.peak(t)
	t.Logf("at most %d MiB were resident", peak>>20)
	require.LessOrEqual(t, peak, int64(mostOfPage))
}

// imagePathOf is the address of an image in a namespace.
func imagePathOf(namespace, image string) string {
	return "/image?" + url.Values{"namespace": {namespace}, "image": {image}}.Encode()
}

// idles keeps the view of the cluster open for a while, as page.js does.
func (v *visit) idles(t *testing.T) {
	t.Helper()
	const every, while = 10 * time.Second, time.Minute
	slowest := time.Duration(0)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range while / every {
		<-tick.C
		began := time.Now()
		v.fetch(t, v.base+"/")
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("an update of an open page took at most %s", slowest.Round(time.Millisecond))
	seen := v.took(t, "a minute of an open page")
	require.Positive(t, seen["list reports"], "facts that are old are read again")
	// A reading begins at most every 15 s, and an examination every two minutes.
	require.LessOrEqual(t, sum(seen, ""), int(while/(15*time.Second)+1)*mostReading+mostExamination)
}
