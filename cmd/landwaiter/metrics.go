package main

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// revision is the commit. It is set when a release is built: -ldflags "-X main.revision=…".
var revision = "" //nolint:gochecknoglobals // the linker sets it

// registerProgram registers the metrics of the program, of Go and of the process.
func registerProgram(metrics *prometheus.Registry) {
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "landwaiter_build_info", Help: "1, with the version of this program, its commit and the version of Go as labels.",
			ConstLabels: prometheus.Labels{"version": versionText(), "revision": revisionText(), "goversion": runtime.Version()}},
			func() float64 { return 1 }))
}

// revisionText returns the released commit, or the one that the Go toolchain recorded.
func revisionText() string {
	if revision != "" {
		return revision
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}
