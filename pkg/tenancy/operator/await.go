package operator

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// pollInterval is the pause between two polls.
const pollInterval = 200 * time.Millisecond

// poll calls done until it returns true, fails, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	var failed error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (ok bool, _ error) {
		ok, failed = done()
		return ok, failed
	})
	if err != nil && failed == nil {
		return fmt.Errorf("gave up: %w", err)
	}
	return err
}

// UnfinishedError says what is not done when the time is over, or what prevents it: later, the
// cluster may have done it.
type UnfinishedError struct{ err error }

// Error says what is not done.
func (u *UnfinishedError) Error() string { return u.err.Error() }

// Unwrap returns what happened last.
func (u *UnfinishedError) Unwrap() error { return u.err }

func unfinished(format string, args ...any) error {
	return &UnfinishedError{fmt.Errorf(format, args...)}
}

// AwaitCounted waits until Kubernetes has counted ResourceQuotas, or ctx ends, and returns those
// that it has not counted by then. It returns the last error of the API server.
func (e *Engine) AwaitCounted(ctx context.Context, quotas []policy.ObjectRef) (left []policy.ObjectRef, err error) {
	left = quotas
	err = poll(ctx, func() (bool, error) {
		still, err := e.Uncounted(ctx, left)
		if err == nil {
			left = still
		}
		return err == nil && len(still) == 0, err
	})
	return left, err
}

// AwaitReady waits until the rules of Tenants are in force. It returns an [UnfinishedError] if some are
// not when ctx ends.
func (e *Engine) AwaitReady(ctx context.Context, tenants []*v1beta1.Tenant) error {
	for _, asked := range tenants {
		tenant := &v1beta1.Tenant{}
		err := poll(ctx, func() (bool, error) {
			err := e.client.Get(ctx, client.ObjectKeyFromObject(asked), tenant)
			ready := meta.FindStatusCondition(tenant.Status.Conditions, v1beta1.ConditionReady)
			return err == nil && ready != nil && ready.Status == "True" && ready.ObservedGeneration == tenant.Generation, client.IgnoreNotFound(err)
		})
		if err != nil {
			text := "nobody has written its condition Ready"
			if ready := meta.FindStatusCondition(tenant.Status.Conditions, v1beta1.ConditionReady); ready != nil {
				text = fmt.Sprintf("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
			}
			return unfinished("wait for Tenant %s: %w; %s", asked.Name, err, text)
		}
	}
	return nil
}
