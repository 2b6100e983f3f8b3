package main

import (
	"context"
	"time"

	"github.com/bombsimon/logrusr/v4"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"

	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/pkg/server/tracing"
)

// lastTraces bounds the wait for the collector at the end: it comes after the grace
// period of requests, and before kubelet kills the process.
const lastTraces = 3 * time.Second

// traceFlags are the flags of traces. The standard OTEL_ variables have the rest.
type traceFlags struct{ images bool }

func (f *traceFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.images, "trace-images", false, "name images, digests and reasons in traces")
}

// start adds the tracer that the variables ask for to options, and returns what ends it.
func (f *traceFlags) start(ctx context.Context, log *logrus.Logger, options *provider.Options) (stop func(), err error) {
	tracer, err := tracing.New(ctx, log, tracing.Options{Version: versionText(), Images: f.images, Metrics: options.Metrics})
	if err != nil || tracer == nil {
		return func() {}, err
	}
	// The SDK only offers a handler and a logger for the whole process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.WithError(err).Warn("OpenTelemetry failed") }))
	otel.SetLogger(logrusr.New(log))
	options.Observers = append(options.Observers, tracer)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTraces)
		defer cancel()
		if err := tracer.Close(ctx); err != nil {
			log.WithError(err).Warn("the last traces were not sent")
		}
	}, nil
}
