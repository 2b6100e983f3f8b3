package resolve

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// maxTenantNamespaces is the number of namespaces in the status of a Tenant.
const maxTenantNamespaces = 256

// tenancy knows the holder of each namespace.
type tenancy struct {
	*resource.Tenants
	unusable map[policy.ObjectRef]error // Tenants that cannot be used
	partial  bool                       // the members of some Tenant are unknown
}

func newTenancy(cluster *Objects, labels resource.Labels) *tenancy {
	t := &tenancy{unusable: map[policy.ObjectRef]error{}}
	var known []*v1beta1.Tenant
	for _, e := range EntriesOf[v1beta1.Tenant](cluster) {
		said, whole := saidBy(&e.Spec)
		err := cmp.Or(e.Broken, checkClaims(e.Spec.Spec, cluster.referenced.Namespace))
		if !whole {
			err, t.partial = cmp.Or(err, errors.New("spec names something that cannot be the name of a namespace")), true
		}
		if err != nil {
			t.unusable[e.Source] = err
		}
		if said != nil {
			known = append(known, said)
		}
	}
	t.Tenants = resource.NewTenants(known).Labelled(labels)
	return t
}

// labels returns the labels of all namespaces of s.
func (s *Snapshot) labels() resource.Labels {
	labels := resource.Labels{}
	for namespace, l := range s.levels {
		if l.Objects.labelled != "" {
			labels[string(namespace)] = l.Objects.labelled
		}
	}
	return labels
}

// saidBy returns a Tenant with the namespaces that it names, nil if it names none, and whether these
// are all: the schema refuses other names, but the Tenant keeps its spec. It denies the namespaces
// that it names, so that no other Tenant gets them.
func saidBy(tenant *v1beta1.Tenant) (said *v1beta1.Tenant, whole bool) {
	spec := tenant.Spec
	invalid := func(name string) bool { _, err := verify.ParseNamespace(name); return err != nil }
	if invalid(spec.HomeNamespace) {
		spec.HomeNamespace = ""
	}
	spec.Namespaces = slices.DeleteFunc(slices.Clone(spec.Namespaces), invalid)
	if prefix := spec.NamespacePrefix; len(prefix) < 3 || !strings.HasSuffix(prefix, "-") || len(validation.IsDNS1123Label(prefix+"x")) > 0 {
		spec.NamespacePrefix = ""
	}
	switch {
	case spec.HomeNamespace != "" && spec.NamespacePrefix == tenant.Spec.NamespacePrefix &&
		len(spec.Namespaces) == len(tenant.Spec.Namespaces):
		return tenant, true
	case spec.HomeNamespace+spec.NamespacePrefix == "" && len(spec.Namespaces) == 0:
		return nil, false
	}
	reduced := *tenant
	reduced.Spec = spec
	return &reduced, false
}

// checkClaims returns an error if a Tenant would get the namespace that cluster resources
// reference: its admins could replace everyone's keys.
func checkClaims(spec v1beta1.TenantSpec, reserved string) error {
	switch {
	case reserved == "":
		return nil
	case spec.HomeNamespace == reserved:
		return fmt.Errorf("spec.homeNamespace is %s, which has what cluster resources reference; name one of the team", reserved)
	case slices.Contains(spec.Namespaces, reserved):
		return fmt.Errorf("spec.namespaces has %s, which has what cluster resources reference; remove it", reserved)
	case spec.NamespacePrefix != "" && strings.HasPrefix(reserved, spec.NamespacePrefix):
		return fmt.Errorf("spec.namespacePrefix covers %s, which has what cluster resources reference; choose another", reserved)
	}
	return nil
}

// binding is what a namespace gets from its Tenant and from quotas. A namespace is linked
// again whenever it changes.
type binding struct {
	Tenant      string // "" if no Tenant holds the namespace
	PolicyLevel v1beta1.PolicyLevel
	home        verify.Namespace // the Tenant's, "" if another Tenant holds it
	Home        *Level           // of home, nil if there is none
	account     verify.Account
	limits      verify.Limits
	contact     string // of the Tenant

	Broken error // why every image is denied, a [refusal]; nil if there is no such reason
	by     policy.ObjectRef
}

