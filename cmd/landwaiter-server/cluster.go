package main

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bombsimon/logrusr/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/pkg/server/enforcement"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/pkg/server/report"
	"github.com/landwaiter/landwaiter/pkg/server/serving"
	"github.com/landwaiter/landwaiter/pkg/server/warm"
)

// clusterFlags are the flags of serve for a Kubernetes cluster.
type clusterFlags struct {
	controller     controller.Options
	warmUp         bool
	warmUpInterval time.Duration
	reports        bool

	tlsSecret, serviceName string
	rotate                 bool
	dnsNames               []string
	providerObjects        []string
	providerCA             string // file with the CA of a certificate that somebody else issues
	providerURL            string
	providerSuffix         string // of the roles that own Provider objects, empty if none does
}

func (c *clusterFlags) register(f *pflag.FlagSet) {
	o := &c.controller
	program.RegisterNamed(f, "cluster-role", "names of ClusterRoles, by use (repeatable)", func(v *pflag.FlagSet) {
		v.StringVar(&o.ReferenceReaderRole, "reference-reader", "landwaiter-reference-reader",
			"ClusterRole that grants permission to read a namespace's Secrets and ConfigMaps; for messages only")
		v.StringVar(&o.OperatedRole, "operated-tenants", "", "ClusterRole in which serve lists the existing Tenants for the operator "+
			"guardrails (empty: none)")
		v.StringVar(&c.providerSuffix, "provider-suffix", "", "suffix of the ClusterRole that owns a --provider-object: object NAME requires "+
			"ClusterRole NAME+suffix, and is deleted with this ClusterRole (empty: no owner)")
	})
	f.BoolVar(&c.warmUp, "warm-up", false, "verify images of changed workloads, and re-verify images of running pods before the "+
		"verdict expires")
	f.BoolVar(&c.reports, "reports", false, "write reports (openreports.io) and Events into each namespace; implies --warm-up")
	f.StringVar(&c.tlsSecret, "tls-secret", "", "Secret in --own-namespace with the serving certificate, instead of --tls-dir")
	f.BoolVar(&c.rotate, "rotate-certificates", false, "create and renew the certificate in --tls-secret, and write its CA into every "+
		"--provider-object")
	f.StringVar(&c.serviceName, "service-name", "landwaiter", "Service in --own-namespace through which Gatekeeper reaches this server")
	f.StringSliceVar(&c.dnsNames, "certificate-dns-name", nil, "another DNS name or IP address for the created certificate (repeatable)")
	f.StringVar(&c.providerCA, "provider-ca", "", "file with the CA to write into every --provider-object, instead of --rotate-certificates")
	f.StringSliceVar(&c.providerObjects, "provider-object", nil, "NAME=PATH of a Gatekeeper Provider object to maintain, such as "+
		"landwaiter-verdict=/v1/verdict (repeatable)")
}

// take adds the values of the flags of both commands.
func (c *clusterFlags) take(shared *sharedFlags) {
	c.controller.OwnNamespace, c.controller.LeaderElection, c.providerURL = shared.ownNamespace, shared.leaderElection, shared.providerURL
}

// check refuses contradictory flags, and a server without client authentication unless a flag
// asks for it.
func (c *clusterFlags) check(configDir string, files serving.Options, options provider.Options) error {
	noCluster := configDir != ""
	switch {
	case len(files.ClientCAFiles)+len(files.ClientCASecrets) == 0 && !options.InsecureNoClientAuth:
		return errors.New("without a client CA, any client could send requests: use --client-ca FILE, --client-ca secret/NAMESPACE/NAME, or " +
			"--insecure-no-client-auth")
	case noCluster &&
		(c.controller.OperatedRole != "" || c.tlsSecret != "" || c.rotate || c.providerCA != "" ||
			len(files.ClientCASecrets)+len(c.providerObjects) > 0):
		return errors.New("--config-dir uses no Kubernetes API: leave out --cluster-role operated-tenants, --tls-secret, --client-ca secret/…, " +
			"--rotate-certificates and --provider-object")
	case noCluster && (c.warmUp || c.reports):
		return errors.New("--warm-up and --reports require the Kubernetes API: leave out --config-dir")
	case c.warmUpInterval != 0 && !c.warmUp && !c.reports:
		return errors.New("--ttl warm-up requires --warm-up or --reports")
	case c.warmUpInterval < 0:
		return errors.New("--ttl warm-up must be positive")
	case c.tlsSecret != "" && files.CertificateFile != "":
		return errors.New("--tls-secret and --tls-dir both give the serving certificate: use one")
	case c.tlsSecret == "" && files.CertificateFile == "":
		return errors.New("the serving certificate is missing: use --tls-dir DIR or --tls-secret NAME")
	case c.tlsSecret != "" && c.controller.OwnNamespace == "":
		return errors.New("--tls-secret requires --own-namespace, the namespace of the Secret")
	case c.rotate && c.tlsSecret == "":
		return errors.New("--rotate-certificates requires --tls-secret, the Secret of the certificate")
	case c.rotate && c.providerCA != "":
		return errors.New("--rotate-certificates and --provider-ca both say which CA is in every --provider-object: use one")
	case !c.rotate && c.providerCA == "" && len(c.providerObjects) > 0:
		return errors.New("--provider-object requires the CA to write into it: use --rotate-certificates, or --provider-ca FILE")
	case c.providerCA != "" && len(c.providerObjects) == 0:
		return errors.New("--provider-ca requires --provider-object, into which it is written")
	case !noCluster && c.controller.LeaderElection && c.controller.OwnNamespace == "":
		return errors.New("leader election requires --own-namespace (or --leader-elect=false for a single replica)")
	}
	_, err := c.providers(options)
	return err
}

