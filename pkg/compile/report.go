package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Condition is one status condition of a resource.
type Condition struct {
	True    bool
	Reason  policy.Reason
	Message string
}

// Report is the status of one resource in a snapshot.
type Report struct {
	Generation int64 // of the compiled resource
	Ready      Condition
	Effective  Condition
	// Fingerprints and FetchedAt describe a trust store's material.
	Fingerprints []string
	FetchedAt    time.Time // zero for material in the cluster
}

// Reports returns the status of each resource of a namespace, or of the cluster. It
// returns nil for a namespace that is not in s.
func (s *Snapshot) Reports(namespace verify.Namespace) map[policy.ObjectRef]Report {
	v, ok := s.namespaces[namespace]
	if !ok {
		return nil
	}
	own := v.chain[0]
	views := []*view{v}
	if namespace == verify.Cluster {
		own, views = s.cluster, s.views()
	}
	problems := map[policy.ObjectRef]resource.Problem{}
	for _, p := range v.problems {
		if _, earlier := problems[p.Source]; !earlier {
			problems[p.Source] = p
		}
	}
	u := s.usage(views)
	reports, writable := map[policy.ObjectRef]Report{}, own.objects.rights()
	for source, generation := range own.objects.generations() {
		r := Report{Generation: generation, Ready: Condition{True: true, Reason: policy.ReasonValid, Message: "valid, and everything that it refers to is usable" + writable[source]}}
		problem, broken := problems[source]
		r.Effective = s.effective(own, u, source, broken)
		if broken {
			r.Ready = Condition{Reason: problem.Reason, Message: problem.Message}
			if r.Effective.Reason != policy.ReasonOnlyWarns {
				r.Ready.Message += consequence(source.Kind)
			}
		}
		if t, ok := own.trustStores[source.Name]; ok && t.source == source && t.err == nil {
			r.Fingerprints, r.FetchedAt = t.fingerprints(), t.fetchedAt
		}
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

// consequence describes the effect of a problem with a resource. It is empty for
// quotas: nothing depends on them, and their problems say what applies instead.
func consequence(kind string) string {
	if kind == v1alpha1.KindClusterQuota {
		return ""
	}
	return "; what depends on it is denied"
}

// effective returns the condition Effective: whether a resource of own affects
// decisions.
func (s *Snapshot) effective(own *level, u usage, source policy.ObjectRef, broken bool) Condition {
	if own.broken != "" {
		return Condition{True: true, Reason: policy.ReasonDenies, Message: own.broken + "; every image of the namespace is denied"}
	}
	switch strings.TrimPrefix(source.Kind, "Cluster") {
	case v1alpha1.KindVerifier:
		return s.effectiveVerifier(own, u, source, broken)
	case v1alpha1.KindStore:
		return s.effectiveStore(own, u, source, broken)
	case v1alpha1.KindTrustStore:
		if !u.used[source] {
			return Condition{Reason: policy.ReasonUnused, Message: "no Verifier names it"}
		}
		return inForce(broken, "used by Verifiers")
	case v1alpha1.KindVerificationPolicy:
		return s.effectivePolicy(own, u, source, broken)
	}
	return s.effectiveQuota(source)
}

// inForce returns the condition of a resource that affects decisions.
func inForce(broken bool, message string) Condition {
	if broken {
		return Condition{True: true, Reason: policy.ReasonDenies, Message: "it cannot be used, so what depends on it is denied; see the condition Ready"}
	}
	return Condition{True: true, Reason: policy.ReasonInForce, Message: message}
}

func overridden(source policy.ObjectRef) Condition {
	kind := strings.TrimPrefix(source.Kind, "Cluster")
	return Condition{Reason: policy.ReasonOverridden, Message: fmt.Sprintf("every namespace has a %s of its own", kind)}
}

func (s *Snapshot) effectiveVerifier(own *level, u usage, source policy.ObjectRef, broken bool) Condition {
	switch {
	case !u.applies[source]:
		return overridden(source)
	case !u.used[source]:
		return Condition{Reason: policy.ReasonUnused, Message: "no policy that applies asks for it" + s.stranded(own)}
	}
	return inForce(broken, s.scopeMessage(own, source, mapSlice(s.cluster.verifiers, func(v verifier) policy.ObjectRef { return v.Source }))+s.stranded(own))
}

func (s *Snapshot) effectiveStore(own *level, u usage, source policy.ObjectRef, broken bool) Condition {
	if !u.applies[source] {
		return overridden(source)
	}
	taken := map[string]bool{}
	for _, st := range own.stores {
		if st.Source != source {
			for _, host := range st.Registries {
				taken[host] = true
			}
			continue
		}
		if len(st.Registries) > 0 && !slices.ContainsFunc(st.Registries, func(host string) bool { return !taken[host] }) {
			return Condition{Reason: policy.ReasonOverridden, Message: "Stores that come first by name list all of its registries"}
		}
		break
	}
	return inForce(broken, s.scopeMessage(own, source, mapSlice(s.cluster.stores, func(s store) policy.ObjectRef { return s.Source })))
}

func (s *Snapshot) effectivePolicy(own *level, u usage, source policy.ObjectRef, broken bool) Condition {
	if !u.applies[source] {
		return overridden(source)
	}
	all := slices.Concat(own.policies, own.floors)
	p := all[slices.IndexFunc(all, func(p compiledPolicy) bool { return p.source == source })]
	message := s.scopeMessage(own, source, mapSlice(s.cluster.policies, sourceOf))
	if p.floor {
		message = "a floor: must hold in every namespace, in addition to the namespace's own policy"
	} else if order := deciding(own.policies); len(order) > 1 {
		message += "; the rules of several policies are tried in the order of names: " + joinNames(order)
	}
	switch {
	case p.warns && !u.decidesAnyway(p):
		return Condition{True: true, Reason: policy.ReasonOnlyWarns, Message: onlyWarns(p)}
	case broken:
		return inForce(true, "")
	}
	why := u.unmet[p.source]
	if p.floor {
		why = unsatisfiable(p, s.cluster.verifiers)
	}
	if why != "" {
		return Condition{Reason: policy.ReasonUnsatisfiable, Message: why + "; the images of that rule are denied"}
	}
	return inForce(false, message)
}

// deciding returns the names of the policies that do more than warn.
func deciding(policies []compiledPolicy) []string {
	var list []string
	for _, p := range policies {
		if p.decides() {
			list = append(list, p.source.Name)
		}
	}
	return list
}

// decidesAnyway reports whether a broken policy that should only warn denies in some
// namespace because no other policy decides there.
func (u usage) decidesAnyway(p compiledPolicy) bool {
	return p.broken != "" && u.denies[p.source]
}

func onlyWarns(p compiledPolicy) string {
	if p.broken != "" {
		return "it cannot be used, so it adds a warning for every image and denies nothing; see the condition Ready"
	}
	if p.floor {
		return "a floor that only warns: it denies nothing until its enforcementAction is Deny"
	}
	return "it adds warnings and denies nothing until its enforcementAction is Deny; other policies decide as if it did not exist"
}

// unsatisfiable describes the first requirement of p that no image can meet, "" if
// there is none.
func unsatisfiable(p compiledPolicy, verifiers []verifier) string {
	for i, rule := range p.rules {
		for j, r := range rule.Require {
			possible, bounded := 0, true
			distinct := map[string]bool{}
			candidates, usable := 0, 0
			for _, v := range verifiers {
				if !selects(r, v.Verifier) {
					continue
				}
				candidates++
				if v.Broken != "" {
					continue
				}
				usable++
				if v.signers == nil {
					bounded = false
				}
				for _, signer := range v.signers {
					distinct[signer] = true
				}
			}
			possible = len(distinct)
			field := fmt.Sprintf("spec.rules[%d].require[%d]", i, j)
			switch {
			case candidates == 0:
				return field + " can never be met: none of the Verifiers that it requires applies"
			case usable == 0:
				return field + " can never be met: none of the Verifiers that it requires can be used"
			case bounded && possible < r.AtLeast:
				return fmt.Sprintf("%s can never be met: it asks for %d different signers, and the Verifiers that it asks for trust %d", field, r.AtLeast, possible)
			}
		}
	}
	return ""
}

func (s *Snapshot) effectiveQuota(source policy.ObjectRef) Condition {
	for _, e := range s.cluster.objects.quotas {
		if e.source != source {
			continue
		}
		_, err := compileQuota(e)
		if err != nil {
			return Condition{Reason: policy.ReasonAppliesNowhere, Message: "it cannot be used, so its namespaces have the default quota"}
		}
		for _, name := range e.spec.Namespaces {
			if s.Has(verify.Namespace(name)) && s.cluster.quotaSources[verify.Namespace(name)] == source {
				return Condition{True: true, Reason: policy.ReasonInForce, Message: "in force for each of its namespaces"}
			}
		}
	}
	return Condition{Reason: policy.ReasonAppliesNowhere, Message: "none of its namespaces exists, or a quota earlier by name applies to them"}
}

// scopeMessage describes where a resource applies, and which cluster resources it
// overrides there.
func (s *Snapshot) scopeMessage(own *level, source policy.ObjectRef, cluster []policy.ObjectRef) string {
	if own == s.cluster {
		return fmt.Sprintf("in force in namespaces without a %s of their own", strings.TrimPrefix(source.Kind, "Cluster"))
	}
	message := "in force in its namespace"
	if len(cluster) > 0 {
		message += fmt.Sprintf("; because the namespace has a %s, these no longer apply there: %s",
			source.Kind, joinNames(mapSlice(cluster, func(source policy.ObjectRef) string { return source.String() })))
	}
	return message
}

// cut shortens a message to [maxMessage]: a tenant chooses parts of it, and the API server
// refuses a condition that is too long.
func cut(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// joinNames joins the first names of a list: at most [maxNames], and as many as fit in
// half a message.
func joinNames(list []string) string {
	shown, size := 0, 0
	for shown < min(len(list), maxNames) && size+len(list[shown]) <= maxMessage/2 {
		size += len(list[shown])
		shown++
	}
	if shown == len(list) {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}
