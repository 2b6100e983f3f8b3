package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/provider"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/serving"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func newServe() *cobra.Command {
	var flags engineFlags
	var cluster clusterFlags
	var options provider.Options
	var identity serving.Options
	var logLevel, logFormat string
	cmd := &cobra.Command{
		Use:   "serve [--config-dir DIR]",
		Short: "Answer Gatekeeper's external data requests over HTTPS",
		Long: `Serve answers OPA Gatekeeper's external data requests (v1beta1) over mutual TLS.

Resources come from the Kubernetes API (of the cluster that it runs in, or of
--kubeconfig), or from the files below --config-dir. Both are watched, and so are
certificates; a change takes effect without a restart.

Paths: POST /v1/verify and /v1/mutate, /v1/namespaces/{namespace}/verify and
…/mutate, and /ratify/gatekeeper/v1/verify and …/mutate. /healthz and /readyz are
served at --health-address, /metrics at --metrics-address, both over plain HTTP.

On SIGTERM or SIGINT it stops accepting, finishes what is under way, and ends.`,
		Example: `  landwaiter serve --config-dir /etc/landwaiter --tls-cert tls.crt --tls-key tls.key \
    --client-ca gatekeeper-ca.crt --client-name gatekeeper-webhook-service.gatekeeper-system.svc
  landwaiter serve --own-namespace landwaiter-system --tls-secret landwaiter-tls --rotate-certificates \
    --service-name landwaiter --provider-object landwaiter-verify \
    --client-ca-secret gatekeeper-system/gatekeeper-webhook-server-cert`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(cmd, logLevel, logFormat)
			if err != nil {
				return err
			}
			if err := cluster.check(flags.configDir, identity, options); err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return err
			}
			if flags.configDir == "" {
				return cluster.serve(cmd.Context(), flags, options, identity, log)
			}
			return serve(cmd.Context(), flags, options, identity, log)
		},
	}
	flags.register(cmd, false)
	registerServerFlags(cmd, &options, &identity)
	registerCacheFlags(cmd, &flags)
	registerShareFlags(cmd, &flags)
	cluster.register(cmd)
	cmd.Flags().StringVar(&logLevel, "log-level", "info", "debug, info, warning or error")
	cmd.Flags().StringVar(&logFormat, "log-format", "json", "json or text")
	return cmd
}

// registerServerFlags declares the flags of the HTTPS edge.
func registerServerFlags(cmd *cobra.Command, options *provider.Options, identity *serving.Options) {
	f := cmd.Flags()
	f.StringVar(&options.Address, "address", ":8443", "where to answer Gatekeeper, HTTPS")
	f.StringVar(&options.HealthAddress, "health-address", ":8081", "where to serve /healthz and /readyz (empty: nowhere)")
	f.StringVar(&options.MetricsAddress, "metrics-address", ":8082", "where to serve /metrics (empty: nowhere)")
	f.StringVar(&identity.CertificateFile, "tls-cert", "", "file with the serving certificate (PEM)")
	f.StringVar(&identity.KeyFile, "tls-key", "", "file with its key (PEM)")
	f.StringSliceVar(&identity.ClientCAFiles, "client-ca", nil, "file with CA certificates of clients: Gatekeeper's ca.crt (repeatable)")
	f.StringSliceVar(&options.ClientNames, "client-name", nil, "DNS name that a client certificate must have (repeatable; default: any that the client CA signed)")
	f.BoolVar(&options.InsecureNoClientAuth, "insecure-no-client-auth", false, "answer anybody, without asking for a client certificate")
	f.DurationVar(&options.VerifyTimeout, "verify-timeout", 0, "time for a verify answer; below Gatekeeper's webhook timeout (default 2.5s)")
	f.DurationVar(&options.MutateTimeout, "mutate-timeout", 0, "time for a mutate answer; below Gatekeeper's webhook timeout (default 800ms)")
	f.BoolVar(&options.DropTag, "mutate-drop-tag", false, "answer repository@digest to mutation, as Ratify does, instead of repository:tag@digest")
	f.DurationVar(&options.GracePeriod, "shutdown-grace", 0, "time for requests under way to finish at the end (default 10s)")
	f.DurationVar(&options.DrainDelay, "drain-delay", 0, "time to go on accepting after /readyz has begun to fail, for load balancers to notice")
}