// providerMargin is the minimum by which Gatekeeper waits longer than an answer takes.
const providerMargin = 200 * time.Millisecond

// providers returns the Provider objects that the flags describe.
func (c *clusterFlags) providers(options provider.Options) ([]serving.Provider, error) {
	base := cmp.Or(c.providerURL, fmt.Sprintf("https://%s.%s.svc:443", c.serviceName, c.controller.OwnNamespace))
	var all []serving.Provider
	for _, text := range c.providerObjects {
		name, path, _ := strings.Cut(text, "=")
		if name == "" || !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("--provider-object is %q, it must be NAME=PATH, such as landwaiter-verdict=/v1/verdict", text)
		}
		answer := options.VerifyTimeout
		if strings.HasSuffix(path, "/mutate") {
			answer = options.MutateTimeout
		}
		p := serving.Provider{Name: name, URL: base + path, TimeoutSeconds: int64((answer + providerMargin + time.Second - 1) / time.Second)}
		if c.providerSuffix != "" {
			p.Role = name + c.providerSuffix
		}
		all = append(all, p)
	}
	return all, nil
}

// serve answers with resources from the Kubernetes API until ctx ends or a part fails.
func (c *clusterFlags) serve(ctx context.Context, f serveFlags, options provider.Options, files serving.Options, log *logrus.Logger) error {
	bridge(log)
	config, err := ownConfig()
	if err != nil {
		return err
	}
	s, err := f.openIn(config, log)
	if err != nil {
		return err
	}
	defer s.Close()
	prepare(&options, s)
	identity, rotation, err := c.identity(config, files, options, log)
	if err != nil {
		return err
	}
	meter, err := enforcement.New(config, s, log, options.Metrics)
	if err != nil {
		return err
	}
	duties := []controller.Duty{{Name: "measure the modes of namespaces", Run: meter.Lead}}
	if rotation != nil {
		duties = append(duties, controller.Duty{Name: "rotate certificates", Run: rotation.Lead})
		compiled := options.Ready
		options.Ready = func() error { return errors.Join(compiled(), rotation.Ready()) }
	}
	reporter, reporting, err := c.reporter(config, s, identity, &options, log)
	if err != nil {
		return err
	}
	var server *provider.Server
	watching := c.controller
	watching.ClusterResourceNamespace = cmp.Or(f.Options.ClusterResourceNamespace, watching.OwnNamespace)
	watching.External, watching.Duties = s.External(), append(duties, reporting...)
	watching.Forget = func(namespace verify.Namespace) {
		s.Forget(namespace)
		server.Forget(namespace)
		if reporter != nil {
			reporter.Forget(namespace)
		}
	}
	watcher, err := controller.New(config, s.Set(), s.Outside(), schema.Embedded(), log, watching)
	if err != nil {
		return err
	}
	options.TLS, options.Observers = identity, append(options.Observers, watcher)
	if server, err = provider.New(s, s, log, options); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := c.warm(ctx, group, config, s, reporter, log, options.Metrics); err != nil {
		return err
	}
	group.Go(func() error { return program.Failed(identity.Run(ctx)) })
	if rotation != nil {
		group.Go(func() error { return program.Failed(rotation.Run(ctx)) })
	}
	group.Go(func() error { return program.Failed(watcher.Run(ctx)) })
	group.Go(func() error { return program.Failed(s.Run(ctx)) })
	group.Go(func() error { f.followRedis(ctx, s, log); return nil })
	// Denials until the last connection ends are recorded too.
	noting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group.Go(func() error {
		defer stop()
		return program.Failed(server.Run(ctx))
	})
	if reporter != nil {
		group.Go(func() error { return program.Failed(reporter.Run(noting)) })
	}
	return group.Wait()
}

