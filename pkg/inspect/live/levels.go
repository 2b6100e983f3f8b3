package live

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Level is one source of a namespace's rules.
type Level struct {
	Name string // as in [resolve.Choice]: namespace, tenant or cluster
	// Namespace contains the resources, "" at the cluster's level.
	Namespace verify.Namespace
	// Resources are the resources of deciding kinds, sorted by kind and name.
	Resources []Placed
	// Unread are the kinds that the person may not list here.
	Unread []string
}

// Placed is one resource of a [Level].
type Placed struct {
	Ref  policy.ObjectRef
	Kind string // without the prefix Cluster
	// Policy is a policy as the person may read it, nil for other kinds. Callers must not change
	// it.
	Policy v1beta1.Object
	// Applies says that the resource applies in the namespace. If it does not, Why names the
	// level that applies instead. Mandatory policies always apply, and policies that warn deny
	// nothing.
	Applies, Mandatory, Warns bool
	Why                       string
	// Broken is the reason for which the resource is not Ready, "" if it is.
	Broken string
	// Unused says that no policy that applies asks for the resource.
	Unused bool
	// Denies is the unusable policy that makes the level of p deny every image; the zero value
	// if there is none.
	Denies policy.ObjectRef
	// Instead is the level whose resources of the kind apply instead of this one, "" if this one
	// applies.
	Instead string
	// ForMandatory says that mandatory policies use a Verifier or Store of the cluster that does
	// not apply otherwise.
	ForMandatory bool
}

// End is the expiry of something that images depend on.
type End struct {
	Source policy.ObjectRef
	At     time.Time
	// What ends: EndOfTrust, EndOfException, EndOfDelegation or EndOfBreakGlass.
	What string
	// Why is a person's reason for an exception or break-glass, as one line.
	Why string
}

// The types of an [End].
const (
	EndOfTrust      = "trust"
	EndOfException  = "exception"
	EndOfDelegation = "delegation" // of exceptions to namespaces
	EndOfBreakGlass = "break-glass"
)

// LevelUnknown is the level of a kind if the person may not read all resources that may apply.
const LevelUnknown = "unknown"

// ruled determines the rules of namespaces from objects alone. It needs neither Secrets nor
// registries.
type ruled struct {
	objects  resource.Objects
	snapshot *resolve.Snapshot
	tenants  *resource.Tenants
	placed   map[verify.Namespace][]Placed // none applies yet
	names    []string                      // of mandatory policies
}

func newRuled(o resource.Objects) *ruled {
	snapshot, _ := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(o), nil)
	r := &ruled{objects: o, snapshot: snapshot, tenants: tenantsOf(o), placed: map[verify.Namespace][]Placed{}, names: mandatory(snapshot)}
	for _, object := range o.Resources {
		if p, ok := placedOf(object); ok {
			at := verify.Namespace(object.GetNamespace())
			r.placed[at] = append(r.placed[at], p)
		}
	}
	for _, list := range r.placed {
		slices.SortFunc(list, func(a, b Placed) int {
			return cmp.Or(cmp.Compare(kindOrder(a.Kind), kindOrder(b.Kind)), cmp.Compare(a.Ref.Name, b.Ref.Name))
		})
	}
	return r
}

// kindsThatFallBack apply from the nearest level that has them.
func kindsThatFallBack() []string {
	return []string{v1beta1.KindVerificationPolicy, v1beta1.KindVerifier, v1beta1.KindStore}
}

func kindOrder(kind string) int { return slices.Index(kindsThatFallBack(), kind) }

// placedOf returns a level's view of an object, and false for kinds that do not fall back.
func placedOf(object v1beta1.Object) (Placed, bool) {
	ref := resource.RefOf(object)
	p := Placed{Ref: ref, Kind: strings.TrimPrefix(ref.Kind, "Cluster")}
	if c := resource.Lacks(object, v1beta1.ConditionReady); c != nil {
		p.Broken = shown(c.Reason)
	}
	c := resource.Lacks(object, v1beta1.ConditionEffective)
	p.Unused = p.Broken == "" && c != nil && c.Reason == string(policy.ReasonUnused)
	switch o := object.(type) {
	case *v1beta1.VerificationPolicy:
		p.Policy, p.Warns = o, o.Spec.EnforcementAction == v1beta1.EnforcementActionWarn
	case *v1beta1.ClusterVerificationPolicy:
		p.Policy, p.Warns = o, o.Spec.EnforcementAction == v1beta1.EnforcementActionWarn
		p.Mandatory = o.Spec.Scope == v1beta1.PolicyScopeMandatory
	}
	return p, kindOrder(p.Kind) >= 0
}

