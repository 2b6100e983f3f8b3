package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
	"github.com/landwaiter/landwaiter/pkg/server/enforcement"
	"github.com/landwaiter/landwaiter/pkg/server/report"
	"github.com/landwaiter/landwaiter/pkg/server/warm"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/generated"
)

// scrape returns the metrics of a server by name.
func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	return families
}

// scraped returns every metric that a `landwaiter-server serve` exports after requests of all
// sorts, those of the warm-up included, which needs a cluster.
func scraped(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, fixture.NewSealKey(), 0o600))
	metrics := freePort(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1") // for the metrics of traces
	s := startServe(t, "--metrics-address", metrics, "--redis-url", "redis://"+miniredis.RunT(t).Addr(), "--redis-key-file", key)
	tenant := "{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: a}, spec: {homeNamespace: team-a}}\n"
	require.NoError(t, os.WriteFile(filepath.Join(s.resources, "tenant.yaml"), []byte(tenant), 0o600))
	s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Allowed, "")
	s.becomes(t, "team-b", "shared/app:v1", gatekeeper.Denied, "")
	exception := fmt.Sprintf("apiVersion: landwaiter.dev/v1beta1\nkind: ClusterException\nmetadata: {name: x}\nspec: {images: [%s/shared/app], namespaces: "+
		"[batch], until: %q, reason: OPS-1}\n",
		s.Registry.Host(), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	require.NoError(t, os.WriteFile(filepath.Join(s.resources, "exception.yaml"), []byte(exception), 0o600))
	s.becomes(t, "batch", "shared/app:v1", gatekeeper.Allowed, "ClusterException x allows it until ")
	for path, key := range map[string]string{gatekeeper.VerifyPath: "[x", "/v1/mutate": s.Registry.Host() + "/shared/base:v1", "/nowhere": ""} {
		_, _ = s.client.Ask(t.Context(), path, key) // refusals are answers, too
	}
	var families map[string]*dto.MetricFamily
	require.Eventually(t, func() bool { // a request is counted after its answer
		families = scrape(t, metrics)
		keys := families["landwaiter_provider_images_total"]
		return keys != nil && families["landwaiter_tenant_namespace"] != nil &&
			slices.ContainsFunc(keys.GetMetric(), func(m *dto.Metric) bool { return labelOf(m, "outcome") == "invalid" })
	}, time.Minute, 10*time.Millisecond)
	warming := prometheus.NewRegistry()
	_, err := warm.New(&rest.Config{Host: "http://127.0.0.1:1"}, nobody{}, logrus.New(), warm.Options{Interval: time.Hour, Metrics: warming})
	require.NoError(t, err)
	more, err := warming.Gather()
	require.NoError(t, err)
	for _, family := range slices.Concat(more, reported(t), enforced(t)) {
		families[family.GetName()] = family
	}
	return families
}