// reporter returns the writer of reports, which observes the answers of options, nil without --reports, and the
// leader's duties for it.
func (c *clusterFlags) reporter(config *rest.Config, s *service.Service, identity *serving.Identity, options *provider.Options,
	log *logrus.Logger) (*report.Reporter, []controller.Duty, error) {
	if !c.reports {
		return nil, nil, nil
	}
	reporter, err := report.New(config, s, log, options.Metrics)
	if err != nil {
		return nil, nil, err
	}
	options.Observers = append(options.Observers, reporter)
	facts, err := c.publisher(config, s, identity, log)
	return reporter, []controller.Duty{{Name: "write reports", Run: reporter.Lead}, {Name: "publish what check cannot see", Run: facts.Run}},
		err
}

// publisher returns the publisher of facts that check cannot see by itself.
func (c *clusterFlags) publisher(config *rest.Config, s *service.Service, identity *serving.Identity,
	log *logrus.Logger) (*report.Publisher, error) {
	clock, err := report.Clock(config, time.Now)
	if err != nil {
		return nil, err
	}
	served := func() string {
		certificate, err := identity.Certificate()
		if err != nil {
			return ""
		}
		var text []byte
		for _, one := range certificate.Certificate {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one})...)
		}
		return string(text)
	}
	return report.NewPublisher(config, c.controller.OwnNamespace, served, log, clock, s.RedisFacts, s.RegistryFacts())
}

// openIn returns the service of a server in the cluster of config.
func (f *serveFlags) openIn(config *rest.Config, log *logrus.Logger) (s *service.Service, err error) {
	if f.Options.External.Tokens, err = controller.NewTokens(config); err != nil {
		return nil, err
	}
	finder, err := controller.NewFinder(config)
	if err != nil {
		return nil, err
	}
	return f.open(finder, log)
}

// identity returns the TLS identity that the flags describe, and the manager of Provider objects, nil for
// none.
func (c *clusterFlags) identity(config *rest.Config, options serving.Options, edge provider.Options,
	log *logrus.Logger) (*serving.Identity, *serving.Rotation, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	options.Metrics = edge.Metrics
	if c.tlsSecret != "" {
		options.CertificateSecret = types.NamespacedName{Namespace: c.controller.OwnNamespace, Name: c.tlsSecret}
	}
	identity, err := serving.New(clients, log, options)
	if err != nil || !c.rotate && c.providerCA == "" {
		return identity, nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	providers, err := c.providers(edge)
	if err != nil {
		return nil, nil, err
	}
	rotation, err := serving.NewRotation(clients, objects, log, serving.RotationOptions{Secret: options.CertificateSecret,
		AuthorityFile: c.providerCA, Service: c.serviceName, Names: c.dnsNames, Served: identity.Certificate, Providers: providers})
	if err != nil {
		return nil, nil, err
	}
	identity.Await(rotation.Trusts)
	return identity, rotation, nil
}

// bridge sends the logs of the Kubernetes libraries to ours. They only offer one logger for
// the whole process.
func bridge(log *logrus.Logger) {
	logger := logrusr.New(log)
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
}

// warm verifies images before admission in group, with --warm-up or --reports, and tells the
// reporter, if there is one.
func (c *clusterFlags) warm(ctx context.Context, group *errgroup.Group, config *rest.Config, s *service.Service, reporter *report.Reporter,
	log *logrus.Logger, metrics *prometheus.Registry) error {
	if !c.warmUp && !c.reports {
		return nil
	}
	kept := s.PassTTL()
	interval := cmp.Or(c.warmUpInterval, kept/2)
	if interval >= kept {
		return fmt.Errorf("--ttl warm-up is %s, it must be shorter than pass, which is %s", interval, kept)
	}
	options := warm.Options{Interval: interval, Metrics: metrics, Generation: s.Generation}
	if reporter != nil {
		options.Sink = reporter
	}
	watcher, err := warm.New(config, s, log, options)
	if err != nil {
		return err
	}
	if reporter != nil {
		reporter.Attach(watcher)
	}
	group.Go(func() error { return program.Failed(watcher.Run(ctx)) })
	return nil
}