// registerCacheFlags declares the flags of what is kept.
func registerCacheFlags(cmd *cobra.Command, flags *engineFlags) {
	f := cmd.Flags()
	flags.redis.register(cmd)
	f.Int64Var(&flags.cacheBytes, "cache-bytes", 0, "memory for cached verdicts (default 64 MiB)")
	f.DurationVar(&flags.engine.PassTTL, "pass-ttl", 0, "how long an allowed digest is kept (default 1h)")
	f.DurationVar(&flags.engine.DenyTTL, "deny-ttl", 0, "how long a denied digest is kept (default 10s)")
	f.DurationVar(&flags.engine.TagTTL, "tag-ttl", 0, "how long a tag is taken to name the same digest (default 5s)")
}

// registerShareFlags declares the flags of what a namespace may take.
func registerShareFlags(cmd *cobra.Command, flags *engineFlags) {
	f := cmd.Flags()
	f.IntVar(&flags.engine.InFlight, "in-flight", 0, "images that are worked on at a time; past that the answer is a system error at once (default 512)")
	f.IntVar(&flags.engine.InFlightPerAccount, "in-flight-per-namespace", 0, "images of one namespace that are worked on at a time (default 128)")
	f.IntVar(&flags.perSecond, "registry-requests-per-second", 0, "requests to registries that a namespace may make, twice as many at once; more wait (default 500)")
	f.IntVar(&flags.perHost, "registry-connections", 0, "requests to one registry that wait for an answer at a time; a namespace gets half of them at most (default 64)")
}

func newLogger(cmd *cobra.Command, level, format string) (*logrus.Logger, error) {
	log := logrus.New()
	log.SetOutput(cmd.ErrOrStderr())
	parsed, err := logrus.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level is %q, it must be debug, info, warning or error", level)
	}
	log.SetLevel(parsed)
	switch format {
	case "json":
		log.SetFormatter(&logrus.JSONFormatter{})
	case "text":
	default:
		return nil, fmt.Errorf("--log-format is %q, it must be json or text", format)
	}
	return log, nil
}

// serve runs until ctx ends or something cannot go on.
func serve(ctx context.Context, flags engineFlags, options provider.Options, files serving.Options, log *logrus.Logger) error {
	d, err := flags.newDesk(false)
	if err != nil {
		return err
	}
	defer d.client.Close()
	d.prepare(&options)
	files.Metrics = options.Metrics
	identity, err := serving.New(nil, log, files)
	if err != nil {
		return err
	}
	options.TLS = identity
	server, err := provider.New(d, d, log, options)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return identity.Run(ctx) })
	group.Go(func() error { return d.run(ctx, server, flags.configDir, log) })
	return group.Wait()
}

// prepare sets the options that follow from the desk.
func (d *desk) prepare(options *provider.Options) {
	options.Ready, options.Metrics = d.set.Ready, prometheus.NewRegistry()
	if d.redis != nil {
		observe(d.redis, options.Metrics)
	}
}

// run serves and watches the directory of resources.
func (d *desk) run(ctx context.Context, server *provider.Server, configDir string, log *logrus.Logger) error {
	group, ctx := errgroup.WithContext(ctx)
	report := func(problems []resource.Problem) {
		for _, p := range problems {
			log.WithFields(logrus.Fields{"resource": p.Source.String(), "namespace": p.Source.Namespace, "reason": p.Reason}).Warn(p.Message)
		}
		log.WithField("problems", len(problems)).Info("resources are in force")
	}
	d.remote.Notify(func(verify.Namespace) {
		if d.set.Ready() == nil { // else the first compilation is waiting for it
			_, problems := d.recompile()
			report(problems)
		}
	})
	group.Go(func() error {
		return configdir.Watch(ctx, configDir, func(objects resource.Objects, problems []resource.Problem) {
			limited, cancel := context.WithTimeout(ctx, firstFetch)
			defer cancel()
			_, more := d.compile(limited, objects)
			report(distinct(problems, more))
		})
	})
	group.Go(func() error { return d.work(ctx) })
	group.Go(func() error { return server.Run(ctx) })
	return group.Wait()
}
