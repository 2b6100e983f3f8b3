package watch

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rewinds detects resource versions that went back, as after etcd was restored from a backup. A watch
// from a resource version that the API server has not reached gets no events until then, and no error:
// objects from before the restore would stay in force.
type rewinds struct {
	// listed is set by a list, after which the first watch needs no check.
	listed atomic.Bool
}

// check returns an error that makes a reflector list again, if the API server is behind the resource
// version at which a watch would begin. It reads one object, from etcd.
func (r *rewinds) check(ctx context.Context, options metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error)) error {
	from, err := strconv.ParseUint(options.ResourceVersion, 10, 64)
	if r.listed.Swap(false) || err != nil || from == 0 {
		return nil //nolint:nilerr // it begins with what there is now
	}
	one, err := list(ctx, metav1.ListOptions{Limit: 1, FieldSelector: options.FieldSelector, LabelSelector: options.LabelSelector})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return fmt.Errorf("ask for the resource version: %w", err)
	case err != nil:
		// On another error, such as from a slow etcd, a reflector would read everything again.
		return apierrors.NewTooManyRequestsError("ask for the resource version: " + err.Error())
	}
	read, err := meta.ListAccessor(one)
	if err != nil {
		return fmt.Errorf("read the resource version: %w", err)
	}
	if now, err := strconv.ParseUint(read.GetResourceVersion(), 10, 64); err == nil && now < from {
		return apierrors.NewResourceExpired(fmt.Sprintf("the API server went back from resource version %d to %d: all objects are read again",
			from, now))
	}
	return nil
}
