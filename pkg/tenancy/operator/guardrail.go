package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// ErrNoGuardrail says that the API server would let the operator's account do what the
// operator guardrails must refuse.
var ErrNoGuardrail = errors.New("the operator guardrails are not in force")

const (
	// guardrailTimeout bounds one question.
	guardrailTimeout = 10 * time.Second
	// guardrailRetry is the pause after a question that was not answered.
	guardrailRetry = 5 * time.Second
	// startTries and startPause give the API server a moment to load a guardrail that was
	// just installed, or a Tenant that was just made.
	startTries = 5
	// askedTenants is how many Tenants are looked at for one that the guardrails know.
	askedTenants = 20
	startPause   = 500 * time.Millisecond
)

// Guardrail names the ValidatingAdmissionPolicies that confine the operator's account: the first
// to namespaces of Tenants, the second to what each Tenant says. Its permissions alone would let
// it make anybody admin anywhere.
type Guardrail struct {
	// Policy is the name of the first.
	Policy string
	// Tenants is the name of the second.
	Tenants string
	// Interval is how often it is looked at while the operator runs.
	Interval time.Duration

	client client.Client
	log    *logrus.Logger
}

// Prove asks the API server, by dry runs, for what each policy must refuse. The error is
// [ErrNoGuardrail] if anything else happens than its refusal, and another one if there was no
// answer. Without Tenants the second policy has nothing to refuse.
func (f *Guardrail) Prove(ctx context.Context) error {
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
	for i := range tenants.Items {
		tenant := &tenants.Items[i]
		err := f.refuses(ctx, f.Tenants, stray(tenant), "give a namespace to a Tenant that does not have it")
		if err != nil && strings.Contains(err.Error(), unlisted) {
			continue // the first policy refuses everything for this one
		}
		if errors.Is(err, ErrNoGuardrail) && apierrors.IsNotFound(f.client.Get(ctx, client.ObjectKeyFromObject(tenant), tenant)) {
			continue // it went after it was listed
		}
		return err
	}
	return nil
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

// refuses asks for an object that a policy must refuse.
func (f *Guardrail) refuses(ctx context.Context, policy string, forbidden client.Object, it string) error {
	err := f.client.Create(ctx, forbidden, client.DryRunAll)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return fmt.Errorf("%w: the operator may %s; install the chart with guardrails.enabled=true", ErrNoGuardrail, it)
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"' "):
		return nil
	case f.byOthers(err): // which of several refusals is shown is not defined
		return fmt.Errorf("cannot see whether ValidatingAdmissionPolicy %s refuses what it must, because something else did, from which to exempt the operator's account: %w", policy, err)
	case errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsTimeout(err):
		return fmt.Errorf("%w: ValidatingAdmissionPolicy %s did not refuse what it must, but the answer was: %w", ErrNoGuardrail, policy, err)
	}
	return fmt.Errorf("ask whether the operator guardrails are in force: %w", err)
}

// byOthers reports whether somebody else's policy or a webhook refused the request.
func (f *Guardrail) byOthers(err error) bool {
	said := err.Error()
	return strings.Contains(said, "admission webhook ") ||
		strings.Contains(said, "ValidatingAdmissionPolicy '") && !strings.Contains(said, "'"+f.Policy+"' ") && !strings.Contains(said, "'"+f.Tenants+"' ")
}

// await is Prove, tried for a moment.
func (f *Guardrail) await(ctx context.Context) error {
	return retry.OnError(wait.Backoff{Steps: startTries, Duration: min(startPause, f.Interval)},
		func(err error) bool { return errors.Is(err, ErrNoGuardrail) && ctx.Err() == nil }, func() error { return f.Prove(ctx) })
}

// Start implements manager.Runnable: it returns an error, which ends the operator, once
// the operator guardrails have not been proven for an interval.
func (f *Guardrail) Start(ctx context.Context) error {
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

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that waits for
// the lease is to end as well.
func (*Guardrail) NeedLeaderElection() bool { return false }
