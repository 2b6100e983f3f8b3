// Package conditions explains a Snapshot to the owners of resources: the conditions of each
// resource, when trust material and exceptions expire, and which resources have no effect. It
// decides nothing.
package conditions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// conditions computes the condition Effective of the resources of one level.
type conditions struct {
	snapshot *resolve.Snapshot
	own      *resolve.Level
	view     *resolve.View
	chain    []resolve.NamedLevel // of view
	usage    resolve.Usage
	stranded string
}

// effective returns the condition Effective: whether decisions follow the resource. A broken
// resource is not effective, even though it causes denials.
func (c conditions) effective(source policy.ObjectRef, broken bool) Condition {
	switch source.Kind {
	case v1beta1.KindTenant:
		return effectiveTenant(c.snapshot, source)
	case v1beta1.KindClusterQuota:
		return effectiveQuota(c.snapshot, source)
	}
	switch {
	case source.Namespace != "" && !c.view.Counts():
		to := "its home namespace"
		if c.view.PolicyLevel == v1beta1.PolicyLevelCluster {
			to = "the cluster"
		}
		return Condition{Reason: policy.ReasonOverridden,
			Message: fmt.Sprintf("Tenant %s leaves decisions to %s (spec.verification.policyLevel), so the namespace's resources do not count",
				c.view.Tenant, to)}
	case source.Namespace != "" && c.view.Broken != nil:
		return Condition{Reason: policy.ReasonDenies, Message: c.view.Broken.Error() + "; every image of the namespace is denied"}
	}
	switch strings.TrimPrefix(source.Kind, "Cluster") {
	case v1beta1.KindException:
		return c.exception(source, broken)
	case v1beta1.KindVerifier:
		return c.verifier(source, broken)
	case v1beta1.KindStore:
		return c.store(source, broken)
	case v1beta1.KindTrustStore:
		if !c.usage.Used[source] {
			return Condition{Reason: policy.ReasonUnused, Message: "no Verifier names it"}
		}
		return inForce(broken, "used by Verifiers")
	}
	return c.policy(source, broken)
}

// inForce returns the condition of a resource that affects decisions.
func inForce(broken bool, message string) Condition {
	if broken {
		return Condition{Reason: policy.ReasonDenies, Message: "Landwaiter cannot use the resource, and denies every image that depends on it; " +
			"the condition Ready says why"}
	}
	return Condition{True: true, Reason: policy.ReasonInForce, Message: message}
}

// everywhere names the namespaces that could use the resources of a level.
func (c conditions) everywhere() string {
	if c.own != c.snapshot.Cluster() && c.view.Tenant != "" {
		return "every namespace of Tenant " + c.view.Tenant
	}
	return "every namespace"
}

func (c conditions) overridden(source policy.ObjectRef) Condition {
	kind := strings.TrimPrefix(source.Kind, "Cluster")
	return Condition{Reason: policy.ReasonOverridden, Message: fmt.Sprintf("%s has a %s of its own", c.everywhere(), kind)}
}

func (c conditions) verifier(source policy.ObjectRef, broken bool) Condition {
	switch {
	case !c.usage.Applies[source]:
		return c.overridden(source)
	case !c.usage.Used[source]:
		if p, ok := resolve.BrokenAmong(c.own.Policies); ok {
			return Condition{Reason: policy.ReasonUnused,
				Message: fmt.Sprintf("no policy asks for it as long as Landwaiter cannot use %s, which may require it", p.Source)}
		}
		return Condition{Reason: policy.ReasonUnused, Message: "no policy that applies asks for it" + c.stranded}
	}
	hidden := c.hidden(func(l *resolve.Level) []policy.ObjectRef {
		return compile.MapSlice(l.Verifiers, func(v compile.Verifier) policy.ObjectRef { return v.Source })
	})
	return inForce(broken, c.scope(source, hidden)+c.stranded)
}

func (c conditions) store(source policy.ObjectRef, broken bool) Condition {
	switch {
	case c.own.Shadowed(source):
		return Condition{Reason: policy.ReasonOverridden, Message: "Stores that come first by name list all of its registries"}
	case !c.usage.Applies[source]:
		return Condition{Reason: policy.ReasonOverridden,
			Message: fmt.Sprintf("in %s, Stores of a nearer level list all of its registries", c.everywhere())}
	}
	return inForce(broken, c.scope(source, nil))
}

