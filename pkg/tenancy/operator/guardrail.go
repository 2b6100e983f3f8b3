package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// ErrNoGuardrail says that the API server would permit the operator's account something that
// the operator guardrails must refuse.
var ErrNoGuardrail = errors.New("the operator guardrails are not in force")

const (
	// guardrailTimeout bounds one request.
	guardrailTimeout = 10 * time.Second
	// guardrailRetry is the pause after a request without an answer.
	guardrailRetry = 5 * time.Second
	// startTries and startPause give the API server time to load a new guardrail, or a new
	// Tenant.
	startTries = 5
	// askedTenants is the number of Tenants that are tried to find one that the guardrails know.
	askedTenants = 20
	startPause   = 500 * time.Millisecond
)

// Guardrail names the ValidatingAdmissionPolicies that confine the operator's account: the first
// to namespaces of Tenants, the second to each Tenant's content. Its permissions alone would let
// it make anybody admin anywhere.
type Guardrail struct {
	// Policy is the name of the first.
	Policy string
	// Tenants is the name of the second.
	Tenants string
	// Interval is how often the guardrails are checked while the operator runs.
	Interval time.Duration
}

// proof asks the API server whether the guardrails are in force.
type proof struct {
	Guardrail

	client client.Client
	log    *logrus.Logger
	// both says that the last answered round proved the second policy, too.
	both atomic.Bool
}

// errUnlisted says that the first policy refuses everything about a Tenant.
var errUnlisted = errors.New("it " + waitsForList)

// all sends, as dry runs, requests that each policy must refuse. The error is [ErrNoGuardrail] if
// the API server would permit one, and another one if somebody else refused, or nobody answered.
// Without Tenants the second policy has nothing to refuse.
func (f *proof) all(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, guardrailTimeout)
	defer cancel()
	forbidden := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "landwaiter-operator-guardrail"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "landwaiter-operator-guardrail"}},
	}
	if err := f.refuses(ctx, f.Policy, forbidden, "make anybody admin in "+metav1.NamespaceSystem); err != nil {
		return err
	}
	var tenants v1beta1.TenantList
	if err := f.client.List(ctx, &tenants, client.Limit(askedTenants)); err != nil {
		return fmt.Errorf("list Tenants to see whether the operator guardrails are in force: %w", err)
	}
	proven := false
	for i := range tenants.Items {
		tenant := &tenants.Items[i]
		err := f.bounds(ctx, tenant)
		if err == nil {
			proven = true
			break
		}
		gone := func() bool {
			return apierrors.IsNotFound(f.client.Get(ctx, client.ObjectKeyFromObject(tenant), tenant))
		}
		if !errors.Is(err, errUnlisted) && !gone() {
			return err
		}
	}
	f.both.Store(proven)
	return nil
}

// of returns nil if both policies have been proven, the second one with this Tenant if no
// other one could. Until then nothing may be done for a Tenant. It returns the errors of
// [proof.all], and one for a Tenant that Landwaiter has not listed yet. A nil proof proves
// nothing and sends nothing: it is for [RunOptions.InsecureNoGuardrail].
func (f *proof) of(ctx context.Context, tenant *v1beta1.Tenant) error {
	if f == nil || f.both.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, guardrailTimeout)
	defer cancel()
	if err := f.bounds(ctx, tenant); err != nil {
		return fmt.Errorf("prove that the operator guardrails hold for Tenant %s: %w", tenant.Name, err)
	}
	f.both.Store(true)
	return nil
}

// bounds sends a request about a Tenant that the second policy must refuse.
func (f *proof) bounds(ctx context.Context, tenant *v1beta1.Tenant) error {
	err := f.refuses(ctx, f.Tenants, stray(tenant), "give a namespace to a Tenant that does not have it")
	if err != nil && strings.Contains(err.Error(), unlisted) {
		return errUnlisted
	}
	return err
}

// stray is a namespace with the label of a Tenant that does not have it.
func stray(tenant *v1beta1.Tenant) *corev1.Namespace {
	name := "a-landwaiter-operator-guardrail"
	if strings.HasPrefix(name, tenant.Spec.NamespacePrefix) && tenant.Spec.NamespacePrefix != "" {
		name = "b" + name
	}
	for name == tenant.Spec.HomeNamespace || slices.Contains(tenant.Spec.Namespaces, name) {
		name += "x"
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1beta1.AnnotationCreated: tenant.Name},
		Labels: map[string]string{v1beta1.LabelTenant: tenant.Name, onboard.LabelPodSecurity + "enforce": "restricted"}}}
}

// refuses sends an object that a policy must refuse. The proof is the policy's own message, which
// ends with its name: Kubernetes promises to show the message, but not the text around it.
func (f *proof) refuses(ctx context.Context, policy string, forbidden client.Object, it string) error {
	err := f.client.Create(ctx, forbidden, client.DryRunAll)
	switch {
	case err == nil:
		return fmt.Errorf("%w: the operator may %s; install the chart with guardrails.enabled=true", ErrNoGuardrail, it)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "(guardrail "+policy+")"):
		return nil
	}
	// Of several refusals, the API server shows one.
	return fmt.Errorf("ValidatingAdmissionPolicy %s was not seen to refuse what it must; if another policy or webhook did, exempt the "+
		"operator's account from that one: %w", policy, err)
}

// await repeats all for a moment.
func (f *proof) await(ctx context.Context) error {
	return retry.OnError(wait.Backoff{Steps: startTries, Duration: min(startPause, f.Interval)},
		func(error) bool { return ctx.Err() == nil }, func() error { return f.all(ctx) })
}

// Start implements manager.Runnable: it returns an error, which ends the operator, if the
// operator guardrails have not been proven for an interval.
func (f *proof) Start(ctx context.Context) error {
	proven, pause := time.Now(), f.Interval
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		err := f.await(ctx)
		if ctx.Err() != nil {
			err = nil // stopped
		}
		switch {
		case err == nil:
			proven, pause = time.Now(), f.Interval
		case errors.Is(err, ErrNoGuardrail):
			return err
		case time.Since(proven) > 2*f.Interval:
			return fmt.Errorf("the operator guardrails have not been proven since %s: %w", proven.Format(time.RFC3339), err)
		default:
			f.log.WithError(err).Warn("cannot see whether the operator guardrails are in force, will try again")
			pause = min(guardrailRetry, f.Interval)
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that waits for the
// lease must end as well.
func (*proof) NeedLeaderElection() bool { return false }
