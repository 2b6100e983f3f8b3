package compile

import (
	"fmt"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
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
	// Fingerprints are those of a trust store's trust material, and of the keys that a verifier
	// holds itself. FetchedAt is the time of a trust store's.
	Fingerprints []string
	FetchedAt    time.Time // zero for trust material in the cluster
	// Ends says when trust material ends; nil for a resource that holds none.
	Ends *Ends
	// Until is when an exception ends, which may be earlier than it says itself because its
	// delegation does; zero for other resources, and for one that is not in force.
	Until time.Time
}

// Reports returns the status of each resource of a namespace, or of the cluster. It
// returns nil for a namespace that is not in s.
func (s *Snapshot) Reports(namespace verify.Namespace) map[policy.ObjectRef]Report {
	v, ok := s.namespaces[namespace]
	if !ok {
		return nil
	}
	own, views := v.own, s.viewsOf(v)
	if namespace == verify.Cluster {
		own, views = s.cluster, s.views()
	}
	problems := map[policy.ObjectRef]resource.Problem{}
	for _, p := range s.problemsOf(namespace) {
		if _, earlier := problems[p.Source]; !earlier {
			problems[p.Source] = p
		}
	}
	c := conditions{snapshot: s, own: own, view: v, usage: s.usage(views), stranded: v.stranded()}
	holds := map[policy.ObjectRef][]string{}
	for _, v := range own.verifiers {
		holds[v.Source] = v.holds
	}
	reports, writable, reaches := map[policy.ObjectRef]Report{}, own.objects.rights(), own.reaches(s.cluster)
	for source, generation := range own.objects.generations() {
		r := Report{Generation: generation, Fingerprints: holds[source], Ends: own.ends[source], Ready: Condition{True: true, Reason: policy.ReasonValid, Message: "valid, and everything that it refers to is usable" + reaches[source] + writable[source]}}
		problem, broken := problems[source]
		r.Effective = c.effective(source, broken)
		if broken {
			r.Ready = Condition{Reason: problem.Reason, Message: problem.Message}
			if r.Effective.Reason != policy.ReasonOnlyWarns && r.Effective.Reason != policy.ReasonOverridden {
				r.Ready.Message += consequence(source.Kind)
			}
		}
		if t, ok := own.trustStores[source.Name]; ok && t.source == source && t.err == nil {
			r.Fingerprints, r.FetchedAt = t.fingerprints(), t.fetchedAt
		}
		r.Until = c.ends(source)
		r.Ready.Message, r.Effective.Message = cut(r.Ready.Message), cut(r.Effective.Message)
		reports[source] = r
	}
	return reports
}

// views returns the views of all existing namespaces or, if there are none, the view
// for requests without a namespace.
func (s *Snapshot) views() []*view {
	var all []*view
	for _, namespace := range s.Namespaces() {
		if namespace != verify.Cluster {
			all = append(all, s.namespaces[namespace])
		}
	}
	if len(all) == 0 {
		all = append(all, s.namespaces[verify.Cluster])
	}
	return all
}

// viewsOf returns the views in which the resources of a namespace count: its own or, for a
// Tenant's home, those of the Tenant's other namespaces if it has any.
func (s *Snapshot) viewsOf(v *view) []*view {
	if v.tenant == "" || v.home != v.own {
		return []*view{v}
	}
	var others []*view
	for _, member := range s.candidates()[v.tenant] {
		if other := s.namespaces[member]; other != v {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return []*view{v}
	}
	return others
}

// consequence describes the effect of a problem with a resource. It is empty for quotas and
// exceptions, on which nothing depends, and for Tenants: their conditions say what applies
// instead.
func consequence(kind string) string {
	switch kind {
	case v1beta1.KindClusterQuota, v1beta1.KindTenant, v1beta1.KindException, v1beta1.KindClusterException:
		return ""
	}
	return "; what depends on it is denied"
}

// ExpiresSoon returns the condition ExpiresSoon at a moment, and false for a resource that
// holds no trust material. Its text only changes when the condition does, so that statuses
// are not written all the time.
func (r Report) ExpiresSoon(now time.Time) (Condition, bool) {
	if r.Ends == nil {
		return Condition{}, false
	}
	due := r.Ends.Due(now)
	switch {
	case len(due) > 0:
		c := Condition{True: true, Reason: policy.ReasonExpiring, Message: joinNames(mapSlice(due, func(end trust.End) string { return endText(end, now) }))}
		if c.Message += "; replace it in time"; !due[0].At.After(now) {
			c.Reason = policy.ReasonExpired
		}
		c.Message = cut(c.Message)
		return c, true
	case r.Ends.Unknown != "":
		return Condition{Unknown: true, Reason: policy.ReasonExpiryUnknown, Message: cut(r.Ends.Unknown)}, true
	case len(r.Ends.List) == 0:
		return Condition{Reason: policy.ReasonNoExpiry, Message: "nothing in it has an end"}, true
	}
	return Condition{Reason: policy.ReasonNotExpiring, Message: "nothing in it ends within its notice, which is 30 days for certificates and roots"}, true
}

func endText(end trust.End, now time.Time) string {
	verb := "ends"
	if !end.At.After(now) {
		verb = "ended"
	}
	return fmt.Sprintf("%s %s at %s", end.Part, verb, end.At.UTC().Format(time.RFC3339))
}
