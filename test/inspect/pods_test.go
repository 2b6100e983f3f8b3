//go:build nightly

package inspect

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	// podsEach is how many pods a namespace has, and imagesEach how many images those have.
	podsEach   = 50
	imagesEach = 5
	// mostMemory is what the reports of 10,000 pods may take.
	mostMemory = 200 << 20
	// patience is long because the server limits itself to 90 reports a minute.
	patience = 15 * time.Minute
)

// crowd is an API server with many pods, and no Gatekeeper: nobody admits here.
type crowd struct {
	*cluster.Cluster
	env        *suite.Env
	registry   *fixture.Registry
	key        *fixture.CosignKey
	namespaces int
	clients    kubernetes.Interface
	server     *suite.Server
}

// LANDWAITER_PODS is the number of pods, 10,000 if it is not set.
func TestManyPodsAtRestCostFewWritesAndLittleMemory(t *testing.T) {
	pods := 10_000
	if text := os.Getenv("LANDWAITER_PODS"); text != "" {
		var err error
		pods, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	c := gather(t, pods/podsEach)
	c.serve(t)
	before := c.baseline(t)
	c.server.Kill()

	c.serve(t, "--reports", "--ttl=warm-up=1m")
	began := time.Now()
	c.reported(t, map[string]int{"pass": podsEach * (imagesEach - 1) / imagesEach, "fail": podsEach / imagesEach})
	t.Logf("%d pods in %d namespaces were reported after %s, with %d writes", pods, c.namespaces, time.Since(began).Round(time.Second), c.writes(t))

	rest := c.settled(t)
	c.verified(t, 3) // minutes, and the server looks at all reports each minute
	grown := c.memory(t) - before
	t.Logf("at rest: %d MiB more memory", grown>>20)
	require.Equal(t, rest, c.writes(t), "nothing changes, so nothing is written")
	require.LessOrEqual(t, grown, int64(mostMemory))

	other, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	suite.Apply(t, c.Cluster, trusted("platform", other))
	began = time.Now()
	c.reported(t, map[string]int{"fail": podsEach})
	t.Logf("a revoked key made everything fail after %s; memory is %d MiB more", time.Since(began).Round(time.Second), (c.memory(t)-before)>>20)
	require.LessOrEqual(t, c.memory(t)-before, int64(mostMemory))
	revoked, err := c.clients.CoreV1().Events("crowd-0").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + v1beta1.EventImageNoLongerTrusted})
	require.NoError(t, err)
	require.Len(t, revoked.Items, imagesEach-1, "one for each image that was allowed")
}

// gather starts the API server, and makes the pods.
func gather(t *testing.T, namespaces int) *crowd {
	t.Helper()
	c := &crowd{env: suite.ForTest(t), namespaces: namespaces}
	var err error
	c.Cluster, err = c.env.Cluster(t.Context(), cluster.Options{WithoutGatekeeper: true})
	require.NoError(t, err)
	c.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.registry.Close()) })
	c.key, err = fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	config := rest.CopyConfig(c.Config)
	config.QPS, config.Burst = 5000, 5000
	c.clients, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	chart, err := suite.Chart(t.Context(), "landwaiter", "--set", "reports.enabled=true")
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), suite.Only(chart, "CustomResourceDefinition")...))
	suite.Apply(t, c.Cluster, trusted("platform", c.key)+
		fmt.Sprintf("---\n{apiVersion: landwaiter.dev/v1beta1, kind: ClusterStore, metadata: {name: registry}, spec: {registries: [%q], caBundle: {inline: %q}}}",
			c.registry.Host(), c.registry.CertificatePEM()))
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
		require.NoError(t, c.Apply(t.Context(), suite.Namespace(name)))
		for i := range podsEach {
			group.Go(func() error {
				_, err := c.clients.CoreV1().Pods(name).Create(ctx, suite.Pod(name, fmt.Sprintf("app-%d", i), images[i%len(images)]), metav1.CreateOptions{})
				return err
			})
		}
	}
	require.NoError(t, group.Wait())
}

// serve starts the server, with the environment that the chart gives it.
func (c *crowd) serve(t *testing.T, more ...string) {
	t.Helper()
	var err error
	c.server, err = c.env.Server(t.Context(),
		suite.ServerOptions{Binary: suite.PlainServer, Env: []string{"GOMEMLIMIT=400MiB", "GOGC=300", "KUBECONFIG=" + c.Kubeconfig()},
			Args: append([]string{"--leader-elect=false"}, more...)})
	require.NoError(t, err)
}

func (c *crowd) until(t *testing.T, ok func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, cluster.Until(ctx, ok), "the log ends with:\n%s", c.server.Tail(20))
}

// value adds up the series of a metric of the server that match.
func (c *crowd) value(t *testing.T, series string) (sum int64) {
	t.Helper()
	text, err := stack.Get(t.Context(), c.server.MetricsURL+"/metrics")
	require.NoError(t, err)
	for _, match := range regexp.MustCompile(`(?m)^`+series+` (\S+)$`).FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(match[1], 64)
		require.NoError(t, err)
		sum += int64(value)
	}
	return sum
}

func (c *crowd) memory(t *testing.T) int64 {
	t.Helper()
	value := c.value(t, "process_resident_memory_bytes")
	require.Positive(t, value)
	return value
}

// baseline returns the memory of a server that has no pods, once it grows no more.
func (c *crowd) baseline(t *testing.T) (most int64) {
	t.Helper()
	same := 0
	c.until(t, func(context.Context) error {
		if now := c.memory(t); now > most {
			most, same = now, 0
		}
		if same++; same < 40 {
			return fmt.Errorf("it has grown to %d bytes", most)
		}
		return nil
	})
	return most
}

// verified waits until so many times as many images as run have been verified.
func (c *crowd) verified(t *testing.T, times int) {
	t.Helper()
	const images = `landwaiter_warm_images_total\{outcome="(?:allowed|denied)"\}`
	want := c.value(t, images) + int64(times*c.namespaces*imagesEach)
	c.until(t, func(context.Context) error {
		if now := c.value(t, images); now < want {
			return fmt.Errorf("%d of %d images were verified", now, want)
		}
		return nil
	})
}

// settled waits until all images were verified once more without a write, and returns the
// number of writes.
func (c *crowd) settled(t *testing.T) int {
	t.Helper()
	const most = 5
	for range most {
		before := c.writes(t)
		c.verified(t, 1)
		if c.writes(t) == before {
			return before
		}
	}
	require.Fail(t, "each time that all images are verified something is written")
	return 0
}

// reported waits until the report of each namespace has so many results.
func (c *crowd) reported(t *testing.T, want map[string]int) {
	t.Helper()
	n := 0
	c.until(t, func(ctx context.Context) error {
		for ; n < c.namespaces; n++ {
			r := suite.Object("{apiVersion: openreports.io/v1alpha1, kind: Report, metadata: {name: %s, namespace: crowd-%d}}", v1beta1.ReportNameRunning, n)
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
				return err
			}
			for result, results := range want {
				if found, _, err := unstructured.NestedInt64(r.Object, "summary", result); err != nil || int(found) != results {
					return fmt.Errorf("crowd-%d: %d of %d results are %s: %w", n, found, results, result, err)
				}
			}
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
		if !strings.HasPrefix(line, "apiserver_request_total{") || !regexp.MustCompile(`resource="(reports|events)"`).MatchString(line) ||
			!regexp.MustCompile(`verb="(POST|PUT|PATCH|APPLY|DELETE)"`).MatchString(line) {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		require.NoError(t, err)
		written += int(n)
	}
	return written
}
