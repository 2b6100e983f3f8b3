package provider

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

// Prometheus sees no increase in a counter whose first value is 1.
func TestCountersOfRequestsAreExportedBeforeTheFirst(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	require.Equal(t, len(endpointNames())*len(requestOutcomes()), testutil.CollectAndCount(h.metrics.requests))
	for _, path := range []string{"/v1/verify", "/v1/mutate", "/v1/namespaces/team-a/verify", "/v1/namespaces/team-a/mutate",
		"/ratify/gatekeeper/v1/verify", "/ratify/gatekeeper/v1/mutate"} {
		require.Contains(t, endpointNames(), endpointOf(t, path).name)
	}
	ask(t, h, "/v1/verify", "[team-a]r.example.com/a")
	require.Equal(t, 1, testutil.CollectAndCount(h.metrics.imagesOverloaded), "with the first image of a namespace")
	h.metrics.forget("team-a")
	require.Equal(t, 0, testutil.CollectAndCount(h.metrics.imagesOverloaded))
	require.Equal(t, 0, testutil.CollectAndCount(h.metrics.images))
}

func TestNoMoreThanAFewScrapesAreAnsweredAtATime(t *testing.T) {
	held, release := make(chan struct{}, maxScrapes), make(chan struct{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slow"}, func() float64 {
		held <- struct{}{}
		<-release
		return 0
	}))
	w := serve(t, byRepository, func(o *Options) { o.Metrics = registry })
	url := "http://" + w.server.MetricsAddress() + "/metrics"
	codes := make(chan int, maxScrapes)
	for range maxScrapes {
		go func() {
			code, _ := get(t, url)
			codes <- code
		}()
	}
	for range maxScrapes {
		<-held
	}
	code, _ := get(t, url)
	require.Equal(t, http.StatusServiceUnavailable, code)
	close(release)
	for range maxScrapes {
		require.Equal(t, http.StatusOK, <-codes)
	}
}

