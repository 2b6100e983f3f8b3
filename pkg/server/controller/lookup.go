package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

var _ service.Finder = (*Finder)(nil)

// Finder asks the API server for namespaces: once at a time per name, and not again for a
// moment if there is none.
type Finder struct {
	clients kubernetes.Interface
	flights singleflight.Group
	missing *otter.Cache[verify.Namespace, struct{}]
}

// NewFinder returns a Finder that asks the API server of config.
func NewFinder(config *rest.Config) (*Finder, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("look up namespaces: %w", err)
	}
	return newFinder(clients), nil
}

func newFinder(clients kubernetes.Interface) *Finder {
	return &Finder{clients: clients, missing: otter.Must(&otter.Options[verify.Namespace, struct{}]{
		MaximumSize: maxMissing, ExpiryCalculator: otter.ExpiryWriting[verify.Namespace, struct{}](missingFor)})}
}

// Exists asks the API server whether a namespace exists. An error means that this is
// unknown.
func (f *Finder) Exists(ctx context.Context, namespace verify.Namespace) (bool, error) {
	if _, missing := f.missing.GetIfPresent(namespace); missing {
		return false, nil
	}
	result := f.flights.DoChan(string(namespace), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
		defer cancel()
		_, err := f.clients.CoreV1().Namespaces().Get(ctx, string(namespace), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			f.missing.Set(namespace, struct{}{})
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