// enforced returns the metrics of a meter that leads, in a cluster without constraints.
func enforced(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	mux := http.NewServeMux() // without constraints
	mux.HandleFunc("/api/v1/namespaces", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{},"items":[{"metadata":{"name":"team-a"}}]}`))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	metrics := prometheus.NewRegistry()
	meter, err := enforcement.New(&rest.Config{Host: server.URL}, oneNamespace{}, logrus.New(), metrics)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- meter.Lead(ctx) }()
	var families []*dto.MetricFamily
	require.Eventually(t, func() bool {
		families, err = metrics.Gather()
		return err == nil && len(families) > 0
	}, time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	return families
}

// oneNamespace is a cluster with one namespace, of a Tenant.
type oneNamespace struct{}

func (oneNamespace) Namespaces() []verify.Namespace { return []verify.Namespace{"team-a"} }
func (oneNamespace) Tenant(verify.Namespace) string { return "a" }

// reported returns the metrics of a reporter that leads and has read a report.
func reported(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" || !strings.HasSuffix(r.URL.Path, "/reports") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		results := make([]string, 0, 5)
		for _, result := range []string{"pass", "fail", "warn", "error", "skip"} {
			results = append(results,
				fmt.Sprintf(`{"policy":"x","result":%q,"resources":[{"kind":"Pod","name":"web"}],"properties":{"image":%q,"since":"2026-01-01T00:00:00Z"}}`,
					result, result))
		}
		fmt.Fprintf(w,
			`{"apiVersion":"openreports.io/v1alpha1","kind":"ReportList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"landwaiter-running","namespace":"team-a","labels":{"landwaiter.dev/report":"running"},
			"managedFields":[{"manager":"landwaiter"}]},"source":"landwaiter","results":[%s]}]}`, strings.Join(results, ","))
	}))
	defer server.Close()
	metrics := prometheus.NewRegistry()
	log := logrus.New()
	log.SetOutput(io.Discard)
	reporter, err := report.New(&rest.Config{Host: server.URL}, nobody{}, log, metrics)
	require.NoError(t, err)
	reporter.Attach(nobody{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reporter.Lead(ctx) }()
	var families []*dto.MetricFamily
	require.Eventually(t, func() bool {
		families, err = metrics.Gather()
		return err == nil && len(families) > 0 && len(families[0].GetMetric()) == 5
	}, time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	return families
}

// nobody is a [warm.Verifier] that is not asked.
type nobody struct{}

func (nobody) Warm(context.Context, verify.Namespace, image.Reference) verify.Result {
	return verify.Result{}
}
func (nobody) Refresh(context.Context, verify.Namespace, image.Reference) verify.Result {
	return verify.Result{}
}
func (nobody) Account(namespace verify.Namespace) verify.Account { return namespace.Account() }

func (nobody) NamespaceLabel(namespace verify.Namespace) string    { return namespace.Label() }
func (nobody) Contacts(verify.Namespace, []string) []string        { return nil }
func (nobody) Namespaces() (found []verify.Namespace, synced bool) { return nil, true }
func (nobody) Running(verify.Namespace) iter.Seq[workload.Running] {
	return func(func(workload.Running) bool) {}
}
func (nobody) Having(verify.Namespace, string, int) (of []workload.Ref) { return nil }

func labelOf(m *dto.Metric, name string) string {
	for _, label := range m.GetLabel() {
		if label.GetName() == name {
			return label.GetValue()
		}
	}
	return ""
}

// groups are metrics that a library has and documents.
func groups() map[string]string {
	return map[string]string{
		"go_":      "The Go runtime, as client_golang's Go collector has it: goroutines, threads, heap, garbage collection.",
		"process_": "The process, as client_golang's process collector has it on Linux: processor time, resident memory, open files, network bytes.",
	}
}

func groupOf(name string) string {
	for prefix := range groups() {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// metricReference returns the table of docs/reference/metrics.md.
func metricReference(families map[string]*dto.MetricFamily) string {
	b := &strings.Builder{}
	b.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if groupOf(name) != "" {
			continue
		}
		family := families[name]
		labels := map[string]bool{}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				labels["`"+label.GetName()+"`"] = true
			}
		}
		shown := "none"
		if len(labels) > 0 {
			shown = strings.Join(slices.Sorted(maps.Keys(labels)), ", ")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(family.GetType().String()), shown, generated.Cell(family.GetHelp()))
	}
	for _, prefix := range slices.Sorted(maps.Keys(groups())) {
		fmt.Fprintf(b, "| `%s…` | all | | %s |\n", prefix, groups()[prefix])
	}
	b.WriteString("\n")
	return b.String()
}

// The table is generated from a scrape, so a metric that is on one of both only fails.
func TestTheReferenceOfMetricsIsUpToDate(t *testing.T) {
	families := scraped(t)
	require.NoError(t, generated.Check("../../docs/reference/metrics.md", "<!-- generated by make generate: metrics -->", "<!-- end of generated text -->",
		metricReference(families)))
	for prefix := range groups() {
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(families)), func(name string) bool { return groupOf(name) == prefix }), prefix)
	}
}

// freeLabels have values that are not listed.
func freeLabels() []string {
	return []string{"namespace", "tenant", "registry", "kind", "quota", "version", "revision", "goversion"}
}

func TestTheValuesOfLabelsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	require.NoError(t, err)
	for name, family := range scraped(t) {
		if groupOf(name) != "" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				row := regexp.MustCompile("(?m)^\\| `"+label.GetName()+"`.*$").FindAllString(string(text), -1)
				require.NotEmpty(t, row, "docs/reference/metrics.md has no row for the label %s of %s", label.GetName(), name)
				if !slices.Contains(freeLabels(), label.GetName()) {
					require.Contains(t, strings.Join(row, "\n"), "`"+label.GetValue()+"`", "docs/reference/metrics.md does not explain %s of %s", label.GetName(), name)
				}
			}
		}
	}
}

func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	families := scraped(t)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if groupOf(name) == "" {
			_, err := expfmt.MetricFamilyToText(&text, families[name])
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(name, "landwaiter_"), name)
		}
	}
	problems, err := testutil.GatherAndLint(gathered{strings.NewReader(text.String())})
	require.NoError(t, err)
	require.Empty(t, problems)
}

// gathered is a Gatherer of text.
type gathered struct{ text io.Reader }

func (g gathered) Gather() ([]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(g.text)
	return slices.Collect(maps.Values(families)), err
}

func TestTheBuildSaysWhatItIs(t *testing.T) {
	metrics := prometheus.NewRegistry()
	registerProgram(metrics)
	families, err := metrics.Gather()
	require.NoError(t, err)
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "landwaiter_build_info" })
	require.GreaterOrEqual(t, at, 0)
	m := families[at].GetMetric()[0]
	require.InDelta(t, 1, m.GetGauge().GetValue(), 0)
	require.Equal(t, program.Version(), labelOf(m, "version"))
	require.NotEmpty(t, labelOf(m, "revision"))
	require.Regexp(t, `^go1\.`, labelOf(m, "goversion"))
}