func (c conditions) policy(source policy.ObjectRef, broken bool) Condition {
	if !c.usage.Applies[source] {
		return c.overridden(source)
	}
	p := c.policyNamed(source)
	message := c.scope(source, c.hidden(func(l *resolve.Level) []policy.ObjectRef { return compile.MapSlice(l.Policies, compile.SourceOf) }))
	if p.Mandatory {
		message = "a mandatory policy: must hold in every namespace, in addition to the namespace's own policy"
	} else if order := deciding(c.own.Policies); len(order) > 1 {
		message += "; the rules of several policies are tried in the order of names: " + compile.JoinNames(order)
	}
	message += c.inheritance()
	switch {
	case p.Warns && !c.usage.DecidesAnyway(p):
		return Condition{True: !broken, Reason: policy.ReasonOnlyWarns, Message: c.onlyWarns(p)}
	case p.Broken != nil:
		return Condition{Reason: policy.ReasonDenies, Message: "Landwaiter cannot use the policy, and denies " + c.denied(p) +
			"; the condition Ready says why"}
	case broken: // one of its rules names something missing or unusable
		return c.partlyDenies(p)
	case !p.Mandatory:
		if other, ok := resolve.BrokenAmong(c.own.Policies); ok {
			return Condition{Reason: policy.ReasonDenies,
				Message: fmt.Sprintf("Landwaiter denies %s, because it cannot use %s, which decides together with this policy; the condition Ready "+
					"of %s says why", c.denied(other), other.Source, other.Source.Name)}
		}
	}
	why := c.usage.Unmet[p.Source]
	if p.Mandatory {
		why = resolve.Unsatisfiable(p, c.snapshot.Cluster().Verifiers)
	}
	if why != "" && !p.Mandatory && c.own == c.snapshot.Cluster() && resolve.Unsatisfiable(p, c.own.Verifiers) == "" {
		why += ", because every namespace in which the policy applies has Verifiers of its own, and no ClusterVerifier applies there"
	}
	if why != "" {
		return Condition{Reason: policy.ReasonUnsatisfiable, Message: why + "; the images of that rule are denied"}
	}
	return inForce(false, message)
}

// policyNamed returns a policy of the level, the zero value if it is not compiled.
func (c conditions) policyNamed(source policy.ObjectRef) compile.Policy {
	for _, p := range slices.Concat(c.own.Policies, c.own.Mandatory) {
		if p.Source == source {
			return p
		}
	}
	return compile.Policy{}
}

// denied says which images Landwaiter denies because of a broken policy.
func (c conditions) denied(p compile.Policy) string {
	const own = " without a VerificationPolicy of their own"
	switch tenant := c.view.Tenant; {
	case p.Mandatory:
		return "every image of every namespace"
	case c.own == c.snapshot.Cluster():
		return "every image of the namespaces" + own + ", and every image that other policies leave to the cluster"
	case tenant != "" && c.view.Home == c.own && c.view.PolicyLevel == v1beta1.PolicyLevelTenant:
		return "every image of the namespaces of Tenant " + tenant
	case tenant != "" && c.view.Home == c.own:
		return "every image of the namespaces of Tenant " + tenant + own
	}
	return "every image of the namespace"
}

// inheritance says which level judges images that no rule of own's policies matches, "" if
// own's policies do.
func (c conditions) inheritance() string {
	path := slices.Collect(c.view.Path())
	at := slices.IndexFunc(path, func(a *resolve.Applicable) bool { return a.Denies() && c.chain[a.Deciding.At].Level == c.own })
	if at < 0 || at == len(path)-1 {
		return ""
	}
	const left = "; images that no rule matches are "
	next := path[at+1]
	broken, denies := resolve.BrokenAmong(next.Deciding.Policies)
	switch {
	case denies:
		return left + "denied, because Landwaiter cannot use " + broken.Source.String()
	case next.Denies():
		return left + "judged by " +
			compile.JoinNames(compile.MapSlice(next.Deciding.Policies, func(p compile.Policy) string { return p.Source.String() }))
	case len(next.Warning) > 0:
		return left + "judged by further levels, whose policies only warn"
	case len(next.Verifiers) > 0:
		return left + "judged by the Verifiers of further levels, which have no policy: " +
			compile.JoinNames(compile.MapSlice(next.Verifiers, func(v compile.Verifier) string { return v.Source.String() }))
	}
	return left + "denied: its defaultAction is Inherit, and no further level has a policy that denies or a Verifier"
}

// deciding returns the names of the policies that can deny.
func deciding(policies []compile.Policy) []string {
	var list []string
	for _, p := range policies {
		if p.Decides() {
			list = append(list, p.Source.Name)
		}
	}
	return list
}

func (c conditions) onlyWarns(p compile.Policy) string {
	if p.Broken != nil {
		return "Landwaiter cannot use the policy, which only adds a warning to every image; the condition Ready says why"
	}
	if p.Mandatory {
		return "a mandatory policy that only warns: it denies nothing until its enforcementAction is Deny"
	}
	if c.own != c.snapshot.Cluster() && c.view.Denies() && c.chain[c.view.Deciding.At].Level != c.own {
		return fmt.Sprintf("it adds warnings and denies nothing until its enforcementAction is Deny; as if it did not exist, %s decides%s",
			compile.JoinNames(compile.MapSlice(c.view.Deciding.Policies, func(p compile.Policy) string { return p.Source.String() })), c.stranded)
	}
	return "it adds warnings and denies nothing until its enforcementAction is Deny; other policies decide as if it did not exist"
}

