package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

var _ service.Finder = (*Controller)(nil)

// lookups limits API requests for unknown namespaces: one at a time per name, and a
// short negative cache.
type lookups struct {
	flights singleflight.Group
	mu      sync.Mutex
	missing map[verify.Namespace]time.Time
}

// Exists asks the API server whether a namespace exists. An error means that this is
// unknown.
func (c *Controller) Exists(ctx context.Context, namespace verify.Namespace) (bool, error) {
	if c.lookups.recentlyMissing(namespace, time.Now()) {
		return false, nil
	}
	result := c.lookups.flights.DoChan(string(namespace), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
		defer cancel()
		_, err := c.clients.CoreV1().Namespaces().Get(ctx, string(namespace), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			c.lookups.miss(namespace, time.Now())
			return false, nil
		}
		return err == nil, err
	})
	select {
	case <-ctx.Done():
		return false, fmt.Errorf("ask the API server: %w", ctx.Err())
	case r := <-result:
		exists, ok := r.Val.(bool)
		if r.Err != nil {
			return false, fmt.Errorf("ask the API server: %w", r.Err)
		}
		return exists && ok, nil
	}
}

func (l *lookups) recentlyMissing(namespace verify.Namespace, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, ok := l.missing[namespace]
	return ok && now.Before(until)
}

func (l *lookups) miss(namespace verify.Namespace, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missing == nil || len(l.missing) >= maxMissing {
		l.missing = map[verify.Namespace]time.Time{}
	}
	l.missing[namespace] = now.Add(missingFor)
}

// grantHint returns a function that returns the command that lets an object be read.
func (c *Controller) grantHint(ctx context.Context) func(policy.ObjectRef) string {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	subject, _ := ownSubject(ctx, c.clients) // else a placeholder
	return func(source policy.ObjectRef) string {
		return fmt.Sprintf("kubectl create rolebinding %s --namespace=%s --clusterrole=%s %s",
			c.options.ReferenceReaderRole, source.Namespace, c.options.ReferenceReaderRole, subject)
	}
}

// subjectFlag returns the flag of kubectl create rolebinding for a user.
func subjectFlag(user string) string {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		return "--serviceaccount=" + account
	}
	return "--user=" + user
}
