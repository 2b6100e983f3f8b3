package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// conditions computes the condition Effective of the resources of one level.
type conditions struct {
	snapshot *Snapshot
	own      *level
	view     *view
	usage    usage
	stranded string
}

// effective returns the condition Effective: whether a resource affects decisions.
func (c conditions) effective(source policy.ObjectRef, broken bool) Condition {
	switch source.Kind {
	case v1beta1.KindTenant:
		return c.snapshot.effectiveTenant(source)
	case v1beta1.KindClusterQuota:
		return c.snapshot.effectiveQuota(source)
	}
	switch {
	case source.Namespace != "" && !c.view.counts():
		to := "its home namespace"
		if c.view.policyLevel == v1beta1.PolicyLevelCluster {
			to = "the cluster"
		}
		return Condition{Reason: policy.ReasonOverridden, Message: fmt.Sprintf("Tenant %s leaves decisions to %s (spec.verification.policyLevel), so the namespace's resources do not count", c.view.tenant, to)}
	case source.Namespace != "" && c.view.broken != nil:
		return Condition{True: true, Reason: policy.ReasonDenies, Message: c.view.broken.Error() + "; every image of the namespace is denied"}
	case c.own.broken != nil:
		return Condition{True: true, Reason: policy.ReasonDenies, Message: c.own.broken.Error() + "; every image of the namespace is denied"}
	}
	switch strings.TrimPrefix(source.Kind, "Cluster") {
	case v1beta1.KindException:
		return c.exception(source, broken)
	case v1beta1.KindVerifier:
		return c.verifier(source, broken)
	case v1beta1.KindStore:
		return c.store(source, broken)
	case v1beta1.KindTrustStore:
		if !c.usage.used[source] {
			return Condition{Reason: policy.ReasonUnused, Message: "no Verifier names it"}
		}
		return inForce(broken, "used by Verifiers")
	}
	return c.policy(source, broken)
}

// inForce returns the condition of a resource that affects decisions.
func inForce(broken bool, message string) Condition {
	if broken {
		return Condition{True: true, Reason: policy.ReasonDenies, Message: "it cannot be used, so what depends on it is denied; see the condition Ready"}
	}
	return Condition{True: true, Reason: policy.ReasonInForce, Message: message}
}

// everywhere names the namespaces that could use the resources of a level.
func (c conditions) everywhere() string {
	if c.own != c.snapshot.cluster && c.view.tenant != "" {
		return "every namespace of Tenant " + c.view.tenant
	}
	return "every namespace"
}

func (c conditions) overridden(source policy.ObjectRef) Condition {
	kind := strings.TrimPrefix(source.Kind, "Cluster")
	return Condition{Reason: policy.ReasonOverridden, Message: fmt.Sprintf("%s has a %s of its own", c.everywhere(), kind)}
}

func (c conditions) verifier(source policy.ObjectRef, broken bool) Condition {
	switch {
	case !c.usage.applies[source]:
		return c.overridden(source)
	case !c.usage.used[source]:
		return Condition{Reason: policy.ReasonUnused, Message: "no policy that applies asks for it" + c.stranded}
	}
	hidden := c.hidden(func(l *level) []policy.ObjectRef {
		return mapSlice(l.verifiers, func(v verifier) policy.ObjectRef { return v.Source })
	})
	return inForce(broken, c.scope(source, hidden)+c.stranded)
}

func (c conditions) store(source policy.ObjectRef, broken bool) Condition {
	switch {
	case c.own.shadowed(source):
		return Condition{Reason: policy.ReasonOverridden, Message: "Stores that come first by name list all of its registries"}
	case !c.usage.applies[source]:
		return Condition{Reason: policy.ReasonOverridden, Message: fmt.Sprintf("in %s, Stores of a nearer level list all of its registries", c.everywhere())}
	}
	return inForce(broken, c.scope(source, nil))
}

func (c conditions) policy(source policy.ObjectRef, broken bool) Condition {
	if !c.usage.applies[source] {
		return c.overridden(source)
	}
	all := slices.Concat(c.own.policies, c.own.mandatory)
	p := all[slices.IndexFunc(all, func(p compiledPolicy) bool { return p.source == source })]
	message := c.scope(source, c.hidden(func(l *level) []policy.ObjectRef { return mapSlice(l.policies, sourceOf) }))
	if p.mandatory {
		message = "a mandatory policy: must hold in every namespace, in addition to the namespace's own policy"
	} else if order := deciding(c.own.policies); len(order) > 1 {
		message += "; the rules of several policies are tried in the order of names: " + joinNames(order)
	}
	message += c.inheritance()
	switch {
	case p.warns && !c.usage.decidesAnyway(p):
		return Condition{True: true, Reason: policy.ReasonOnlyWarns, Message: c.onlyWarns(p)}
	case broken:
		return inForce(true, "")
	}
	why := c.usage.unmet[p.source]
	if p.mandatory {
		why = unsatisfiable(p, c.snapshot.cluster.verifiers)
	}
	if why != "" {
		return Condition{Reason: policy.ReasonUnsatisfiable, Message: why + "; the images of that rule are denied"}
	}
	return inForce(false, message)
}

