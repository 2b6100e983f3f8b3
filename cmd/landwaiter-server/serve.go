package main

import (
	"context"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/bombsimon/logrusr/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/pkg/server/serving"
	"github.com/landwaiter/landwaiter/pkg/server/tracing"
)

// serveFlags are the flags of serve that configure verification.
type serveFlags struct {
	program.Service

	configDir string
}

// open returns the service of a server, which looks up unknown namespaces with finder.
func (f *serveFlags) open(finder service.Finder, log *logrus.Logger) (*service.Service, error) {
	options, err := f.Complete()
	if err != nil {
		return nil, err
	}
	if options.Redis != nil {
		options.Redis.Changed = func(doing string, err error) {
			if err != nil {
				log.WithError(err).Warnf("Redis: %s fail and are skipped until it answers again", doing)
				return
			}
			log.Infof("Redis: %s succeed again", doing)
		}
	}
	return service.New(options, finder)
}

// followRedis applies changes in the files of the connection to Redis to s, until ctx ends.
func (f *serveFlags) followRedis(ctx context.Context, s *service.Service, log *logrus.Logger) {
	f.Redis.Follow(ctx, 0, func(connection cache.Connection) error {
		err := s.UseRedis(ctx, connection)
		if err == nil {
			log.Info("Redis: the connection uses changed files")
		}
		return err
	}, func(err error) {
		log.WithError(err).Warn("Redis: changed files cannot be used; the connection stays as it is")
	})
}

func newServe(shared *sharedFlags) *cobra.Command {
	var flags serveFlags
	var cluster clusterFlags
	var options provider.Options
	var identity identityFlags
	var traces traceFlags
	cmd := &cobra.Command{
		Use:   "serve [--config-dir DIR]",
		Short: "Answer Gatekeeper's external data requests over HTTPS",
		Long: `Serve answers OPA Gatekeeper's external data requests (v1beta1) over mutual TLS. It reads resources from
the Kubernetes API of its cluster, or of the cluster in KUBECONFIG, or from files (--config-dir). It applies
changed resources and certificates without a restart. docs/reference/server.md explains flags with named
values. On SIGTERM or SIGINT, it finishes the requests in flight and exits.`,
		Example: `  landwaiter-server serve --config-dir /etc/landwaiter --tls-dir /etc/tls --client-ca gatekeeper-ca.crt
  landwaiter-server serve --own-namespace landwaiter-system --tls-secret landwaiter-tls --rotate-certificates \
    --provider-object landwaiter-verdict=/v1/verdict --client-ca secret/gatekeeper-system/gatekeeper-webhook-server-cert`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := shared.logger(cmd)
			if err != nil {
				return err
			}
			served, err := identity.options()
			if err != nil {
				return err
			}
			cluster.take(shared)
			options.HealthAddress, options.MetricsAddress = shared.healthAddress, shared.metricsAddress
			if err := cluster.check(flags.configDir, served, options); err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return err
			}
			useTwoThreads()
			flags.Options.External.UnsafePod = true
			options.Metrics = prometheus.NewRegistry()
			stop, err := traces.start(cmd.Context(), log, &options)
			if err != nil {
				return err
			}
			defer stop()
			if flags.configDir == "" {
				return cluster.serve(cmd.Context(), flags, options, served, log)
			}
			return serve(cmd.Context(), flags, options, served, log)
		},
	}
	cmd.Flags().StringVar(&flags.configDir, "config-dir", "", "directory with resources as YAML or JSON files, instead of the Kubernetes API")
	flags.RegisterNetwork(cmd.Flags())
	registerServerFlags(cmd.Flags(), &options)
	identity.register(cmd.Flags())
	flags.Redis.Register(cmd.Flags())
	registerEngineFlags(cmd.Flags(), &flags.Options, &cluster.warmUpInterval)
	flags.Exceptions.Register(cmd.Flags())
	cluster.register(cmd.Flags())
	traces.register(cmd.Flags())
	return cmd
}

// useTwoThreads makes Go use two threads on a single processor, as in a container with one. While
// one of them checks evidence, the kernel lets the other one answer: Go itself would poll for
// requests only once in ten milliseconds.
func useTwoThreads() {
	if runtime.GOMAXPROCS(0) == 1 && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2)
	}
}

// registerServerFlags declares the flags of the HTTPS edge.
func registerServerFlags(f *pflag.FlagSet, options *provider.Options) {
	f.StringVar(&options.Address, "address", ":8443", "HTTPS address for Gatekeeper")
	f.StringSliceVar(&options.ClientNames, "client-name", nil, "DNS name that a client certificate must have (repeatable; empty: any "+
		"certificate that the client CA signed)")
	f.BoolVar(&options.InsecureNoClientAuth, "insecure-no-client-auth", false, "accept clients without a client certificate")
	f.BoolVar(&options.DropTag, "mutate-drop-tag", false, "answer mutation with repository@digest, as Ratify does, instead of "+
		"repository:tag@digest")
	program.RegisterNamed(f, "timeout", "time limits of answers and of the shutdown (repeatable)", func(v *pflag.FlagSet) {
		v.DurationVar(&options.VerifyTimeout, "verify", provider.DefaultVerifyTimeout,
			"time limit of a verify answer; keep it below Gatekeeper's webhook timeout")
		v.DurationVar(&options.MutateTimeout, "mutate", provider.DefaultMutateTimeout,
			"time limit of a mutate answer; keep it below Gatekeeper's webhook timeout")
		v.DurationVar(&options.GracePeriod, "shutdown", provider.DefaultGracePeriod, "time limit for requests in flight at shutdown")
		v.DurationVar(&options.DrainDelay, "drain", 0, "how long to accept requests after /readyz fails, so that load balancers notice "+
			"(0: not at all)")
	})
}

