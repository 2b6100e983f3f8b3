package conditions

import (
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Condition is one status condition of a resource.
type Condition struct {
	True    bool
	Unknown bool // the condition is neither True nor False
	Reason  policy.Reason
	Message string
}

// Report is the status of one resource in a snapshot.
type Report struct {
	Generation int64 // of the compiled resource
	Ready      Condition
	Effective  Condition
	// Fingerprints are the fingerprints of a trust store's trust material, or of the keys in a
	// verifier's spec. FetchedAt is the fetch time of a trust store's material.
	Fingerprints []string
	FetchedAt    time.Time // zero for trust material in the cluster
	// Ends are the expiry times of trust material; nil for a resource without any.
	Ends *compile.Ends
	// Until is when an exception ends, which may be earlier than in its spec because its
	// delegation ends; zero for other resources, and for an exception that is not in force.
	Until time.Time
	// unreached are the rules of a policy that no image reaches.
	unreached []concern
}

// Reports returns the status of each resource of a namespace, or of the cluster. It
// returns nil for a namespace that is not in s.
func Reports(s *resolve.Snapshot, namespace verify.Namespace) map[policy.ObjectRef]Report {
	v, own := s.View(namespace), s.Level(namespace)
	if v == nil {
		return nil
	}
	judged := viewsOf(s, v)
	if namespace == verify.Cluster {
		judged = views(s)
	}
	problems := map[policy.ObjectRef]resource.Problem{}
	for _, p := range s.ProblemsOf(namespace) {
		if _, earlier := problems[p.Source]; !earlier {
			problems[p.Source] = p
		}
	}
	c := conditions{snapshot: s, own: own, view: v, chain: s.Chain(v), usage: s.Usage(judged), stranded: v.Stranded()}
	holds := map[policy.ObjectRef][]string{}
	for _, v := range own.Verifiers {
		holds[v.Source] = v.Holds
	}
	reports, notes, reaches, unreached := map[policy.ObjectRef]Report{}, noted(own), reaches(own, s.Cluster()), neverReached(own)
	for source, generation := range own.Objects.Generations() {
		r := Report{Generation: generation, Fingerprints: holds[source], Ends: own.Ends[source], unreached: unreached[source],
			Ready: Condition{True: true, Reason: policy.ReasonValid, Message: "valid, and everything that it refers to is usable" +
				reaches[source] + notes[source]}}
		problem, broken := problems[source]
		r.Effective = c.effective(source, broken)
		if broken {
			r.Ready = Condition{Reason: problem.Reason, Message: problem.Message}
			if r.Effective.Reason != policy.ReasonOnlyWarns && r.Effective.Reason != policy.ReasonOverridden {
				r.Ready.Message += c.consequence(source)
			}
		}
		if t, ok := own.TrustStores[source.Name]; ok && t.Source == source && t.Err == nil {
			r.Fingerprints, r.FetchedAt = t.Fingerprints(), t.FetchedAt
		}
		r.Until = c.ends(source)
		r.Ready.Message, r.Effective.Message = compile.Cut(r.Ready.Message), compile.Cut(r.Effective.Message)
		reports[source] = r
	}
	return reports
}

// views returns the views of all existing namespaces or, if there are none, the view
// for requests without a namespace.
func views(s *resolve.Snapshot) []*resolve.View {
	var all []*resolve.View
	for _, namespace := range s.Namespaces() {
		if namespace != verify.Cluster {
			all = append(all, s.View(namespace))
		}
	}
	if len(all) == 0 {
		all = append(all, s.View(verify.Cluster))
	}
	return all
}

// viewsOf returns the views in which the resources of a namespace count: its own or, for a
// Tenant's home namespace, the views of the Tenant's other namespaces if it has any.
func viewsOf(s *resolve.Snapshot, v *resolve.View) []*resolve.View {
	if v.Tenant == "" || v.Home != v.Own {
		return []*resolve.View{v}
	}
	var others []*resolve.View
	for _, member := range s.Candidates()[v.Tenant] {
		if other := s.View(member); other != v {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return []*resolve.View{v}
	}
	return others
}

// consequence describes the effect of a problem with a resource. It is empty for quotas and
// exceptions, on which nothing depends, and for Tenants: their conditions say what applies
// instead.
func (c conditions) consequence(source policy.ObjectRef) string {
	p := c.policyNamed(source)
	switch {
	case p.Broken != nil:
		return resource.AndDenies + c.denied(p)
	case p.Source == source:
		_, rules := c.partly(p)
		if len(rules) == 0 {
			return "; " + stillMet
		}
		return "; the images of " + compile.JoinNames(rules) + " are denied, and " + stillDecide
	}
	switch source.Kind {
	case v1beta1.KindClusterQuota, v1beta1.KindTenant, v1beta1.KindException, v1beta1.KindClusterException:
		return ""
	}
	return "; what depends on it is denied"
}

// ExpiresSoon returns the condition ExpiresSoon at a moment, and false for a resource without
// trust material. Its text only changes with the condition, so that statuses are not written
// all the time.
func (r Report) ExpiresSoon(now time.Time) (Condition, bool) {
	if r.Ends == nil {
		return Condition{}, false
	}
	due, passed := r.Ends.Due(now)
	switch {
	case len(due) > 0:
		c := Condition{True: true, Reason: policy.ReasonExpiring, Message: compile.JoinNames(due)}
		if c.Message += "; replace it in time"; passed {
			c.Reason = policy.ReasonExpired
		}
		c.Message = compile.Cut(c.Message)
		return c, true
	case r.Ends.Unknown != "":
		return Condition{Unknown: true, Reason: policy.ReasonExpiryUnknown, Message: compile.Cut(r.Ends.Unknown)}, true
	case len(r.Ends.List) == 0:
		return Condition{Reason: policy.ReasonNoExpiry, Message: "nothing in it has an end"}, true
	}
	return Condition{Reason: policy.ReasonNotExpiring, Message: "nothing in it ends within its notice, which is 30 days for " +
		"certificates and roots"}, true
}
