package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/cache"
	"github.com/landwaiter/landwaiter/pkg/provider"
	"github.com/landwaiter/landwaiter/pkg/service"
	"github.com/landwaiter/landwaiter/pkg/serving"
	"github.com/landwaiter/landwaiter/pkg/warm"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/generated"
)

// flagReference returns docs/reference/flags.md.
func flagReference() string {
	b := &strings.Builder{}
	b.WriteString("# Commands and flags\n\nGenerated from the program by `make generate`; `landwaiter COMMAND --help` prints the same.\n")
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if command.RunE != nil {
			describeCommand(b, command)
		}
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	for _, command := range newRoot().Commands() {
		visit(command)
	}
	return b.String()
}

func describeCommand(b *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", command.CommandPath())
	text := command.Long
	if text == "" {
		text = command.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n```\n%s\n```\n", text, command.UseLine())
	var rows []string
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name += ", `-" + flag.Shorthand + "`"
		}
		value, usage := pflag.UnquoteUsage(flag)
		initial := "none"
		switch {
		case flag.Value.Type() == "bool", flag.DefValue != "" && flag.DefValue != "[]":
			initial = "`" + flag.DefValue + "`"
		}
		if value == "" {
			value = "switch"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", name, value, initial, generated.Cell(usage)))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| flag | type | default | meaning |\n|---|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
}

func TestTheReferenceOfFlagsIsUpToDate(t *testing.T) {
	require.NoError(t, generated.Check("../../docs/reference/flags.md", "", "", flagReference()))
}

// described is what prometheus.Desc says of itself, which only its String has.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*)", unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$|^Desc\{fqName: "([^"]+)", help: "(.*)", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// only is a collector of one description, to ask a registry which collector has it.
type only struct{ desc *prometheus.Desc }

func (o only) Describe(into chan<- *prometheus.Desc) { into <- o.desc }
func (o only) Collect(chan<- prometheus.Metric)      {}

// allMetrics returns a registry with every metric that serve can have.
func allMetrics(t *testing.T) *prometheus.Registry {
	t.Helper()
	log := logrus.New()
	s, err := service.New(service.Options{Redis: &service.Redis{Connection: cache.Connection{URL: "redis://127.0.0.1:1/0"}, Keys: fixture.NewSealKey()}})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	options := provider.Options{Address: "127.0.0.1:0"}
	prepare(&options, s)
	certificates, err := gatekeeper.Issue(t.TempDir())
	require.NoError(t, err)
	options.TLS, err = serving.New(nil, log, serving.Options{CertificateFile: certificates.CertificateFile(), KeyFile: certificates.KeyFile(),
		ClientCAFiles: []string{certificates.CAFile()}, Metrics: options.Metrics})
	require.NoError(t, err)
	_, err = provider.New(s, s, log, options)
	require.NoError(t, err)
	_, err = warm.New(&rest.Config{Host: "http://127.0.0.1:1"}, s, log, warm.Options{Interval: s.PassTTL() / 2, Metrics: options.Metrics})
	require.NoError(t, err)
	return options.Metrics
}

// typeOf returns the type of the metric with desc.
func typeOf(t *testing.T, registry *prometheus.Registry, name string, desc *prometheus.Desc) string {
	t.Helper()
	var already prometheus.AlreadyRegisteredError
	require.ErrorAs(t, registry.Register(only{desc}), &already, name)
	switch already.ExistingCollector.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	families, err := registry.Gather() // a metric without labels always has a value
	require.NoError(t, err)
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	require.GreaterOrEqual(t, at, 0, name)
	return strings.ToLower(families[at].GetType().String())
}

// metricReference returns the table of docs/metrics.md.
func metricReference(t *testing.T) string {
	t.Helper()
	registry := allMetrics(t)
	descs := make(chan *prometheus.Desc, 1000) // registering needs the lock that Describe has
	registry.Describe(descs)
	close(descs)
	rows := map[string]string{}
	for desc := range descs {
		found := described.FindStringSubmatch(desc.String())
		require.NotNil(t, found, desc.String())
		found = slices.DeleteFunc(found[1:], func(s string) bool { return s == "" })
		name, help, labels := found[0], found[1], []string{}
		for _, list := range found[2:] {
			for _, label := range strings.Split(list, ",") {
				label, _, _ = strings.Cut(label, "=")
				labels = append(labels, "`"+label+"`")
			}
		}
		shown := "none"
		if len(labels) > 0 {
			shown = strings.Join(labels, ", ")
		}
		rows[name] = fmt.Sprintf("| `%s` | %s | %s | %s |", name, typeOf(t, registry, name, desc), shown, generated.Cell(help))
	}
	require.Greater(t, len(rows), 8)
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	b := &strings.Builder{}
	b.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range names {
		b.WriteString(rows[name] + "\n")
	}
	return b.String() + "\n"
}

func TestTheReferenceOfMetricsIsUpToDate(t *testing.T) {
	require.NoError(t, generated.Check("../../docs/metrics.md", "<!-- generated by make generate: metrics -->", "<!-- end of generated text -->", metricReference(t)))
}
