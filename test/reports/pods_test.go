//go:build e2e

package reports

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// podsEach is how many pods a namespace has, and imagesEach how many images those have.
const (
	podsEach   = 50
	imagesEach = 5
	// mostWrites and mostMemory are what is promised.
	mostWrites = 100 // a minute, at rest
	mostMemory = 200 << 20
)

// crowd is an API server with many pods, and no Gatekeeper: nobody admits here.
type crowd struct {
	*cluster.Cluster
	registry   *fixture.Registry
	key        *fixture.CosignKey
	binary     string
	namespaces int
	clients    kubernetes.Interface
	metrics    string // of the server that runs
	process    *cluster.Process
}

// LANDWAITER_PODS is the number of pods: make slow has 10,000.
func TestManyPodsAtRestCostFewWritesAndLittleMemory(t *testing.T) {
	pods := 500
	if text := os.Getenv("LANDWAITER_PODS"); text != "" {
		var err error
		pods, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	c := gather(t, pods/podsEach)
	// The binary of make e2e has the race detector, which takes several times the memory.
	interval, window, limit := time.Second, 6*time.Second, int64(4*mostMemory)
	if pods > 2000 {
		interval, window, limit = time.Minute, 2*time.Minute, mostMemory
	}
	c.serve(t, "before")
	time.Sleep(2 * time.Second) // what it has without a single pod: it settles by itself
	before := c.memory(t)
	c.process.Kill()

	c.serve(t, "reporting", "--reports", "--warm-up-interval="+interval.String())
	began := time.Now()
	c.reported(t, map[string]int{"pass": c.namespaces * (imagesEach - 1), "fail": c.namespaces})
	c.settled(t, interval)
	t.Logf("%d pods in %d namespaces were reported after %s, with %d writes", pods, c.namespaces, time.Since(began).Round(time.Second), c.writes(t))

	rest, began := c.writes(t), time.Now()
	time.Sleep(window) // several re-verifications of everything
	minutes := time.Since(began).Minutes()
	wrote := float64(c.writes(t)-rest) / minutes
	grown := c.memory(t) - before
	t.Logf("at rest: %.1f writes a minute; %d MiB more memory", wrote, grown>>20)
	require.LessOrEqual(t, wrote, float64(mostWrites))
	require.Zero(t, int(wrote), "nothing changes, so nothing is written")
	require.LessOrEqual(t, grown, limit)

	store := &v1alpha1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: "keys"}}
	require.NoError(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(store), store))
	other, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	store.Spec.Source.Inline = string(other.PEM)
	require.NoError(t, c.Client.Update(t.Context(), store))
	began = time.Now()
	c.reported(t, map[string]int{"fail": c.namespaces * imagesEach})
	t.Logf("a revoked key made everything fail after %s; memory is %d MiB more", time.Since(began).Round(time.Second), (c.memory(t)-before)>>20)
	require.LessOrEqual(t, c.memory(t)-before, limit)
	revoked, err := c.clients.CoreV1().Events("crowd-0").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + v1alpha1.EventImageNoLongerTrusted})
	require.NoError(t, err)
	require.Len(t, revoked.Items, imagesEach-1, "one for each image that was allowed")
}

// gather starts the API server, and makes the pods.
func gather(t *testing.T, namespaces int) *crowd {
	t.Helper()
	c := &crowd{binary: os.Getenv("LANDWAITER_BINARY"), namespaces: namespaces}
	require.NotEmpty(t, c.binary, "LANDWAITER_BINARY is not set; run make e2e")
	var err error
	c.Cluster, err = cluster.Start(t.Context(), cluster.Options{Tools: os.Getenv("LANDWAITER_CLUSTER_TOOLS"), Dir: t.TempDir(), WithoutGatekeeper: true})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	c.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.registry.Close()) })
	c.key, err = fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	config := rest.CopyConfig(c.Config)
	config.QPS, config.Burst, config.UserAgent = 5000, 5000, "test"
	c.clients, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	for _, folder := range []string{"crds", "reports"} {
		files, err := filepath.Glob("../../charts/landwaiter/files/" + folder + "/*.yaml")
		require.NoError(t, err)
		for _, name := range files {
			objects, err := cluster.DecodeFile(name)
			require.NoError(t, err)
			require.NoError(t, c.Apply(t.Context(), objects...))
		}
	}
	store := &v1alpha1.ClusterStore{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}
	store.Spec.Registries, store.Spec.CABundle = []string{c.registry.Host()}, &v1alpha1.ClusterCABundle{Inline: string(c.registry.CertificatePEM())}
	verifier := &v1alpha1.ClusterVerifier{ObjectMeta: metav1.ObjectMeta{Name: "release"}}
	verifier.Spec.Type = v1alpha1.VerifierTypeCosign
	verifier.Spec.Cosign = &v1alpha1.CosignVerifier{Signers: v1alpha1.Signers{Keys: &v1alpha1.Keys{TrustStoreRefs: []v1alpha1.TrustStoreRef{{Name: "keys"}}}}}
	for _, object := range []client.Object{keys(c.key), store, verifier} {
		require.NoError(t, c.Client.Create(t.Context(), object))
	}
	c.makePods(t, c.images(t))
	return c
}

