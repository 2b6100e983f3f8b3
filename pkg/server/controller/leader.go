package controller

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// leaseName is the name of the leader's Lease.
const leaseName = "landwaiter"

// runDuties runs the duties until ctx ends: always without leader election, otherwise while
// this replica holds the lease. A replica without the lease still compiles and serves.
func (c *Controller) runDuties(ctx context.Context) error {
	if !c.synced(ctx) {
		return nil // ctx ended before the cache synced
	}
	if !c.options.LeaderElection {
		c.duties(ctx)
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this replica: %w", err)
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.options.OwnNamespace, Name: leaseName},
		Client:     c.clients.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}
	for ctx.Err() == nil {
		if err := c.term(ctx, lock); err != nil {
			return err
		}
	}
	return nil
}

// term waits for the lease and runs the duties until it is lost.
func (c *Controller) term(ctx context.Context, lock resourcelock.Interface) error {
	// The elector would release the lease as soon as ctx ends, so it has a separate context, which
	// ends after the duties.
	elected, giveBack := context.WithCancel(context.WithoutCancel(ctx))
	defer giveBack()
	defer context.AfterFunc(ctx, func() {
		defer time.AfterFunc(renewDeadline, giveBack).Stop() // a hanging duty must not keep it
		c.leading.Lock()
		defer c.leading.Unlock()
		giveBack()
	})()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true, Name: leaseName,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				c.leading.Lock() // the duties of a lost term may still be ending
				defer c.leading.Unlock()
				leading, end := context.WithCancel(leading)
				defer end()
				defer context.AfterFunc(ctx, end)()
				c.log.WithField("identity", lock.Identity()).Info("this replica writes statuses")
				c.duties(leading)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("prepare leader election: %w", err)
	}
	elector.Run(elected)
	return nil
}

// duties runs the duties of the leader. A duty that fails is restarted.
func (c *Controller) duties(ctx context.Context) {
	duties := []Duty{{"write statuses", c.writeStatuses}}
	if c.options.OperatedRole != "" {
		duties = append(duties, Duty{"list the Tenants for the operator", c.listOperated})
	}
	var running sync.WaitGroup
	for _, duty := range append(duties, c.options.Duties...) {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) {
				if err := duty.Run(ctx); err != nil && ctx.Err() == nil {
					c.log.WithError(err).Errorf("cannot %s, will try again", duty.Name)
				}
			}, retryPause)
		})
	}
	running.Wait()
}

const (
	// operatedManager applies the rules of the role.
	operatedManager = "landwaiter-operated-tenants"
	// operatedInterval is how often the rules are applied without a change of Tenants, in case
	// somebody else changed them.
	operatedInterval = time.Minute
)

// listOperated keeps the names of all Tenants in a ClusterRole, until ctx ends. A guardrail
// cannot check whether an object exists, but it can check a permission: so an account other than
// the operator's grants the operator a permission that names each Tenant.
func (c *Controller) listOperated(ctx context.Context) error {
	watched := &metav1.PartialObjectMetadata{}
	watched.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.KindTenant))
	informer, err := c.manager.GetCache().GetInformer(ctx, watched)
	if err != nil {
		return fmt.Errorf("watch Tenants: %w", err)
	}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // it must be read already
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, DeleteFunc: func(any) { notify() },
		UpdateFunc: func(old, now any) {
			before, ok := old.(*metav1.PartialObjectMetadata)
			after, too := now.(*metav1.PartialObjectMetadata)
			if !ok || !too || before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) {
				notify()
			}
		}})
	if err != nil {
		return fmt.Errorf("watch Tenants: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }() // fails only if the informer has ended
	for again := time.Tick(operatedInterval); ; {
		if err := c.applyOperated(ctx); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// operatedRules list Tenants by the operator's permitted actions: operate while they exist,
// end once they are deleted, and purge if their namespaces are deleted, too.
func operatedRules(tenants []unstructured.Unstructured) []any {
	names := map[string][]string{}
	for i := range tenants {
		name := tenants[i].GetName()
		if tenants[i].GetDeletionTimestamp() == nil {
			names["operate"] = append(names["operate"], name)
			continue
		}
		names["end"] = append(names["end"], name)
		if namespaceReclaimPolicy, _, _ := unstructured.NestedString(tenants[i].Object, "spec",
			"namespaceReclaimPolicy"); namespaceReclaimPolicy == string(v1beta1.NamespaceReclaimPolicyDeleteCreated) {
			names["purge"] = append(names["purge"], name)
		}
	}
	rules := []any{}
	for _, verb := range []string{"operate", "end", "purge"} {
		if len(names[verb]) == 0 {
			continue // a rule without names would cover all of them
		}
		slices.Sort(names[verb])
		listed := make([]any, len(names[verb]))
		for i, name := range names[verb] {
			listed[i] = name
		}
		rules = append(rules,
			map[string]any{"apiGroups": []any{v1beta1.Group}, "resources": []any{"tenants"}, "resourceNames": listed, "verbs": []any{verb}})
	}
	return rules
}

// applyOperated writes the rules. They only serve as a list: no API has their verbs.
func (c *Controller) applyOperated(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	// Not as typed Tenants: one that Go cannot decode must not freeze the whole list.
	tenants := &unstructured.UnstructuredList{}
	tenants.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.KindTenant + "List"))
	if err := c.manager.GetAPIReader().List(ctx, tenants); err != nil {
		return fmt.Errorf("list Tenants: %w", err)
	}
	rules := operatedRules(tenants.Items)
	role := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": c.options.OperatedRole}, "rules": rules}}
	if err := c.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(role), client.FieldOwner(operatedManager),
		client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ClusterRole %s: %w", c.options.OperatedRole, err)
	}
	return nil
}