func TestMetricsAreServedAsOpenMetricsToThoseThatAsk(t *testing.T) {
	w := serve(t, byRepository, nil)
	w.server.handler.metrics.Observe(context.Background(), Observation{Endpoint: "verify", Outcome: RequestAnswered,
		Keys: []KeyObservation{{Namespace: verify.Namespace("team-a"), Answer: verify.AnswerAllowed}}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.server.MetricsAddress()+"/metrics", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Contains(t, response.Header.Get("Content-Type"), "application/openmetrics-text")
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "# TYPE landwaiter_provider_images counter\n")
	require.Contains(t, string(body), "\n# EOF\n")
}

func TestWhereVerdictsComeFromIsCountedByNamespace(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	work := []verify.Stage{{Name: "resolve"}, {Name: "list"}}
	observed := func(namespace verify.Namespace, took time.Duration, result verify.Result) KeyObservation {
		result.Verdict = judged.As(policy.Allowed, result.Verdict)
		return KeyObservation{Namespace: namespace, Answer: verify.AnswerAllowed, Duration: took, Result: &result}
	}
	undecided := KeyObservation{Namespace: "team-a", Answer: verify.AnswerUndecided, Duration: time.Second,
		Result: &verify.Result{Verdict: judged.As(policy.Undecided, policy.Verdict{})}}
	repeated := observed("team-a", time.Minute, verify.Result{Stages: work})
	repeated.Repeated = true
	h.metrics.Observe(t.Context(), Observation{Endpoint: "verify", Outcome: RequestAnswered, Keys: []KeyObservation{
		observed("team-a", 0, verify.Result{Cached: true}),
		observed("team-a", time.Second, verify.Result{Cached: true, Stages: []verify.Stage{{Name: "resolve"}, {Name: verify.StageRedis}}}),
		observed("team-a", time.Second, verify.Result{Cached: true, Stages: []verify.Stage{{Name: "resolve"}}}),
		observed("team-a", 3*time.Second, verify.Result{Stages: work}), repeated, undecided,
		observed("team-b", 0, verify.Result{}),
	}})
	require.NoError(t,
		testutil.CollectAndCompare(h.metrics.verdicts, strings.NewReader(`# HELP landwaiter_provider_verdicts_total Verdicts by where they came from.
# TYPE landwaiter_provider_verdicts_total counter
landwaiter_provider_verdicts_total{namespace="team-a",outcome="memory"} 2
landwaiter_provider_verdicts_total{namespace="team-a",outcome="redis"} 1
landwaiter_provider_verdicts_total{namespace="team-a",outcome="verified"} 1
landwaiter_provider_verdicts_total{namespace="team-b",outcome="rules"} 1
`)))
	require.NoError(t,
		testutil.CollectAndCompare(h.metrics.worked,
			strings.NewReader(`# HELP landwaiter_provider_image_duration_seconds Time to decide about images, or to pin them, that were not known in memory.
# TYPE landwaiter_provider_image_duration_seconds summary
landwaiter_provider_image_duration_seconds_sum{namespace="team-a"} 6
landwaiter_provider_image_duration_seconds_count{namespace="team-a"} 4
`)))
	h.metrics.forget("team-a")
	require.Equal(t, 1, testutil.CollectAndCount(h.metrics.verdicts))
	require.Equal(t, 0, testutil.CollectAndCount(h.metrics.worked))
}

func TestImagesAreTimedByTheClusterQuotaOfTheirNamespace(t *testing.T) {
	h := testHandler(byRepository, pinning, func(o *Options) {
		o.Quota = func(namespace verify.Namespace) string {
			name, has := strings.CutPrefix(string(namespace), "has-")
			if !has {
				return ""
			}
			return name
		}
	})
	observe := func(namespace string, took time.Duration) {
		h.metrics.Observe(t.Context(), Observation{Endpoint: "verify", Outcome: RequestAnswered,
			Keys: []KeyObservation{{Namespace: verify.Namespace(namespace), Answer: verify.AnswerAllowed, Duration: took}}})
	}
	for range 99 {
		observe("has-gold", 3*time.Millisecond)
	}
	observe("has-gold", 3*time.Second)
	observe("made-up-1", 3*time.Second)
	observe("made-up-2", 3*time.Second)
	observe("has-gold", 0) // known in memory
	count := func(quota string, below float64) uint64 {
		var m dto.Metric
		require.NoError(t, h.metrics.workedByQuota.WithLabelValues(quota).(prometheus.Histogram).Write(&m))
		for _, bucket := range m.GetHistogram().GetBucket() {
			if bucket.GetUpperBound() == below {
				return bucket.GetCumulativeCount()
			}
		}
		return m.GetHistogram().GetSampleCount()
	}
	require.EqualValues(t, 99, count("gold", .005))
	require.EqualValues(t, 100, count("gold", 0))
	require.EqualValues(t, 0, count(noQuota, .005), "a slow namespace without a quota is not in the times of gold")
	require.EqualValues(t, 2, count(noQuota, 0))

	for i := range 2 * maxQuotaLabels {
		observe(fmt.Sprintf("has-%d", i), time.Second)
	}
	require.Equal(t, maxQuotaLabels+2, testutil.CollectAndCount(h.metrics.workedByQuota), "the first ones, those without, and all others together")
	require.EqualValues(t, maxQuotaLabels+1, count(otherLabel, 0))
	h.metrics.forget("has-gold")
	require.EqualValues(t, 100, count("gold", 0), "a quota is no namespace's")
}

func TestTheServiceSaysWhatMetricsCallANamespace(t *testing.T) {
	h := testHandler(byRepository, pinning, func(o *Options) {
		o.NamespaceLabel = func(namespace verify.Namespace) string {
			if namespace == "team-a" {
				return "team-a"
			}
			return "other"
		}
	})
	ask(t, h, "/v1/verify", "[team-a]r.example.com/a", "[made-up-1]r.example.com/a", "[made-up-2]r.example.com/a")
	require.Equal(t, 2, testutil.CollectAndCount(h.metrics.images))
	require.InDelta(t, 2, testutil.ToFloat64(h.metrics.images.WithLabelValues("other", "allowed", "admission")), 0)
}