// images pushes the images of all namespaces; the last one is not signed.
func (c *crowd) images(t *testing.T) (images []string) {
	t.Helper()
	for i := range imagesEach {
		pushed, err := c.registry.PushImage(t.Context(), "app/"+strconv.Itoa(i), "v1")
		require.NoError(t, err)
		if i < imagesEach-1 {
			_, err = c.registry.SignCosign(t.Context(), pushed, c.key, fixture.CosignOptions{})
			require.NoError(t, err)
		}
		images = append(images, pushed.Reference.String())
	}
	return images
}

func (c *crowd) makePods(t *testing.T, images []string) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for n := range c.namespaces {
		name := fmt.Sprintf("crowd-%d", n)
		_, err := c.clients.CoreV1().Namespaces().Create(t.Context(), named(name), metav1.CreateOptions{})
		require.NoError(t, err)
		for i := range podsEach {
			group.Go(func() error {
				_, err := c.clients.CoreV1().Pods(name).Create(ctx, pod(name, fmt.Sprintf("app-%d", i), images[i%len(images)]), metav1.CreateOptions{})
				return err
			})
		}
	}
	require.NoError(t, group.Wait())
}

// serve starts the server.
func (c *crowd) serve(t *testing.T, name string, more ...string) {
	t.Helper()
	authority, err := fixture.NewAuthority("serving")
	require.NoError(t, err)
	serving, err := authority.IssueServer("127.0.0.1")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"tls.crt": serving.CertificatePEM, "tls.key": serving.KeyPEM} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	ports, err := cluster.FreePorts(3)
	require.NoError(t, err)
	c.metrics = fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[1])
	args := append([]string{"serve", "--kubeconfig=" + c.Kubeconfig(), "--tls-cert=" + filepath.Join(dir, "tls.crt"), "--tls-key=" + filepath.Join(dir, "tls.key"), "--insecure-no-client-auth",
		"--leader-elect=false", fmt.Sprintf("--address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[1]), fmt.Sprintf("--health-address=127.0.0.1:%d", ports[2])}, more...)
	c.process, err = cluster.StartProcess(dir, cluster.Command{Name: name, Path: c.binary, Args: args, Env: []string{"GOMEMLIMIT=400MiB", "GOGC=300"}}) // as the chart has it
	require.NoError(t, err)
	t.Cleanup(c.process.Kill)
	c.until(t, func(ctx context.Context) error {
		_, err := stack.Get(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[2]))
		return err
	})
}

func (c *crowd) until(t *testing.T, ok func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	require.NoError(t, cluster.Until(ctx, ok), "the log ends with:\n%s", c.process.Tail(20))
}

// value adds up the series of a metric of the server.
func (c *crowd) value(ctx context.Context, series string) (float64, error) {
	text, err := stack.Get(ctx, c.metrics)
	if err != nil {
		return 0, err
	}
	return total(text, series)
}

// total adds up the series that match.
func total(text, series string) (sum float64, err error) {
	for _, match := range regexp.MustCompile(`(?m)^`+series+` (\S+)$`).FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(match[len(match)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", match[0], err)
		}
		sum += value
	}
	return sum, nil
}

func (c *crowd) memory(t *testing.T) int64 {
	t.Helper()
	value, err := c.value(t.Context(), "process_resident_memory_bytes")
	require.NoError(t, err)
	require.Positive(t, value)
	return int64(value)
}

// reported waits until the images that run have these results.
func (c *crowd) reported(t *testing.T, want map[string]int) {
	t.Helper()
	c.until(t, func(ctx context.Context) error {
		for outcome, n := range want {
			found, err := c.value(ctx, `landwaiter_running_images\{namespace="[^"]*",outcome="`+outcome+`"\}`)
			if err != nil || int(found) != n {
				return fmt.Errorf("%d of %d images: %s, %w", int(found), n, outcome, err)
			}
		}
		return nil
	})
}

// settled waits until an interval has had no writes.
func (c *crowd) settled(t *testing.T, interval time.Duration) {
	t.Helper()
	last, since := c.writes(t), time.Now()
	c.until(t, func(context.Context) error {
		if now := c.writes(t); now != last {
			last, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < 2*interval || last == 0 {
			return fmt.Errorf("a report was written %s ago", quiet)
		}
		return nil
	})
}

// writes returns how many reports and Events the API server has been asked to write.
func (c *crowd) writes(t *testing.T) int {
	t.Helper()
	text, err := c.clients.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	written := 0
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !regexp.MustCompile(`resource="(reports|events)"`).MatchString(line) || !regexp.MustCompile(`verb="(POST|PUT|PATCH|APPLY|DELETE)"`).MatchString(line) {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		require.NoError(t, err)
		written += int(n)
	}
	return written
}
