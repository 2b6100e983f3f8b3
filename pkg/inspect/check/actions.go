package check

import (
	"cmp"
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

// Gatekeeper's actions on a pod that violates a constraint, the weakest first.
const (
	ActionNone   = "not asked"
	ActionDryRun = string(constraint.Dryrun)
	ActionWarn   = string(constraint.Warn)
	ActionDeny   = string(constraint.Deny)
)

// Actions returns the strictest action of any constraint for pods of each namespace. A constraint that
// only matches some pods of a namespace does not count. It returns nil if constraints or namespaces
// could not be read.
func (i *Inventory) Actions() map[string]string {
	for _, source := range []Source{SourceConstraints, SourceNamespaces} {
		if _, unread := i.Unread[source]; unread {
			return nil
		}
	}
	found := map[string]string{}
	for n := range i.Namespaces {
		name, has := i.Namespaces[n].Name, i.Namespaces[n].Labels
		found[name] = i.action(name, has)
	}
	return found
}

// action returns the strictest action of any constraint for the pods of a namespace with its labels.
func (i *Inventory) action(name string, labels map[string]string) string {
	mode := constraint.ModeIn(i.Constraints, name, withName(labels, name))
	if mode == constraint.None {
		return ActionNone
	}
	return string(mode)
}

// ReadStopped returns when Landwaiter last renewed its Lease, and zero if that was recent or is unknown. Unread is
// why the person may not know it, "" if they may. An error means that the API server did not answer.
func ReadStopped(ctx context.Context, c client.Reader, namespace string, now time.Time) (stopped time.Time, unread string, err error) {
	r := &reader{client: c, ctx: ctx, into: &Inventory{Unread: map[Source]Unread{}, Options: Options{Namespace: namespace}}}
	lease := r.leaseOf(SourceLease, leaseName)
	unread = r.into.Unread[SourceLease].Why
	if err := cmp.Or(r.failed, ctx.Err()); err != nil || lease == nil || lease.Spec.RenewTime == nil || held(lease, now) {
		return time.Time{}, unread, err
	}
	return lease.Spec.RenewTime.Time, "", nil
}

// ReadActions returns a function for a namespace with its labels: it returns the action as in
// [Inventory.Actions], whether the namespace is exempt from Gatekeeper, and which entries of exemptImages
// are never asked about. Without permission to read constraints, which most teams lack, only labels exempt,
// and every other action is "". An error means that the API server did not answer.
func ReadActions(ctx context.Context,
	c client.Reader) (func(name string, labels map[string]string) (action string, exempt bool, images []string), error) {
	r := &reader{client: c, ctx: ctx, into: &Inventory{Unread: map[Source]Unread{}}}
	r.foreign(SourceConstraints, "constraints.gatekeeper.sh", "v1beta1", constraintKind, "verifiedimages", &r.into.Constraints)
	if err := cmp.Or(r.failed, ctx.Err()); err != nil {
		return nil, err
	}
	_, unread := r.into.Unread[SourceConstraints]
	return func(name string, labels map[string]string) (string, bool, []string) {
		exempt := constraint.Exempt(r.into.Constraints, name, withName(labels, name))
		if unread && !exempt {
			return "", false, nil
		}
		return r.into.action(name, labels), exempt, constraint.ImagesExemptIn(r.into.Constraints, name, withName(labels, name))
	}, nil
}