func effectiveQuota(s *resolve.Snapshot, source policy.ObjectRef) Condition {
	for _, e := range resolve.EntriesOf[v1beta1.ClusterQuotaSpec](s.Cluster().Objects) {
		if e.Source != source {
			continue
		}
		if e.Broken != nil {
			return Condition{Reason: policy.ReasonAppliesNowhere, Message: "it cannot be used, so its namespaces have the default quota"}
		}
		for _, account := range compile.AccountsOf(e.Spec) {
			if uses(s, account) && s.Cluster().QuotaSources[account] == source {
				return Condition{True: true, Reason: policy.ReasonInForce, Message: "in force for each of its namespaces and Tenants"}
			}
		}
	}
	return Condition{Reason: policy.ReasonAppliesNowhere, Message: "none of its namespaces and Tenants exists, or a quota earlier by name " +
		"applies to them"}
}

// uses reports whether some namespace, or an existing Tenant, has the account.
func uses(s *resolve.Snapshot, account verify.Account) bool {
	kind, name, _ := strings.Cut(string(account), "/")
	return kind == "tenant" && s.Tenants().Named(name) != nil || kind == "namespace" && s.Has(verify.Namespace(name))
}

// hidden returns the entries of a list that own's resources replace: those of further levels,
// unless they apply to images that are left to these levels.
func (c conditions) hidden(of func(*resolve.Level) []policy.ObjectRef) []policy.ObjectRef {
	at := slices.IndexFunc(c.chain, func(l resolve.NamedLevel) bool { return l.Level == c.own })
	if at < 0 || c.own == c.snapshot.Cluster() {
		return nil
	}
	var list []policy.ObjectRef
	for _, r := range c.chain[at+1:] {
		list = append(list, of(r.Level)...)
	}
	return slices.DeleteFunc(list, func(source policy.ObjectRef) bool { return c.view.Usage().Applies[source] })
}

// scope describes where a resource applies, and which others it replaces there.
func (c conditions) scope(source policy.ObjectRef, hidden []policy.ObjectRef) string {
	store := strings.TrimPrefix(source.Kind, "Cluster") == v1beta1.KindStore
	where, message := "the namespace", "in force in its namespace"
	switch {
	case c.own == c.snapshot.Cluster() && store:
		return "in force for its registries, where no nearer level has a Store for them"
	case c.own == c.snapshot.Cluster():
		return fmt.Sprintf("in force in namespaces without a %s of their own, and for images that their policies leave to the next level",
			strings.TrimPrefix(source.Kind, "Cluster"))
	case c.view.Tenant != "" && c.view.Home == c.own:
		where, message = "the Tenant", "in force in the namespaces of Tenant "+c.view.Tenant
	}
	if store {
		message += ", for its registries"
	}
	if len(hidden) > 0 {
		message += fmt.Sprintf("; because %s has a %s, these no longer apply there: %s",
			where, source.Kind, compile.JoinNames(compile.MapSlice(hidden, func(source policy.ObjectRef) string { return source.String() })))
	}
	return message
}

// effectiveTenant returns the condition Effective of a Tenant.
func effectiveTenant(s *resolve.Snapshot, source policy.ObjectRef) Condition {
	tenant := s.Tenants().Named(source.Name)
	if tenant == nil {
		return Condition{Reason: policy.ReasonDenies, Message: "it is unknown which namespaces it has, so every image is denied in namespaces " +
			"that no other Tenant has"}
	}
	count := 0
	for _, n := range s.NamespacesOf(source.Name) {
		if n.State != v1beta1.NamespaceMissing && n.State != v1beta1.NamespaceConflict {
			count++
		}
	}
	where := resolve.CountOf(count, "namespace")
	err := s.HomeError(tenant)
	switch {
	case tenant.Spec.Verification.PolicyLevel == v1beta1.PolicyLevelCluster && s.TenantError(source) == nil:
		return Condition{True: true, Reason: policy.ReasonInForce, Message: "the cluster's resources decide in " + where}
	case err != nil:
		return Condition{Reason: policy.ReasonDenies, Message: fmt.Sprintf("%v, so every image is denied in %s", err, where)}
	}
	return Condition{True: true, Reason: policy.ReasonInForce,
		Message: fmt.Sprintf("rules of the home namespace %s are in force in %s", tenant.Spec.HomeNamespace, where)}
}