// describe adds the applicable rules to n.
func (r *ruled) describe(n *NamespaceStatus) {
	n.Mandatory, n.Unreadable = r.names, unreadableIn(r.objects, n.Namespace)
	n.Rules = append(n.Rules, Choices(r.snapshot, n.Namespace)...)
	if holder := r.tenants.Holder(string(n.Namespace)); holder != nil {
		n.Tenant, n.home = holder.Name, holder.Spec.HomeNamespace == string(n.Namespace)
		if contact := shown(string(holder.Spec.Contact)); contact != "" {
			n.Contacts = append(n.Contacts, Contact{resource.RefOf(holder), contact})
		}
		if home := verify.Namespace(holder.Spec.HomeNamespace); home != n.Namespace {
			n.Levels = append(n.Levels, r.level(n, resolve.LevelNamespace, n.Namespace))
			n.Levels = append(n.Levels, r.level(n, resolve.LevelTenant, home))
		} else {
			n.Levels = append(n.Levels, r.level(n, resolve.LevelTenant, home))
		}
	} else {
		n.Levels = append(n.Levels, r.level(n, resolve.LevelNamespace, n.Namespace))
	}
	n.Levels = append(n.Levels, r.level(n, resolve.LevelCluster, verify.Cluster))
	for _, c := range r.snapshot.For(n.Namespace).Contacts() {
		switch {
		// the built-in rule, or the denial of a broken Tenant: it is the first
		case c.Policy == (policy.ObjectRef{}), c.Policy.Kind == v1beta1.KindTenant:
		default:
			n.Contacts = append(n.Contacts, Contact{c.Policy, c.Text})
		}
	}
}

// level returns one level's resources, and which of them apply in a namespace.
func (r *ruled) level(n *NamespaceStatus, name string, at verify.Namespace) Level {
	l := Level{Name: name, Namespace: at}
	for _, p := range r.placed[at] {
		p.settle(n)
		l.Resources = append(l.Resources, p)
	}
	for _, u := range r.objects.Unreadable {
		kind := strings.TrimPrefix(u.Source.Kind, "Cluster")
		if u.Source.Name == "" && u.Source.Namespace == string(at) && kindOrder(kind) >= 0 {
			l.Unread = append(l.Unread, u.Source.Kind)
		}
	}
	return l
}

// settle determines whether p applies by the rules of n, and why or why not.
func (p *Placed) settle(n *NamespaceStatus) {
	var instead []string
	for _, c := range n.Rules {
		mandatory := strings.HasPrefix(c.Kind, "Cluster") // the only choice with this kind
		p.ForMandatory = p.ForMandatory || mandatory && p.Ref.Namespace == "" && p.Kind != v1beta1.KindVerificationPolicy
		if strings.TrimPrefix(c.Kind, "Cluster") != p.Kind {
			continue
		}
		if slices.Contains(c.Applied, p.Ref) {
			p.Applies, p.Why, p.Instead, p.ForMandatory, p.Denies = true, c.Why, "", false, c.Denies
			return
		}
		if !mandatory && !slices.Contains(instead, c.Why) {
			instead = append(instead, c.Why)
			p.Instead = cmp.Or(p.Instead, c.Level)
		}
	}
	p.Why = strings.Join(instead, "; ")
}

// ends returns all expiries, the next one first. It omits those that are more than a week
// old.
func (r *ruled) ends(now time.Time, limit Limit) []End {
	found := []End{}
	add := func(e End) {
		if now.Sub(e.At) <= denialsKept {
			found = append(found, e)
		}
	}
	seen := map[verify.Namespace]bool{}
	for _, object := range r.objects.Resources {
		at := verify.Namespace(object.GetNamespace())
		if !seen[at] {
			seen[at] = true
			for source, ends := range r.snapshot.EndsOf(at) {
				if first, ok := ends.First(now); ok {
					add(End{Source: source, At: first, What: EndOfTrust})
				}
			}
		}
		spec := exceptionOf(object)
		if spec == nil {
			continue
		}
		what := EndOfException
		if spec.Delegate != nil {
			what = EndOfDelegation
		}
		// otherwise it allows nothing that could end
		if until, err := time.Parse(time.RFC3339, spec.Until); err == nil &&
			(until.Before(now) || resource.Lacks(object, v1beta1.ConditionReady) == nil) {
			add(End{Source: resource.RefOf(object), At: until, What: what, Why: shown(spec.Reason)})
		}
	}
	for i := range r.objects.Namespaces {
		ns := &r.objects.Namespaces[i]
		if b := breakGlassOf(ns, limit, now); b != nil && b.State == BreakGlassOff {
			continue // nothing ends
		}
		if until, err := time.Parse(time.RFC3339, ns.Annotations[v1beta1.AnnotationBreakGlassUntil]); err == nil {
			add(End{Source: policy.ObjectRef{Kind: resource.KindNamespace, Name: ns.Name}, At: until, What: EndOfBreakGlass,
				Why: shown(ns.Annotations[v1beta1.AnnotationBreakGlassReason])})
		}
	}
	slices.SortFunc(found, func(a, b End) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Source.String(), b.Source.String()))
	})
	return found
}