// bind returns the binding of a namespace, given its own level.
func (s *Snapshot) bind(own *Level) binding {
	namespace := own.Objects.Namespace
	b := binding{PolicyLevel: v1beta1.PolicyLevelNamespace}
	var tenant *v1beta1.Tenant
	if namespace != verify.Cluster {
		tenant = s.tenancy.Holder(string(namespace))
	}
	if tenant != nil {
		b.Tenant, b.contact = tenant.Name, compile.ContactOf(tenant.Spec.Contact)
		if tenant.Spec.Verification.PolicyLevel != "" {
			b.PolicyLevel = tenant.Spec.Verification.PolicyLevel
		}
		if err := s.HomeError(tenant); err != nil &&
			(b.PolicyLevel != v1beta1.PolicyLevelCluster || s.tenancy.unusable[tenantRef(tenant.Name)] != nil) {
			b.Broken, b.by = compile.RefusalOf(err), tenantRef(tenant.Name)
		}
		if home := verify.Namespace(tenant.Spec.HomeNamespace); namespace == home { // which may not exist
			b.home, b.Home = home, own
		} else if s.holds(tenant, home) {
			b.home, b.Home = home, s.levels[home]
		}
	}
	if s.tenancy.partial && namespace != verify.Cluster && !s.tenancy.Lists(string(namespace)) {
		// It may list the namespace, which beats a prefix. The error does not name it: the
		// namespace may be another team's.
		b.by = policy.ObjectRef{Kind: v1beta1.KindTenant, Name: "(unreadable)"}
		b.Broken = compile.Refusal{
			Text: fmt.Sprintf("a Tenant cannot be read, so it is unknown whether namespace %s belongs to it; ask a cluster admin to "+
				"correct the Tenant", namespace)}
	}
	b.account = s.accountOf(namespace, tenant)
	b.limits = s.cluster.quotas[b.account]
	return b
}

func tenantRef(name string) policy.ObjectRef {
	return policy.ObjectRef{Kind: v1beta1.KindTenant, Name: name}
}

func (s *Snapshot) holds(tenant *v1beta1.Tenant, namespace verify.Namespace) bool {
	holder := s.tenancy.Holder(string(namespace))
	return holder != nil && holder.Name == tenant.Name
}

// HomeError returns why the resources in a Tenant's home namespace cannot be used, nil if
// they can. Its namespaces then deny: the cluster's resources might be laxer.
func (s *Snapshot) HomeError(tenant *v1beta1.Tenant) error {
	if err := s.tenancy.unusable[tenantRef(tenant.Name)]; err != nil {
		return fmt.Errorf("Tenant %s cannot be used: %w", tenant.Name, err)
	}
	home := verify.Namespace(tenant.Spec.HomeNamespace)
	l, exists := s.levels[home]
	switch {
	case !s.holds(tenant, home):
		return resource.Reasoned(policy.ReasonConflict,
			fmt.Errorf("the home namespace %s of Tenant %s belongs to another Tenant", home, tenant.Name))
	case !exists:
		return resource.Reasoned(policy.ReasonNotFound,
			fmt.Errorf("the home namespace %s of Tenant %s does not exist; create the namespace", home, tenant.Name))
	case l.Objects.ending:
		return resource.Reasoned(policy.ReasonReferenceNotReady,
			fmt.Errorf("the home namespace %s of Tenant %s is being deleted", home, tenant.Name))
	case l.Broken != nil:
		return resource.Reasoned(policy.ReasonReferenceNotReady,
			fmt.Errorf("the home namespace %s of Tenant %s cannot be used: %w", home, tenant.Name, l.Broken))
	}
	return nil
}

// concerned returns the namespaces in s whose levels or views a change may affect: the changed ones, and the other
// namespaces of their Tenants. A Tenant's home namespace is either among its own or ignored.
func (s *Snapshot) concerned(changed Levels) (found []verify.Namespace) {
	var tenants []string
	for namespace := range changed {
		if holder := s.tenancy.Holder(string(namespace)); holder != nil {
			tenants = append(tenants, holder.Name)
		} else if s.levels[namespace] != nil {
			found = append(found, namespace)
		}
	}
	slices.Sort(tenants)
	for _, tenant := range slices.Compact(tenants) {
		found = append(found, s.Candidates()[tenant]...)
	}
	return found
}

