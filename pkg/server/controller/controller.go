// Package controller keeps the snapshot up to date with the Kubernetes API. It watches
// resources, namespaces, and the Secrets and ConfigMaps that resources reference; it
// recompiles on changes, and writes the status of resources. It never reads a Secret that no
// resource references, or uses more permissions than its namespace granted, and never treats
// an unreadable resource as a missing one.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// Options are the settings of a [Controller]. The zero value writes statuses
// without an election.
type Options struct {
	// OwnNamespace is the namespace of the lease.
	OwnNamespace string
	// LeaderElection lets one replica of several write statuses and run Duties.
	// Every replica compiles and serves.
	LeaderElection bool
	// ClusterResourceNamespace is the namespace of objects that cluster resources reference, as
	// in [resource.Objects].
	ClusterResourceNamespace string
	// ReferenceReaderRole is the ClusterRole that a condition tells users to bind if Landwaiter
	// may not read a Secret or ConfigMap. Default "landwaiter-reference-reader".
	ReferenceReaderRole string
	// OperatedRole is the ClusterRole in which the leader lists the existing Tenants, for the
	// operator guardrails. Empty means none.
	OperatedRole string
	// Forget is called after a namespace was deleted, to drop its cached data.
	Forget func(verify.Namespace)
	// External fetches external data; nil means that it is unknown. The controller sets the
	// sources, and recompiles on changes.
	External *external.Fetcher
	// Duties run while this replica leads.
	Duties []Duty
}

// Duty is work that only the leading replica does.
type Duty struct {
	// Name completes the log message "cannot NAME".
	Name string
	// Run works until ctx ends. It is called again if it returns earlier. Calls do not overlap.
	Run func(ctx context.Context) error
}

// Controller fills a [service.Set] from the Kubernetes API. Call Run once.
type Controller struct {
	set     *service.Set
	outside resolve.Outside
	log     *logrus.Logger
	options Options

	config   *rest.Config
	clients  kubernetes.Interface
	manager  manager.Manager
	reader   objectReader
	writer   client.Client
	events   events.EventRecorder
	synced   func(context.Context) bool // waits until the cache has synced
	secrets  *secretWatches
	specs    resource.Room // for the specs that the cache keeps
	api      client.Reader // reads from the API server
	schemas  *validated
	outdated outdated
	pace     pace
	notified told
	queue    atomic.Pointer[workqueue.TypedRateLimitingInterface[verify.Namespace]]
	started  time.Time
	leading  sync.Mutex // held while duties run
}

// newScheme returns the types that the controller uses.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	return scheme, nil
}

// New returns a Controller for the API server of config. It compiles objects that schemas
// accept into set with outside, and logs to log.
func New(config *rest.Config, set *service.Set, outside resolve.Outside, schemas resource.Schemas, log *logrus.Logger,
	options Options) (*Controller, error) {
	if options.OwnNamespace == "" && options.LeaderElection {
		return nil, errors.New("new controller: leader election needs the own namespace")
	}
	options.ReferenceReaderRole = cmp.Or(options.ReferenceReaderRole, "landwaiter-reference-reader")
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("new controller: %w", err)
	}
	c := &Controller{set: set, outside: outside, log: log, options: options, config: config, clients: clients, schemas: newValidated(schemas)}
	// A separate client for watches, whose number depends on tenants, so that their
	// rate limit does not delay the lease, statuses and lookups.
	watching, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("new controller: %w", err)
	}
	c.secrets = newSecretWatches(watching, c.enqueue)
	if options.External != nil {
		options.External.Notify(c.enqueue)
	}
	if err := c.assemble(); err != nil {
		return nil, fmt.Errorf("new controller: %w", err)
	}
	return c, nil
}

// assemble creates the manager with one controller. Its requests are namespaces: any
// change in a namespace recompiles that namespace.
func (c *Controller) assemble() error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c.manager, err = manager.New(c.config, manager.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"}, // the provider serves them
		Cache:   ctrlcache.Options{DefaultTransform: reduce(&c.specs), NewInformer: watch.NewInformer(reduce(&c.specs))},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	c.reader, c.writer, c.events = objectReader{c.manager.GetCache(), c.options.ClusterResourceNamespace}, c.manager.GetClient(),
		c.manager.GetEventRecorder("landwaiter")
	c.api, c.synced = c.manager.GetAPIReader(), c.manager.GetCache().WaitForCacheSync
	reconciler, err := ctrl.NewTyped("namespaces", c.manager, ctrl.TypedOptions[verify.Namespace]{
		Reconciler: c, MaxConcurrentReconciles: 1, LogConstructor: logConstructor(c.manager.GetLogger()),
		SkipNameValidation: new(true), // tests run several controllers with this name in one process
	})
	if err != nil {
		return fmt.Errorf("make the reconciler: %w", err)
	}
	for _, watched := range sources(c.manager.GetCache(), c.hold) {
		if err := reconciler.Watch(watched); err != nil {
			return fmt.Errorf("watch resources: %w", err)
		}
	}
	return reconciler.Watch(source.TypedFunc[verify.Namespace](c.onStart))
}

// logConstructor returns the constructor of a reconciliation's logger: its errors and panics
// name the namespace as our own lines do.
func logConstructor(log logr.Logger) func(*verify.Namespace) logr.Logger {
	log = log.WithValues("controller", "namespaces")
	return func(request *verify.Namespace) logr.Logger {
		if request == nil {
			return log
		}
		return log.WithValues("namespace", request.Label())
	}
}

// onStart stores the queue for changes of Secrets and ConfigMaps, and triggers the first
// compilation even if there are no resources.
func (c *Controller) onStart(_ context.Context, queue workqueue.TypedRateLimitingInterface[verify.Namespace]) error {
	c.queue.Store(&queue)
	queue.Add(verify.Cluster)
	return nil
}

// enqueue schedules a namespace for compilation.
func (c *Controller) enqueue(namespace verify.Namespace) {
	if queue := c.queue.Load(); queue != nil {
		(*queue).Add(namespace)
	}
}

// Run works until ctx ends. It returns an error if it cannot start. It logs and retries later
// failures, keeping the last snapshot meanwhile.
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
	group.Go(func() error { return c.runDuties(ctx) })
	return group.Wait()
}