// registerEngineFlags declares the flags of caches and their TTLs, and those that limit a namespace's share.
func registerEngineFlags(f *pflag.FlagSet, o *service.Options, warmUp *time.Duration) {
	program.RegisterNamed(f, "limit", "limits of parallel work and memory (repeatable)", func(v *pflag.FlagSet) {
		v.IntVar(&o.Engine.InFlight, "in-flight", verify.DefaultInFlight,
			"images verified in parallel; further images get a system error immediately")
		v.IntVar(&o.Engine.InFlightPerAccount, "in-flight-per-namespace", verify.DefaultInFlightPerAccount,
			"images of one namespace verified in parallel")
		v.Int64Var(&o.CacheBytes, "cache-bytes", cache.DefaultMemoryBytes,
			"bytes of memory for cached verdicts; kept signatures and attestations may take half as much in addition")
		v.Int64Var(&o.Engine.EvidenceBytes, "evidence-bytes", verify.DefaultEvidenceBytes,
			"bytes of memory for the evidence of images in flight, a ninth of it for the evidence of one image; a namespace gets at most as much "+
				"as remains for other namespaces")
		v.IntVar(&o.Registry.PerSecond, "registry-requests-per-second", registry.DefaultPerSecond,
			"requests to registries per namespace and second, with a burst of twice as many; further requests wait")
		v.IntVar(&o.Registry.BytesPerSecond, "registry-bytes-per-second", registry.DefaultBytesPerSecond,
			"bytes read from registries per namespace and second, with a burst of the same size; further reads wait")
		v.IntVar(&o.Registry.PerHost, "registry-connections", registry.DefaultPerHost,
			"requests in flight to one registry; a namespace gets at most half of them")
	})
	program.RegisterNamed(f, "ttl", "how long a result is cached (repeatable)", func(v *pflag.FlagSet) {
		v.DurationVar(&o.Engine.PassTTL, "pass", verify.DefaultPassTTL, "how long an allowed digest is cached")
		v.DurationVar(&o.Engine.DenyTTL, "deny", verify.DefaultDenyTTL, "how long a denied digest is cached")
		v.DurationVar(&o.Engine.TagTTL, "tag", verify.DefaultTagTTL, "how long the digest of a tag is cached")
		v.DurationVar(warmUp, "warm-up", 0, "how often --warm-up and --reports re-verify the images of running pods (0: half of pass)")
	})
}

// serve answers with resources from files until ctx ends or a part fails.
func serve(ctx context.Context, flags serveFlags, options provider.Options, files serving.Options, log *logrus.Logger) error {
	s, err := flags.open(service.AnyNamespace{}, log)
	if err != nil {
		return err
	}
	defer s.Close()
	prepare(&options, s)
	files.Metrics = options.Metrics
	identity, err := serving.New(nil, log, files)
	if err != nil {
		return err
	}
	options.TLS = identity
	server, err := provider.New(s, s, log, options)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return s.Watch(ctx, flags.configDir, func(problems []resource.Problem) {
			for _, p := range problems {
				logOf(log, p.Source).WithFields(logrus.Fields{"resource": p.Source.String(), "reason": p.Reason, "problem": p.Message}).
					Warn("a resource has a problem")
			}
			log.WithField("problems", len(problems)).Info("resources are in force")
			s.Prune(server.Forget)
		})
	})
	group.Go(func() error { return program.Failed(identity.Run(ctx)) })
	group.Go(func() error { return program.Failed(s.Run(ctx)) })
	group.Go(func() error { flags.followRedis(ctx, s, log); return nil })
	group.Go(func() error { return program.Failed(server.Run(ctx)) })
	return group.Wait()
}

// logOf returns the log for lines about a resource. A file is in no namespace.
func logOf(log *logrus.Logger, source policy.ObjectRef) *logrus.Entry {
	if source.Kind == configdir.KindFile {
		return logrus.NewEntry(log)
	}
	return log.WithField("namespace", verify.Namespace(source.Namespace).Label())
}

// prepare sets the server options that depend on the service.
func prepare(options *provider.Options, s *service.Service) {
	options.Ready, options.NamespaceLabel, options.Quota = s.Set().Ready, s.NamespaceLabel, s.Quota
	options.Contact = func(namespace verify.Namespace) string {
		return strings.Join(s.Contacts(namespace, []string{""}), "; ")
	}
	s.Register(options.Metrics)
	registerProgram(options.Metrics)
}

// lastTraces bounds the wait for the collector at the end: after the grace period of
// requests, and before kubelet kills the process.
const lastTraces = 3 * time.Second

// traceFlags are the flags of traces. The standard OTEL_ variables configure the rest.
type traceFlags struct{ images bool }

func (f *traceFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.images, "trace-images", false, "include images, digests and reasons in traces")
}

// start adds the tracer that the variables configure to options, and returns the function
// that ends it.
func (f *traceFlags) start(ctx context.Context, log *logrus.Logger, options *provider.Options) (stop func(), err error) {
	tracer, err := tracing.New(ctx, log,
		tracing.Options{Version: program.Version(), Images: f.images, Getenv: os.Getenv, Metrics: options.Metrics})
	if err != nil || tracer == nil {
		return func() {}, err
	}
	// The SDK only offers one handler and one logger for the whole process.
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

// registerProgram registers the metrics of the program, of Go and of the process.
func registerProgram(metrics *prometheus.Registry) {
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "landwaiter_build_info",
			Help:        "1, with the version of this program, its commit and the version of Go as labels.",
			ConstLabels: prometheus.Labels{"version": program.Version(), "revision": program.Revision(), "goversion": runtime.Version()}},
			func() float64 { return 1 }))
}