// Account returns the account that pays for the work of a namespace, whether or not s
// contains the namespace.
func (s *Snapshot) Account(namespace verify.Namespace) verify.Account {
	return s.view(namespace).config.Account
}

// Tenant returns the name of the Tenant that holds a namespace, "" if none does.
func (s *Snapshot) Tenant(namespace verify.Namespace) string { return s.view(namespace).Tenant }

// TenantNamespaces returns the namespaces of a Tenant for its status: with their states, the home namespace
// first, at most 256. It returns nil for a Tenant that does not exist or whose namespaces are unknown.
func (s *Snapshot) TenantNamespaces(name string) []v1beta1.TenantNamespace {
	found := s.NamespacesOf(name)
	return found[:min(len(found), maxTenantNamespaces)]
}

// NamespacesOf returns all namespaces of a Tenant with their states, even missing ones.
func (s *Snapshot) NamespacesOf(name string) []v1beta1.TenantNamespace {
	tenant := s.tenancy.Named(name)
	if tenant == nil {
		return nil
	}
	var existing []corev1.Namespace
	for _, namespace := range s.Candidates()[name] {
		if l, ok := s.levels[namespace]; ok {
			existing = append(existing, asObject(l.Objects))
		}
	}
	return s.tenancy.Namespaces(tenant, existing)
}

// Candidates returns the existing namespaces that each Tenant holds, sorted, by Tenant.
func (s *Snapshot) Candidates() map[string][]verify.Namespace {
	s.members.once.Do(func() {
		s.members.of = map[string][]verify.Namespace{}
		for namespace := range s.levels {
			if holder := s.tenancy.Holder(string(namespace)); holder != nil {
				s.members.of[holder.Name] = append(s.members.of[holder.Name], namespace)
			}
		}
		for _, list := range s.members.of {
			slices.Sort(list)
		}
	})
	return s.members.of
}

// members caches the namespaces of each Tenant.
type members struct {
	once sync.Once
	of   map[string][]verify.Namespace
}

// asObject returns a Namespace with the fields that determine its Tenant.
func asObject(o *Objects) corev1.Namespace {
	namespace := corev1.Namespace{ObjectMeta: v1.ObjectMeta{Name: string(o.Namespace)}}
	if o.ending {
		namespace.DeletionTimestamp = &v1.Time{}
	}
	return namespace
}

// tenantProblems returns what the owners of Tenants should fix.
func (s *Snapshot) tenantProblems() []resource.Problem {
	var problems []resource.Problem
	for _, e := range EntriesOf[v1beta1.Tenant](s.cluster.Objects) {
		if err := s.tenantError(e); err != nil {
			problems = append(problems, resource.Problem{Source: e.Source, Reason: resource.ReasonOf(err), Message: compile.Cut(err.Error())})
		}
	}
	return problems
}

func (s *Snapshot) tenantError(e compile.Entry[v1beta1.Tenant]) error {
	if err := s.tenancy.unusable[e.Source]; err != nil {
		return err
	}
	conflict := s.tenancy.Conflict(&e.Spec)
	err := s.HomeError(&e.Spec)
	switch {
	case conflict != "" && err != nil && resource.ReasonOf(err) != policy.ReasonConflict:
		return resource.Reasoned(policy.ReasonConflict, errors.New(conflict+"; "+err.Error()))
	case conflict != "":
		return resource.Reasoned(policy.ReasonConflict, errors.New(conflict))
	}
	return err
}

// CountOf returns a number of things in words, such as "2 namespaces".
func CountOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// HomeOf returns the home namespace of the Tenant that holds a namespace, or the namespace itself
// if none does. Reports of a home namespace count all namespaces of its Tenant.
func (s *Snapshot) HomeOf(namespace verify.Namespace) verify.Namespace {
	if holder := s.tenancy.Holder(string(namespace)); holder != nil {
		return verify.Namespace(holder.Spec.HomeNamespace)
	}
	return namespace
}
