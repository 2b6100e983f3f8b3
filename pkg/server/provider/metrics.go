package provider

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// metrics is an Observer that counts, and holds the other metrics of the edge. No label is an
// image reference, and labels from requests are bounded.
type metrics struct {
	requests           *prometheus.CounterVec   // endpoint, outcome
	images             *prometheus.CounterVec   // namespace, outcome, source
	duration           *prometheus.HistogramVec // endpoint
	stages             *prometheus.HistogramVec // stage, which the engine and the caches name
	inFlight           prometheus.Gauge
	panics             prometheus.Counter
	requestsOverloaded prometheus.Counter
	imagesOverloaded   *prometheus.CounterVec   // namespace
	verdicts           *prometheus.CounterVec   // namespace, outcome
	worked             *prometheus.SummaryVec   // namespace
	workedByQuota      *prometheus.HistogramVec // quota
	exceptions         *prometheus.CounterVec   // namespace, kind

	namespace, quota func(verify.Namespace) string
}

// metricPrefix is the prefix of each metric.
const metricPrefix = "landwaiter_provider_"

func newMetrics(registry *prometheus.Registry, namespace, quota func(verify.Namespace) string) *metrics {
	quotas := &labels{limit: maxQuotaLabels}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: metricPrefix + name, Help: help}
	}
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	m := &metrics{
		requests: prometheus.NewCounterVec(counter("requests_total", "Requests by outcome."), []string{"endpoint", "outcome"}),
		images: prometheus.NewCounterVec(counter("images_total",
			"Images in requests by outcome. If a request spells one image in two ways, it counts twice."),
			[]string{"namespace", "outcome", "source"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricPrefix + "request_duration_seconds",
			Help: "Time from the header of a request to its answer.", Buckets: buckets}, []string{"endpoint"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricPrefix + "stage_duration_seconds",
			Help: "Duration of one stage of verifying an image.", Buckets: buckets}, []string{"stage"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: metricPrefix + "requests_in_flight",
			Help: "Requests that are not answered yet."}),
		panics:             prometheus.NewCounter(counter("panics_total", "Panics that became a system error.")),
		requestsOverloaded: prometheus.NewCounter(counter("requests_overloaded_total", "Requests refused because too many were in flight.")),
		imagesOverloaded: prometheus.NewCounterVec(counter("images_overloaded_total",
			"Images that were not verified because too many were in flight, or too much evidence was in memory, in all or of their namespace."),
			[]string{"namespace"}),
		verdicts: prometheus.NewCounterVec(counter("verdicts_total", "Verdicts by where they came from."), []string{"namespace", "outcome"}),
		// Without quantiles it is a sum and a count: a histogram for each namespace is too many
		// series, and the platform groups namespaces by their quotas.
		worked: prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: metricPrefix + "image_duration_seconds",
			Help: "Time to decide about images, or to pin them, that were not known in memory."}, []string{"namespace"}),
		workedByQuota: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricPrefix + "quota_image_duration_seconds",
			Help:    "Time to decide about images, or to pin them, that were not known in memory, by the ClusterQuota of their namespace.",
			Buckets: buckets}, []string{"quota"}),
		exceptions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "landwaiter_exception_uses_total",
			Help: "Images that an exception or, with the kind Namespace, break-glass let in although policies deny them."},
			[]string{"namespace", "kind"}),
		namespace: namespace,
		quota: func(of verify.Namespace) string {
			if name := quota(of); name != "" {
				return quotas.capped(name)
			}
			return noQuota
		},
	}
	// Exported before the first occurrence, so that the first one is an increase.
	for _, endpoint := range endpointNames() {
		for _, outcome := range requestOutcomes() {
			m.requests.WithLabelValues(endpoint, string(outcome))
		}
	}
	registry.MustRegister(m.requests, m.images, m.duration, m.stages, m.inFlight, m.panics, m.requestsOverloaded, m.imagesOverloaded,
		m.verdicts, m.worked, m.workedByQuota, m.exceptions)
	return m
}

// certificateExpiry returns a gauge with the expiry of the serving certificate, 0 before
// there is one.
func certificateExpiry(source TLSSource) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricPrefix + "certificate_expiry_timestamp_seconds",
		Help: "When the serving certificate ends, in Unix time."}, func() float64 {
		certificate, err := source.Certificate()
		if err != nil || certificate.Leaf == nil {
			return 0
		}
		return float64(certificate.Leaf.NotAfter.Unix())
	})
}

// Observe counts a request and its images, each of which is one key.
func (m *metrics) Observe(_ context.Context, o Observation) {
	m.requests.WithLabelValues(o.Endpoint, string(o.Outcome)).Inc()
	m.duration.WithLabelValues(o.Endpoint).Observe(o.Duration.Seconds())
	if o.Outcome == RequestOverloaded {
		m.requestsOverloaded.Inc()
	}
	for i := range o.Keys {
		k := &o.Keys[i]
		namespace := m.namespace(k.Namespace)
		m.images.WithLabelValues(namespace, string(k.Answer), string(o.Source)).Inc()
		if k.Repeated {
			continue
		}
		if k.Duration > 0 {
			m.worked.WithLabelValues(namespace).Observe(k.Duration.Seconds())
			m.workedByQuota.WithLabelValues(m.quota(k.Namespace)).Observe(k.Duration.Seconds())
			m.imagesOverloaded.WithLabelValues(namespace) // exported before the first occurrence
		}
		if k.Result == nil {
			continue
		}
		if k.Result.Overloaded {
			m.imagesOverloaded.WithLabelValues(namespace).Inc()
		}
		if k.Answer == verify.AnswerByException && o.Source == SourceAdmission { // an audit lets nothing in
			m.exceptions.WithLabelValues(namespace, k.Result.Exception.Kind).Inc()
		}
		if k.Result.Decided() {
			m.verdicts.WithLabelValues(namespace, origin(k.Result)).Inc()
		}
		for _, stage := range k.Result.Stages {
			m.stages.WithLabelValues(stage.Name).Observe(stage.Duration.Seconds())
		}
	}
}

// The origins of a verdict in metrics.
const (
	fromMemory   = "memory"
	fromRedis    = "redis"
	fromEvidence = "verified"
	fromRules    = "rules" // without evidence about the image
)

// origin returns the origin of a verdict.
func origin(r *verify.Result) string {
	switch {
	case r.Cached && slices.ContainsFunc(r.Stages, func(s verify.Stage) bool { return s.Name == verify.StageRedis }):
		return fromRedis
	case r.Cached:
		return fromMemory
	case len(r.Stages) == 0:
		return fromRules
	}
	return fromEvidence
}

// forget drops the series of a namespace.
func (m *metrics) forget(namespace verify.Namespace) {
	of := prometheus.Labels{"namespace": namespace.Label()}
	for _, series := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{m.images, m.imagesOverloaded, m.verdicts, m.worked, m.exceptions} {
		series.DeletePartialMatch(of)
	}
}

// noQuota is the label of namespaces with the default quota. No ClusterQuota can have this
// name.
const noQuota = "-"

// otherLabel is the label of all values beyond a limit.
const otherLabel = "other"

// labels bounds the values of a label.
type labels struct {
	limit int
	mu    sync.Mutex
	known map[string]struct{}
}

// capped returns value if it is one of the first limit values, else "other".
func (l *labels) capped(value string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.known[value]; known {
		return value
	}
	if len(l.known) >= l.limit {
		return otherLabel
	}
	if l.known == nil {
		l.known = map[string]struct{}{}
	}
	l.known[value] = struct{}{}
	return value
}