// exceptionOf returns the spec of an exception, nil for other kinds.
func exceptionOf(object v1beta1.Object) *v1beta1.ExceptionSpec {
	switch o := object.(type) {
	case *v1beta1.Exception:
		return &o.Spec
	case *v1beta1.ClusterException:
		return &o.Spec
	}
	return nil
}

// StatusOf returns the status of the namespaces in resources, from the resources alone: which
// rules apply, and what expires. Problems are the problems of reading and compiling these
// resources. Nothing runs in files, so it counts nothing.
func StatusOf(o resource.Objects, problems []resource.Problem, now time.Time) Status {
	r := newRuled(o)
	for _, list := range r.placed {
		for i := range list {
			if at := slices.IndexFunc(problems, func(p resource.Problem) bool { return p.Source == list[i].Ref }); at >= 0 {
				list[i].Broken = string(problems[at].Reason)
			}
		}
	}
	s := Status{NoReports: true, Resources: []Attention{}, Ends: r.ends(now, Limit{})}
	wrong := map[verify.Namespace][]Attention{}
	for _, p := range problems {
		at := verify.Namespace(p.Source.Namespace)
		wrong[at] = append(wrong[at],
			Attention{Source: p.Source, Condition: v1beta1.ConditionReady, Reason: string(p.Reason), Message: shown(p.Message)})
	}
	s.Resources = append(s.Resources, wrong[verify.Cluster]...)
	for _, name := range o.InNamespaces() {
		n := &NamespaceStatus{Namespace: verify.Namespace(name), Counts: map[string]int{}, Running: []Running{}, Unverified: []Running{},
			Undecided: []Undecided{}, Denied: []Denial{}, Exceptions: []ExceptionUse{}, Rules: []Choice{}, Contacts: []Contact{}}
		n.Resources = append([]Attention{}, wrong[n.Namespace]...)
		r.describe(n)
		s.Namespaces = append(s.Namespaces, *n)
	}
	return s
}

// Knows reports whether it is known which resources of a kind apply. Mandatory policies are those of
// the kind ClusterVerificationPolicy.
func (n NamespaceStatus) Knows(kind string) bool {
	return !slices.ContainsFunc(n.Rules, func(c Choice) bool { return c.Kind == kind && c.Level == LevelUnknown })
}

// Choices returns the level that decides about each kind in a namespace, for every command and the
// page. If the person cannot read everything that decides, each kind has the level [LevelUnknown].
// Mandatory policies are known if the person can list ClusterVerificationPolicies: they apply
// regardless of the namespace's Tenant.
func Choices(snapshot *resolve.Snapshot, namespace verify.Namespace) []Choice {
	unreadable := snapshot.Unreadable(namespace)
	choices := []Choice{}
	unknown := func(kind string) {
		if !slices.ContainsFunc(choices, func(c Choice) bool { return c.Kind == kind }) {
			choices = append(choices,
				Choice{Kind: kind, Level: LevelUnknown, Applied: []policy.ObjectRef{}, Why: "you cannot read all resources that may apply"})
		}
	}
	mandatoryUnknown := slices.ContainsFunc(unreadable, func(u resource.Unreadable) bool {
		return u.Source.Kind == v1beta1.KindClusterVerificationPolicy
	})
	for _, c := range snapshot.Explain(namespace) {
		if len(unreadable) > 0 && (mandatoryUnknown || c.Kind != v1beta1.KindClusterVerificationPolicy) {
			unknown(c.Kind)
			continue
		}
		made := Choice(c)
		made.Applied = slices.DeleteFunc(append([]policy.ObjectRef{}, c.Applied...), func(source policy.ObjectRef) bool {
			return expired(snapshot, source)
		})
		if len(made.Applied) < len(c.Applied) && len(made.Applied) == 0 {
			continue // it described expired exceptions
		}
		choices = append(choices, made)
	}
	if mandatoryUnknown {
		unknown(v1beta1.KindClusterVerificationPolicy)
	}
	return choices
}

// expired reports whether an exception has expired. Snapshots contain it until it is deleted.
func expired(snapshot *resolve.Snapshot, source policy.ObjectRef) bool {
	if strings.TrimPrefix(source.Kind, "Cluster") != v1beta1.KindException {
		return false
	}
	if level := snapshot.Level(verify.Namespace(source.Namespace)); level != nil {
		for _, x := range level.Exceptions {
			if x.Source == source {
				return !time.Now().Before(x.Until)
			}
		}
	}
	return false
}
