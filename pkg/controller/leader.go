package controller

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is the Lease of the replica that writes.
const leaseName = "landwaiter"

// lead does the duties of one replica among several until ctx ends: at once, or
// whenever this one holds the lease. To lose the lease costs nothing but the
// writing: this replica goes on serving.
func (c *Controller) lead(ctx context.Context) error {
	if !c.manager.GetCache().WaitForCacheSync(ctx) {
		return nil // ended before it began
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

// term waits for the lease and does the duties until it is lost.
func (c *Controller) term(ctx context.Context, lock resourcelock.Interface) error {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true, Name: leaseName,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				c.leading.Lock() // a lost term may still be ending
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

// duties are what only one replica does. A duty that fails is begun again.
func (c *Controller) duties(ctx context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.again(ctx, "write statuses", c.writeStatuses) })
	for _, duty := range c.options.Duties {
		group.Go(func() error { return c.again(ctx, duty.Name, duty.Run) })
	}
	_ = group.Wait() // again returns no error
}

func (c *Controller) again(ctx context.Context, what string, duty func(context.Context) error) error {
	for ctx.Err() == nil {
		if err := duty(ctx); err != nil && ctx.Err() == nil {
			c.log.WithError(err).Errorf("cannot %s, will try again", what)
		}
		pause := time.NewTimer(retryPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
	return nil
}
