package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// TenantStuck is the finding about a Tenant whose deletion does not finish.
const TenantStuck = "TenantStuck"

// operator returns the container of the Deployment that should run the operator, nil if there is
// none, and whether a process holds the operator's lease: it may run elsewhere.
func (v *view) operator() (p *program, working bool) {
	working = works(v.OperatorLease, v.Now)
	for _, p := range programs(v.Landwaiters) {
		if p.runs("operate") && p.replicas > 0 {
			return p, working
		}
	}
	return nil, working
}

// works reports whether an operator holds a lease, which may be nil. An operator that stops releases it: it renews
// the lease without a holder.
func works(lease *coordinationv1.Lease, now time.Time) bool {
	return held(lease, now) && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
}

// OperatorGone reports whether nothing finishes the deletion of Tenants: no Deployment in Landwaiter's namespace
// should run the operator, and no process holds its lease, in any namespace. If the person may not read that, it
// returns false and why. An error means that the API server did not answer.
func OperatorGone(ctx context.Context, c client.Reader, namespace string, now time.Time) (gone bool, why string, err error) {
	r := &reader{client: c, ctx: ctx, into: &Inventory{Options: Options{Namespace: namespace}, Now: now, Unread: map[Source]Unread{}}}
	r.list(SourceLandwaiter, "deployments.apps", namespace, &appsv1.DeploymentList{}, into(&r.into.Landwaiters))
	if r.failed == nil {
		r.operatorLease()
	}
	if err := cmp.Or(r.failed, ctx.Err()); err != nil {
		return false, "", err
	}
	for _, source := range []Source{SourceLandwaiter, SourceOperator} {
		if unread, ok := r.into.Unread[source]; ok {
			return false, unread.Why, nil
		}
	}
	if p, working := newView(r.into).operator(); p != nil || working {
		return false, "", nil
	}
	var leases coordinationv1.LeaseList
	switch err := c.List(ctx, &leases, client.MatchingFields{"metadata.name": operatorLeaseName}); {
	case apierrors.IsForbidden(err):
		return false, "you cannot list leases.coordination.k8s.io in all namespaces", nil
	case err != nil:
		return false, "", fmt.Errorf("list the operator's leases: %w", err)
	}
	for i := range leases.Items {
		if l := &leases.Items[i]; l.Name == operatorLeaseName && works(l, now) {
			return false, "an operator runs in namespace " + l.Namespace, nil
		}
	}
	return true, "", nil
}

// stuck finds deleted Tenants that do not disappear.
func stuck(v *view, add func(resource.Finding)) {
	p, working := v.operator()
	for _, o := range v.Resources {
		tenant, ok := o.(*v1beta1.Tenant)
		if !ok || tenant.DeletionTimestamp == nil || !slices.Contains(tenant.Finalizers, v1beta1.FinalizerOperator) {
			continue
		}
		since := tenant.DeletionTimestamp.UTC()
		f := resource.Finding{ID: TenantStuck, Severity: resource.Error, Object: resource.RefOf(tenant),
			Message: "it is being deleted since " + since.Format(time.RFC3339) + ", and ",
			Why:     "its people and ServiceAccounts keep their permissions, and the Tenant stays"}
		switch takes := v.Now.Sub(since); {
		case p == nil && !working:
			f.Message += "no operator runs that finishes it"
			f.Command, f.Keep = v.command("tenant delete "+resource.ShellWord(tenant.Name)+" --yes"),
				"if the operator should run, the chart's value operator.enabled: true instead"
		case p != nil && p.known && p.ready == 0 && !working && takes > startGrace:
			f.Message += "no replica of the operator is ready"
			f.Command, f.Keep = "kubectl rollout restart "+p.String(), "if the pods fail again, find the cause with kubectl describe pods "+
				"and kubectl logs"
		case takes > deletionGrace:
			f.Severity = resource.Warning
			f.Message += "the operator has not finished"
			if c := meta.FindStatusCondition(tenant.Status.Conditions, v1beta1.ConditionProvisioned); c != nil {
				f.Message += ": " + c.Message
			}
			f.Fix = "remove what its condition Provisioned names"
		default:
			continue
		}
		add(f)
	}
}

// command returns a command of landwaiter with the flags to find the installation.
func (v *view) command(text string) string {
	if text = "landwaiter " + text; v.Namespace != "landwaiter-system" {
		text += " --landwaiter-account=" + resource.ShellWord(fmt.Sprintf("%s/%s", v.Namespace, v.account()))
	}
	return text
}

// account returns the ServiceAccount of serve, or the chart's default one.
func (v *view) account() string {
	if v.serve == nil {
		return "landwaiter"
	}
	return v.serve.account
}