// inheritance says who judges images that no rule of own's policies matches, "" if they do.
func (c conditions) inheritance() string {
	path := slices.Collect(c.view.path())
	at := slices.IndexFunc(path, func(a *applicable) bool { return a.denies() && c.view.chain[a.deciding.at].level == c.own })
	if at < 0 || at == len(path)-1 {
		return ""
	}
	const left = "; images that no rule matches are "
	switch next := path[at+1]; {
	case next.denies():
		return left + "judged by " + joinNames(mapSlice(next.deciding.policies, func(p compiledPolicy) string { return p.source.String() }))
	case len(next.warning) > 0:
		return left + "judged by further levels, whose policies only warn"
	case len(next.verifiers) > 0:
		return left + "judged by the Verifiers of further levels, which have no policy: " + joinNames(mapSlice(next.verifiers, func(v verifier) string { return v.Source.String() }))
	}
	return left + "denied: its defaultAction is Inherit, and no further level has a policy that denies or a Verifier"
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

func (c conditions) onlyWarns(p compiledPolicy) string {
	if p.broken != nil {
		return "it cannot be used, so it adds a warning for every image and denies nothing; see the condition Ready"
	}
	if p.mandatory {
		return "a mandatory policy that only warns: it denies nothing until its enforcementAction is Deny"
	}
	if c.own != c.snapshot.cluster && c.view.denies() && c.view.chain[c.view.deciding.at].level != c.own {
		return fmt.Sprintf("it adds warnings and denies nothing until its enforcementAction is Deny; as if it did not exist, %s decides%s",
			joinNames(mapSlice(c.view.deciding.policies, func(p compiledPolicy) string { return p.source.String() })), c.stranded)
	}
	return "it adds warnings and denies nothing until its enforcementAction is Deny; other policies decide as if it did not exist"
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
		for _, account := range accountsOf(e.spec) {
			if s.uses(account) && s.cluster.quotaSources[account] == source {
				return Condition{True: true, Reason: policy.ReasonInForce, Message: "in force for each of its namespaces and Tenants"}
			}
		}
	}
	return Condition{Reason: policy.ReasonAppliesNowhere, Message: "none of its namespaces and Tenants exists, or a quota earlier by name applies to them"}
}

// uses reports whether some namespace, or an existing Tenant, has the account.
func (s *Snapshot) uses(account verify.Account) bool {
	kind, name, _ := strings.Cut(string(account), "/")
	return kind == "tenant" && s.tenants.Named(name) != nil || kind == "namespace" && s.Has(verify.Namespace(name))
}

// hidden returns those of a list that the resources of own replace: of the levels behind
// it, those that do not apply to images that are left to them either.
func (c conditions) hidden(of func(*level) []policy.ObjectRef) []policy.ObjectRef {
	at := slices.IndexFunc(c.view.chain, func(r rung) bool { return r.level == c.own })
	if at < 0 || c.own == c.snapshot.cluster {
		return nil
	}
	var list []policy.ObjectRef
	for _, r := range c.view.chain[at+1:] {
		if r.label == LevelCluster {
			r.level = c.snapshot.cluster
		}
		list = append(list, of(r.level)...)
	}
	return slices.DeleteFunc(list, func(source policy.ObjectRef) bool { return c.view.usage().applies[source] })
}

// scope describes where a resource applies, and which others it replaces there.
func (c conditions) scope(source policy.ObjectRef, hidden []policy.ObjectRef) string {
	store := strings.TrimPrefix(source.Kind, "Cluster") == v1beta1.KindStore
	where, message := "the namespace", "in force in its namespace"
	switch {
	case c.own == c.snapshot.cluster && store:
		return "in force for its registries, where no nearer level has a Store for them"
	case c.own == c.snapshot.cluster:
		return fmt.Sprintf("in force in namespaces without a %s of their own, and for images that their policies leave to the next level", strings.TrimPrefix(source.Kind, "Cluster"))
	case c.view.tenant != "" && c.view.home == c.own:
		where, message = "the Tenant", "in force in the namespaces of Tenant "+c.view.tenant
	}
	if store {
		message += ", for its registries"
	}
	if len(hidden) > 0 {
		message += fmt.Sprintf("; because %s has a %s, these no longer apply there: %s",
			where, source.Kind, joinNames(mapSlice(hidden, func(source policy.ObjectRef) string { return source.String() })))
	}
	return message
}

// effectiveTenant returns the condition Effective of a Tenant.
func (s *Snapshot) effectiveTenant(source policy.ObjectRef) Condition {
	tenant := s.tenants.Named(source.Name)
	if tenant == nil {
		return Condition{True: true, Reason: policy.ReasonDenies, Message: "it is unknown which namespaces it has, so every image is denied in namespaces that no other Tenant has"}
	}
	count := 0
	for _, n := range s.namespacesOf(source.Name) {
		if n.State != v1beta1.NamespaceMissing && n.State != v1beta1.NamespaceConflict {
			count++
		}
	}
	where := countOf(count, "namespace")
	err := s.homeError(tenant)
	switch {
	case tenant.Spec.Verification.PolicyLevel == v1beta1.PolicyLevelCluster && s.tenants.unusable[source] == nil:
		return Condition{True: true, Reason: policy.ReasonInForce, Message: "the cluster's resources decide in " + where}
	case err != nil:
		return Condition{True: true, Reason: policy.ReasonDenies, Message: fmt.Sprintf("%v, so every image is denied in %s", err, where)}
	}
	return Condition{True: true, Reason: policy.ReasonInForce, Message: fmt.Sprintf("rules of the home namespace %s are in force in %s", tenant.Spec.HomeNamespace, where)}
}
