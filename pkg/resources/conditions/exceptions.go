package conditions

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// maxForeseen bounds the pairs of image and namespace for which the rules alone are evaluated.
const maxForeseen = 256

// exception returns the condition Effective of an exception that has not ended. [Report.EffectiveAt]
// handles the end.
func (c conditions) exception(source policy.ObjectRef, broken bool) Condition {
	x := exceptionNamed(c.own, source)
	if broken || x == nil {
		return Condition{Reason: policy.ReasonNotInForce, Message: "it allows nothing; see the condition Ready"}
	}
	until := c.ends(source).UTC().Format(time.RFC3339)
	switch {
	case x.Delegates != nil:
		return Condition{True: true, Reason: policy.ReasonInForce, Message: "it delegates until " + until + ", and allows nothing itself"}
	case source.Namespace == "" && !c.usage.Applies[source]:
		return Condition{Reason: policy.ReasonAppliesNowhere, Message: "none of its namespaces exists"}
	case source.Namespace == "":
		where := compile.JoinNames(x.Namespaces)
		if x.Everywhere {
			where = "every namespace"
		}
		return c.lifting(x, fmt.Sprintf("it allows its images until %s in %s", until, where))
	}
	return c.lifting(x, fmt.Sprintf("it allows its images until %s, as far as %s%s", until, c.delegators(source), c.members(x)))
}

// lifting returns the condition of an exception that is in force, and says how mandatory policies limit
// it.
func (c conditions) lifting(x *compile.Exception, message string) Condition {
	holding, lifts := x.Holding(c.snapshot.Cluster().Mandatory, c.snapshot.For(verify.Cluster).Unsatisfiable)
	names := compile.JoinNames(compile.MapSlice(holding, policy.ObjectRef.String))
	needs := "it needs overrideMandatory"
	if x.Source.Namespace != "" {
		needs += ", which only a ClusterException can have"
	}
	switch {
	case c.allowedAnyway(x):
		return Condition{Reason: policy.ReasonUnused, Message: "it lifts nothing, because policies allow all of its images without it; delete it"}
	case x.OverrideMandatory:
		return Condition{True: true, Reason: policy.ReasonInForce, Message: message + ", even if a mandatory policy denies them"}
	case len(holding) == 0:
		return Condition{True: true, Reason: policy.ReasonInForce, Message: message + "; mandatory policies hold"}
	case lifts:
		return Condition{True: true, Reason: policy.ReasonMandatoryHolds, Message: message + "; it does not override mandatory policies (" +
			names + "): " + needs}
	}
	return Condition{Reason: policy.ReasonMandatoryHolds, Message: "it allows nothing, because mandatory policies deny all of its images (" +
		names + "): " + needs}
}

// allowedAnyway reports whether the rules alone allow each image of x in every namespace where x may count. It
// returns false for more than [maxForeseen] images.
func (c conditions) allowedAnyway(x *compile.Exception) bool {
	images, namespaces := x.Named(), c.counts(x)
	if n := len(images) * len(namespaces); n == 0 || n > maxForeseen {
		return false
	}
	for _, namespace := range namespaces {
		config := c.snapshot.For(namespace)
		for _, ref := range images {
			if said, known := config.Foreseen(ref); !known || said != policy.Allowed {
				return false
			}
		}
	}
	return true
}

// counts returns the namespaces where x may count.
func (c conditions) counts(x *compile.Exception) []verify.Namespace {
	var namespaces []verify.Namespace
	switch {
	case x.Everywhere:
		namespaces = c.snapshot.Namespaces()
	case x.Source.Namespace != "":
		namespaces = []verify.Namespace{c.own.Objects.Namespace}
		if c.view.Tenant != "" && c.view.Home == c.own {
			namespaces = append(namespaces, c.snapshot.Candidates()[c.view.Tenant]...)
		}
	default:
		for _, name := range x.Namespaces {
			namespaces = append(namespaces, verify.Namespace(name))
		}
	}
	return slices.DeleteFunc(slices.Clone(namespaces), func(n verify.Namespace) bool { return n == verify.Cluster || !c.snapshot.Has(n) })
}

// members says where an Exception in a Tenant's home namespace counts, "" for others.
func (c conditions) members(x *compile.Exception) string {
	home := c.own.Objects.Namespace
	if c.view.Tenant == "" || c.view.Home != c.own {
		return ""
	}
	covered := map[string]bool{string(home): true}
	for _, by := range c.snapshot.Delegations(home, home, c.view.Tenant) {
		if !x.Fits(by.Delegates) {
			continue
		}
		if slices.Contains(by.Delegates.Tenants, c.view.Tenant) {
			return ", in the namespaces of Tenant " + c.view.Tenant
		}
		for _, name := range by.Delegates.Namespaces {
			if holder := c.snapshot.Tenants().Holder(name); holder != nil && holder.Name == c.view.Tenant && c.snapshot.Has(verify.Namespace(name)) {
				covered[name] = true
			}
		}
	}
	where := ", in " + compile.JoinNames(slices.Sorted(maps.Keys(covered)))
	if others := len(c.snapshot.Candidates()[c.view.Tenant]) - len(covered); others > 0 {
		where += fmt.Sprintf("; nothing is delegated to the other namespaces of Tenant %s (%d), so it does not count there: ask a cluster "+
			"admin to name the Tenant in delegate.tenants", c.view.Tenant, others)
	}
	return where
}

func exceptionNamed(l *resolve.Level, source policy.ObjectRef) *compile.Exception {
	i := slices.IndexFunc(l.Exceptions, func(x *compile.Exception) bool { return x.Source == source })
	if i < 0 {
		return nil
	}
	return l.Exceptions[i]
}

// delegators names the ClusterExceptions that delegate an Exception to its namespace.
func (c conditions) delegators(source policy.ObjectRef) string {
	var names []string
	x, namespace := exceptionNamed(c.own, source), verify.Namespace(source.Namespace)
	for _, by := range c.snapshot.Delegations(namespace, namespace, c.view.Tenant) {
		if x.Fits(by.Delegates) {
			names = append(names, by.Source.String())
		}
	}
	if len(names) == 1 {
		return names[0] + " delegates them"
	}
	return "one of these delegates them: " + compile.JoinNames(names)
}

// ends returns when an exception ends, zero for other resources and for an exception that is
// not in force.
func (c conditions) ends(source policy.ObjectRef) time.Time {
	x := exceptionNamed(c.own, source)
	switch {
	case x == nil:
		return time.Time{}
	case source.Namespace == "":
		return x.Until
	}
	namespace := verify.Namespace(source.Namespace)
	found, err := x.DelegatedBy(c.snapshot.Delegations(namespace, namespace, c.view.Tenant), namespace)
	if err != nil {
		return time.Time{}
	}
	last := slices.MaxFunc(found, func(a, b *compile.Exception) int { return a.Until.Compare(b.Until) }).Until
	if last.After(x.Until) {
		return x.Until
	}
	return last
}

// EffectiveAt returns the condition Effective at a moment. An exception that has ended is not
// in force.
func (r Report) EffectiveAt(now time.Time) Condition {
	if r.Until.IsZero() || now.Before(r.Until) {
		return r.Effective
	}
	return Condition{Reason: policy.ReasonExpired,
		Message: fmt.Sprintf("it expired at %s and allows nothing; delete it", r.Until.UTC().Format(time.RFC3339))}
}
