package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// exception returns the condition Effective of an exception that has not ended. [Report.EffectiveAt]
// says that it has.
func (c conditions) exception(source policy.ObjectRef, broken bool) Condition {
	x := c.own.exceptionNamed(source)
	if broken || x == nil {
		return Condition{Reason: policy.ReasonNotInForce, Message: "it allows nothing; see the condition Ready"}
	}
	until := c.ends(source).UTC().Format(time.RFC3339)
	switch {
	case x.delegates != nil:
		return Condition{True: true, Reason: policy.ReasonInForce, Message: "it delegates until " + until + ", and allows nothing itself"}
	case source.Namespace == "" && !c.usage.applies[source]:
		return Condition{Reason: policy.ReasonAppliesNowhere, Message: "none of its namespaces exists"}
	case source.Namespace == "":
		mandatory := "; mandatory policies hold"
		if x.overrideMandatory {
			mandatory = ", even if a mandatory policy denies them"
		}
		where := joinNames(x.namespaces)
		if x.everywhere {
			where = "every namespace"
		}
		return Condition{True: true, Reason: policy.ReasonInForce, Message: fmt.Sprintf("it allows its images until %s in %s%s", until, where, mandatory)}
	}
	return Condition{True: true, Reason: policy.ReasonInForce, Message: fmt.Sprintf("it allows its images until %s, as far as %s%s; mandatory policies hold", until, c.delegators(source), c.members(x))}
}

// members says where an Exception in a Tenant's home counts, "" for one that is elsewhere.
func (c conditions) members(x *exception) string {
	home := c.own.objects.namespace
	if c.view.tenant == "" || c.view.home != c.own {
		return ""
	}
	covered := map[string]bool{string(home): true}
	for _, by := range c.snapshot.delegations(home, home, c.view.tenant) {
		if !x.fits(by.delegates) {
			continue
		}
		if slices.Contains(by.delegates.tenants, c.view.tenant) {
			return ", in the namespaces of Tenant " + c.view.tenant
		}
		for _, name := range by.delegates.namespaces {
			if holder := c.snapshot.tenants.Holder(name); holder != nil && holder.Name == c.view.tenant && c.snapshot.Has(verify.Namespace(name)) {
				covered[name] = true
			}
		}
	}
	where := ", in " + joinNames(slices.Sorted(maps.Keys(covered)))
	if others := len(c.snapshot.candidates()[c.view.tenant]) - len(covered); others > 0 {
		where += fmt.Sprintf("; nothing is delegated to the other namespaces of Tenant %s (%d), so it does not count there: ask a cluster admin to name the Tenant in delegate.tenants", c.view.tenant, others)
	}
	return where
}

func (l *level) exceptionNamed(source policy.ObjectRef) *exception {
	i := slices.IndexFunc(l.exceptions, func(x *exception) bool { return x.source == source })
	if i < 0 {
		return nil
	}
	return l.exceptions[i]
}

// delegators says which ClusterExceptions let an Exception count in its namespace.
func (c conditions) delegators(source policy.ObjectRef) string {
	var names []string
	x, namespace := c.own.exceptionNamed(source), verify.Namespace(source.Namespace)
	for _, by := range c.snapshot.delegations(namespace, namespace, c.view.tenant) {
		if x.fits(by.delegates) {
			names = append(names, by.source.String())
		}
	}
	if len(names) == 1 {
		return names[0] + " delegates them"
	}
	return "one of these delegates them: " + joinNames(names)
}

// ends returns when an exception ends, zero for what is none or is not in force.
func (c conditions) ends(source policy.ObjectRef) time.Time {
	if strings.TrimPrefix(source.Kind, "Cluster") != v1beta1.KindException {
		return time.Time{}
	}
	x := c.own.exceptionNamed(source)
	if x == nil || source.Namespace == "" {
		if x == nil {
			return time.Time{}
		}
		return x.until
	}
	namespace := verify.Namespace(source.Namespace)
	found, err := x.delegatedBy(c.snapshot.delegations(namespace, namespace, c.view.tenant), namespace)
	if err != nil {
		return time.Time{}
	}
	var last time.Time
	for _, by := range found {
		if by.until.After(last) {
			last = by.until
		}
	}
	if last.After(x.until) {
		return x.until
	}
	return last
}

// EffectiveAt returns the condition Effective at a moment: an exception that has ended is not
// in force.
func (r Report) EffectiveAt(now time.Time) Condition {
	if r.Until.IsZero() || now.Before(r.Until) {
		return r.Effective
	}
	return Condition{Reason: policy.ReasonExpired, Message: fmt.Sprintf("it ended at %s and allows nothing; delete it", r.Until.UTC().Format(time.RFC3339))}
}

// Ended returns a problem for each exception that has ended at a moment.
func (s *Snapshot) Ended(now time.Time) []resource.Problem {
	var found []resource.Problem
	for _, namespace := range s.Namespaces() {
		own := s.namespaces[namespace].own
		if namespace == verify.Cluster {
			own = s.cluster
		}
		for source, report := range s.Reports(namespace) {
			if x := own.exceptionNamed(source); x != nil && report.Until.IsZero() { // in files, who delegates it may be missing
				report.Until = x.until
			}
			if at := report.EffectiveAt(now); !report.Until.IsZero() && at.Reason == policy.ReasonExpired {
				found = append(found, resource.Problem{Source: source, Reason: at.Reason, Message: at.Message})
			}
		}
	}
	slices.SortFunc(found, func(a, b resource.Problem) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	return found
}
