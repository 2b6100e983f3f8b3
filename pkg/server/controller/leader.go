package controller

import (
	"context"
	"fmt"
	"os"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is the name of the leader's Lease.
const leaseName = "landwaiter"

// runDuties runs the duties until ctx ends: always without leader election, otherwise
// while this replica holds the lease. A replica without the lease still compiles and
// serves.
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
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true, Name: leaseName,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				c.leading.Lock() // the duties of a lost term may still be ending
				defer c.leading.Unlock()
				c.log.WithField("identity", lock.Identity()).Info("this replica writes statuses")
				c.duties(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("prepare leader election: %w", err)
	}
	elector.Run(ctx)
	return nil
}

// duties runs the duties of the leader. A duty that fails is restarted.
func (c *Controller) duties(ctx context.Context) {
	duties := []Duty{{"write statuses", c.writeStatuses}}
	if c.options.OperatedRole != "" {
		duties = append(duties, Duty{"list the Tenants for the operator", c.listOperated})
	}
	if c.options.ShowRules {
		duties = append(duties, Duty{"show the rules that apply in namespaces of Tenants", c.showRules})
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
