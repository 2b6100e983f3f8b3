package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

const (
	// leaseName is the name of the operator's Lease; its Role names it too.
	leaseName = "landwaiter-operator"
	// resync is how often a Tenant is compared with the cluster without a reason.
	resync = 10 * time.Minute
	// pendingPause is the pause between two looks at finalizers.
	pendingPause = time.Second
	// retryPause and maxRetryPause bound the pause after a failure.
	retryPause    = time.Second
	maxRetryPause = time.Minute
	// workers is the number of Tenants that are reconciled concurrently.
	workers = 4
)

// RunOptions configure the operator.
type RunOptions struct {
	Options
	// OwnNamespace is the namespace of the lease.
	OwnNamespace string
	// Guardrail must be in force, or the operator does not run. InsecureNoGuardrail removes this
	// requirement.
	Guardrail           Guardrail
	InsecureNoGuardrail bool
	// HealthAddress and MetricsAddress are where it listens, "" for nowhere.
	HealthAddress, MetricsAddress string
	// Mutation configures the objects that pin tags.
	Mutation Mutation
	// LeaderElection lets one replica of several work.
	LeaderElection bool
}

// Run provisions Tenants at the API server of config, until ctx ends or an operator guardrail
// is missing.
func Run(ctx context.Context, config *rest.Config, log *logrus.Logger, options RunOptions) error {
	c, err := NewClient(config)
	if err != nil {
		return err
	}
	var guardrails *proof
	if options.InsecureNoGuardrail {
		log.Warn("the operator runs without its guardrails: its account can give anybody permissions in every namespace")
	} else {
		guardrails = &proof{Guardrail: options.Guardrail, client: c, log: log}
		if err := guardrails.await(ctx); err != nil {
			return err
		}
	}
	m, err := newManager(config, options)
	if err != nil {
		return err
	}
	options.Reader, options.Adopt, options.ClusterBindings = m.GetCache(), false, false
	r := &reconciler{engine: New(c, options.Options), client: c, reader: m.GetCache(), log: log, guardrails: guardrails}
	if options.Mutation.Pins != nil {
		r.pins = &pinner{Mutation: options.Mutation, engine: r.engine, reader: r.reader, log: log,
			changed: make(chan event.TypedGenericEvent[client.Object])}
		if err := r.pins.watch(m); err != nil {
			return err
		}
	}
	if err := r.watch(m); err != nil {
		return err
	}
	if guardrails != nil {
		if err := m.Add(guardrails); err != nil {
			return fmt.Errorf("watch the operator guardrails: %w", err)
		}
	}
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

// newManager returns a manager that caches Tenants, namespaces, and the names of Tenants'
// objects.
func newManager(config *rest.Config, options RunOptions) (manager.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	if options.LeaderElection && options.OwnNamespace == "" {
		return nil, errors.New("leader election needs --own-namespace (or --leader-elect=false for a single replica)")
	}
	platform := labels.SelectorFromSet(labels.Set{v1beta1.LabelOwner: v1beta1.OwnerPlatform})
	scoped := map[client.Object]ctrlcache.ByObject{}
	for _, object := range append(watched(), &corev1.ResourceQuota{}) {
		scoped[object] = ctrlcache.ByObject{Label: platform}
	}
	m, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: ctrlcache.Options{ByObject: scoped, DefaultTransform: reduce, NewInformer: watch.NewInformer(reduce)},
		// "0" is nowhere
		Metrics: server.Options{BindAddress: cmp.Or(options.MetricsAddress, "0")}, HealthProbeBindAddress: cmp.Or(options.HealthAddress, "0"),
		LeaderElection: options.LeaderElection, LeaderElectionID: leaseName, LeaderElectionNamespace: options.OwnNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, fmt.Errorf("serve health: %w", err)
	}
	return m, nil
}

// reduce is the transform of the cache. Of a namespace it keeps the platform's labels and
// annotations, and of other kinds' metadata the Tenant of an object: teams may write the rest.
// Of Landwaiter's resources it keeps what [pinner.pinnings] reads.
func reduce(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Namespace:
		labels, annotations, applied := saidLabels(object), saidAnnotations(object), appliedFields(object)
		resource.Strip(object)
		object.Labels, object.Annotations, object.ManagedFields = labels, annotations, applied
		object.Spec, object.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
	case *corev1.ResourceQuota:
		status := corev1.ResourceQuotaStatus{}
		if counted(object) {
			status.Hard = object.Spec.Hard
		}
		object.Status = status
		onlyTenant(object)
	case *metav1.PartialObjectMetadata:
		onlyTenant(object)
	default:
		return object, keep(object)
	}
	return object, nil
}

