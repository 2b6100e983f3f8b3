// Package controller keeps the snapshot in step with the Kubernetes API: it
// watches the eight kinds of resources and namespaces, and just those Secrets
// and ConfigMaps that resources name, compiles what has changed, and writes the
// status of resources. It refuses to read a Secret that no resource names, to
// read one with more rights than its namespace gave, and to let a resource that
// it cannot read look like one that is not there.
package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/external"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Options are the settings of a [Controller]. The zero value writes statuses
// without an election.
type Options struct {
	// OwnNamespace is where the lease is.
	OwnNamespace string
	// LeaderElection lets one replica of several write statuses and run Duties.
	// Every replica compiles and serves.
	LeaderElection bool
	// MaterialRole is the ClusterRole that a condition tells users to bind where
	// a right to read Secrets or ConfigMaps is missing. Default "landwaiter-material".
	MaterialRole string
	// Forget is called after a namespace is gone, for what others keep of it.
	Forget func(verify.Namespace)
	// Remote fetches what resources keep outside of the cluster; nil leaves it
	// unknown. The controller says what is wanted and is told of changes.
	Remote *external.Fetcher
	// Duties run while this replica leads.
	Duties []Duty
}

// Duty is work for one replica among several.
type Duty struct {
	// Name says what the duty does, for messages: "cannot NAME".
	Name string
	// Run works until ctx ends. It is called again if it returns before, and never
	// while an earlier call goes on.
	Run func(ctx context.Context) error
}

// Controller fills a [tenant.Set] from the Kubernetes API. It is used once: New,
// Run.
type Controller struct {
	set     *tenant.Set
	outside compile.Outside
	log     *logrus.Logger
	options Options

	config  *rest.Config
	clients kubernetes.Interface
	manager manager.Manager
	secrets *secretWatches
	reports *reports
	lookups lookups
	queue   atomic.Pointer[workqueue.TypedRateLimitingInterface[verify.Namespace]]
	started time.Time
	leading sync.Mutex // held while this replica does its duties
}

// newScheme returns the types that the controller works with.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	return scheme, nil
}

// New returns a Controller for the API server of config. It compiles with
// outside into set and logs to log.
func New(config *rest.Config, set *tenant.Set, outside compile.Outside, log *logrus.Logger, options Options) (*Controller, error) {
	if options.OwnNamespace == "" && options.LeaderElection {
		return nil, errors.New("new controller: leader election needs the own namespace")
	}
	if options.MaterialRole == "" {
		options.MaterialRole = "landwaiter-material"
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("new controller: %w", err)
	}
	c := &Controller{set: set, outside: outside, log: log, options: options, config: config, clients: clients, reports: newReports()}
	// Tenants decide how many watches come and go: those must not keep the lease,
	// statuses and look-ups waiting for their turn.
	watching, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("new controller: %w", err)
	}
	c.secrets = newSecretWatches(watching, c.enqueue)
	if options.Remote != nil {
		options.Remote.Notify(c.enqueue)
	}
	if err := c.assemble(); err != nil {
		return nil, fmt.Errorf("new controller: %w", err)
	}
	return c, nil
}

// assemble makes the manager with its one controller, whose requests are
// namespaces: any change within one asks for that one to be compiled.
func (c *Controller) assemble() error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c.manager, err = manager.New(c.config, manager.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"}, // the provider serves them
		Cache:   ctrlcache.Options{DefaultTransform: cache.TransformFunc(ctrlcache.TransformStripManagedFields())},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	once := true // several controllers of one name are fine in one process, as in tests
	reconciler, err := ctrl.NewTyped("namespaces", c.manager, ctrl.TypedOptions[verify.Namespace]{
		Reconciler: c, MaxConcurrentReconciles: 1, SkipNameValidation: &once,
	})
	if err != nil {
		return fmt.Errorf("make the reconciler: %w", err)
	}
	for _, watched := range sources(c.manager.GetCache()) {
		if err := reconciler.Watch(watched); err != nil {
			return fmt.Errorf("watch resources: %w", err)
		}
	}
	return reconciler.Watch(source.TypedFunc[verify.Namespace](c.begin))
}

// begin keeps the queue for changes of Secrets and ConfigMaps, and asks for the
// first compilation even if there is nothing to compile.
func (c *Controller) begin(_ context.Context, queue workqueue.TypedRateLimitingInterface[verify.Namespace]) error {
	c.queue.Store(&queue)
	queue.Add(verify.Cluster)
	return nil
}

// enqueue asks for a namespace to be compiled.
func (c *Controller) enqueue(namespace verify.Namespace) {
	if queue := c.queue.Load(); queue != nil {
		(*queue).Add(namespace)
	}
}

// Run works until ctx ends. It returns an error if it cannot start; later
// failures are logged and tried again, with the last snapshot in force.
func (c *Controller) Run(ctx context.Context) error {
	c.started = time.Now()
	c.secrets.grant = c.grantHint(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { c.secrets.set.Run(ctx); return nil })
	group.Go(func() error {
		if err := c.manager.Start(ctx); err != nil {
			return fmt.Errorf("watch the Kubernetes API: %w", err)
		}
		return nil
	})
	group.Go(func() error { return c.lead(ctx) })
	return group.Wait()
}