// keep reduces one of Landwaiter's resources. Only the existence of Stores matters, and of
// policies the settings for tags, on which their rules have no effect.
func keep(object any) error {
	if _, err := watch.Reduce(resource.Keep)(object); err != nil {
		return err
	}
	switch object := object.(type) {
	case *v1beta1.Store:
		object.Spec, object.Status = v1beta1.StoreSpec{}, v1beta1.Status{}
	case *v1beta1.VerificationPolicy:
		object.Spec.Rules, object.Status = nil, v1beta1.Status{}
	case *v1beta1.ClusterVerificationPolicy:
		object.Spec.Rules, object.Status = nil, v1beta1.Status{}
	}
	return nil
}

// onlyTenant drops all metadata that others can fill, except the Tenant.
func onlyTenant(object client.Object) {
	tenant := object.GetLabels()[v1beta1.LabelTenant]
	resource.Strip(object)
	object.SetLabels(map[string]string{v1beta1.LabelTenant: tenant})
}

// watched returns the kinds whose changes by others are corrected immediately, without
// ResourceQuotas: every pod changes the status of those, which their metadata does not show.
func watched() []client.Object {
	return []client.Object{&rbacv1.RoleBinding{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}, &networkingv1.NetworkPolicy{}}
}

// logConstructor returns the constructor of a reconciliation's logger: its errors and panics
// name the Tenant as our own lines do. A Tenant is in no namespace.
func logConstructor(log logr.Logger, controller string) func(*reconcile.Request) logr.Logger {
	log = log.WithValues("controller", controller)
	return func(request *reconcile.Request) logr.Logger {
		if request == nil || request.Name == "" {
			return log
		}
		return log.WithValues("tenant", request.Name)
	}
}

// watch turns changes into requests, which are names of Tenants.
func (r *reconciler) watch(m manager.Manager) error {
	once := true // tests run several operators in one process
	b := builder.ControllerManagedBy(m).Named("tenants").WithLogConstructor(logConstructor(m.GetLogger(), "tenants")).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: &once,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryPause, maxRetryPause)}).
		Watches(&v1beta1.Tenant{}, handler.EnqueueRequestsFromMapFunc(r.ofTenant),
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, ending()))).
		Watches(&corev1.Namespace{}, r.namespaces(), builder.WithPredicates(ofTenants()))
	for _, object := range watched() {
		b = b.WatchesMetadata(object, handler.EnqueueRequestsFromMapFunc(r.ofObject), builder.WithPredicates(changedByOthers()))
	}
	b = b.Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(r.ofObject), builder.WithPredicates(limitsChanged()))
	if r.pins != nil {
		b = b.WatchesRawSource(source.Channel(r.pins.changed, handler.EnqueueRequestsFromMapFunc(r.ofPins)))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("watch Tenants: %w", err)
	}
	return nil
}

// watch turns changes into requests, which are all equal.
func (p *pinner) watch(m manager.Manager) error {
	once := true
	b := builder.ControllerManagedBy(m).Named("mutation").WithLogConstructor(logConstructor(m.GetLogger(), "mutation")).
		WithOptions(controller.Options{SkipNameValidation: &once,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryPause, maxRetryPause)})
	soon := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(reconcile.Request{}, planPause) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { q.AddAfter(reconcile.Request{}, planPause) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(reconcile.Request{}, planPause) },
	}
	for _, object := range []client.Object{&v1beta1.Tenant{}, &v1beta1.Store{}, &v1beta1.VerificationPolicy{},
		&v1beta1.ClusterVerificationPolicy{}} {
		b = b.Watches(object, soon, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, ending())))
	}
	if err := b.Watches(&corev1.Namespace{}, soon, builder.WithPredicates(ofTenants())).Complete(p); err != nil {
		return fmt.Errorf("watch what mutation depends on: %w", err)
	}
	return nil
}
