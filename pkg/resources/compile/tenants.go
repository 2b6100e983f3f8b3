package compile

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
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// maxTenantNamespaces is the number of namespaces in the status of a Tenant.
const maxTenantNamespaces = 256

// tenancy says which Tenant holds each namespace.
type tenancy struct {
	*resource.Tenants
	names    []string                      // of Tenants whose members are known, sorted
	unusable map[policy.ObjectRef]error    // Tenants that cannot be used
	hidden   bool                          // the members of some Tenant are unknown
	unread   error                         // the Tenants may not be read
	homes    map[verify.Namespace][]string // the Tenants with this home
}

func newTenancy(cluster *objects) *tenancy {
	t := &tenancy{unread: cluster.hidden[v1beta1.KindTenant], unusable: map[policy.ObjectRef]error{}, homes: map[verify.Namespace][]string{}}
	var known []*v1beta1.Tenant
	for _, e := range cluster.tenants {
		said, err := saidBy(e.spec)
		if err != nil {
			t.unusable[e.source], t.hidden = cmp.Or(e.broken, err), true
		} else if e.broken != nil {
			t.unusable[e.source] = e.broken
		} else if err := cmp.Or(knownWord("spec.verification.policyLevel", e.spec.Spec.Verification.PolicyLevel, "", v1beta1.PolicyLevelNamespace, v1beta1.PolicyLevelTenant, v1beta1.PolicyLevelCluster),
			checkClaims(e.spec.Spec, cluster.referenced.namespace)); err != nil {
			t.unusable[e.source] = err
		}
		if said == nil {
			continue
		}
		known, t.names = append(known, said), append(t.names, e.source.Name)
		if home := verify.Namespace(said.Spec.HomeNamespace); home != verify.Cluster {
			t.homes[home] = append(t.homes[home], e.source.Name)
		}
	}
	t.Tenants = resource.NewTenants(known)
	return t
}

// saidBy returns a Tenant with the namespaces that it says, nil if it says none, and an error if it
// may have others: then it denies those that it says, so that no other Tenant has them instead.
func saidBy(tenant *v1beta1.Tenant) (said *v1beta1.Tenant, err error) {
	spec := tenant.Spec
	var wrong []error
	namespace := func(field, name string) bool {
		_, err := verify.ParseNamespace(name)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", field, err))
		}
		return err == nil
	}
	if !namespace("spec.homeNamespace", spec.HomeNamespace) {
		spec.HomeNamespace = ""
	}
	spec.Namespaces = nil
	for i, name := range tenant.Spec.Namespaces {
		if namespace(fmt.Sprintf("spec.namespaces[%d]", i), name) {
			spec.Namespaces = append(spec.Namespaces, name)
		}
	}
	if prefix := spec.NamespacePrefix; prefix != "" && (len(prefix) < 3 || !strings.HasSuffix(prefix, "-") || len(validation.IsDNS1123Label(prefix+"x")) > 0) {
		wrong = append(wrong, fmt.Errorf("spec.namespacePrefix is %.80q, it must be the beginning of the names of namespaces, have at least 3 characters and end with a dash", prefix))
		spec.NamespacePrefix = ""
	}
	switch {
	case len(wrong) == 0:
		return tenant, nil
	case spec.HomeNamespace+spec.NamespacePrefix == "" && len(spec.Namespaces) == 0:
		return nil, wrong[0]
	}
	reduced := *tenant
	reduced.Spec = spec
	return &reduced, wrong[0]
}

// checkClaims returns an error if a Tenant would have the namespace of what cluster resources
// reference: its admins could replace the keys of all.
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

// binding is what a namespace has from its Tenant and from quotas. A namespace is linked
// again whenever it changes.
type binding struct {
	tenant      string // "" if no Tenant holds the namespace
	policyLevel v1beta1.PolicyLevel
	home        *level // nil if there is none
	account     verify.Account
	limits      verify.Limits

	broken error // why every image is denied, a [refusal]; nil if none is for that reason
	by     policy.ObjectRef
}

// bind returns the binding of a namespace whose own level is given.
func (s *Snapshot) bind(own *level) binding {
	namespace := own.objects.namespace
	b := binding{policyLevel: v1beta1.PolicyLevelNamespace}
	var tenant *v1beta1.Tenant
	if namespace != verify.Cluster {
		tenant = s.tenants.Holder(string(namespace))
	}
	if tenant != nil {
		b.tenant = tenant.Name
		if tenant.Spec.Verification.PolicyLevel != "" {
			b.policyLevel = tenant.Spec.Verification.PolicyLevel
		}
		if err := s.homeError(tenant); err != nil && (b.policyLevel != v1beta1.PolicyLevelCluster || s.tenants.unusable[tenantRef(tenant.Name)] != nil) {
			b.broken, b.by = refusalOf(err), tenantRef(tenant.Name)
		}
		if home := verify.Namespace(tenant.Spec.HomeNamespace); namespace == home {
			b.home = own
		} else if s.holds(tenant, home) {
			b.home = s.levels[home]
		}
	}
	if s.tenants.hidden && namespace != verify.Cluster && !s.tenants.Lists(string(namespace)) {
		// It may list the namespace, which beats a prefix. It is not named: the namespace may be
		// another team's.
		b.by = policy.ObjectRef{Kind: v1beta1.KindTenant, Name: "(unreadable)"}
		b.broken = refusal(fmt.Sprintf("a Tenant cannot be read, so it is unknown whether namespace %s belongs to it; ask a cluster admin to correct the Tenant", namespace))
	}
	if err := s.tenants.unread; err != nil && namespace != verify.Cluster {
		b.broken, b.by = refusalOf(err), tenantRef(resource.HiddenName)
	}
	b.account = s.accountOf(namespace, tenant)
	b.limits = s.cluster.quotas[b.account]
	return b
}

func tenantRef(name string) policy.ObjectRef {
	return policy.ObjectRef{Kind: v1beta1.KindTenant, Name: name}
}

func (s *Snapshot) holds(tenant *v1beta1.Tenant, namespace verify.Namespace) bool {
	holder := s.tenants.Holder(string(namespace))
	return holder != nil && holder.Name == tenant.Name
}

// homeError returns why the resources in a Tenant's home cannot be used, nil if they can.
// Its namespaces then deny: the cluster's resources might be laxer.
func (s *Snapshot) homeError(tenant *v1beta1.Tenant) error {
	if err := s.tenants.unusable[tenantRef(tenant.Name)]; err != nil {
		return fmt.Errorf("Tenant %s cannot be used: %w", tenant.Name, err)
	}
	home := verify.Namespace(tenant.Spec.HomeNamespace)
	l, exists := s.levels[home]
	switch {
	case !s.holds(tenant, home):
		return resource.Reasoned(policy.ReasonConflict, fmt.Errorf("the home namespace %s of Tenant %s belongs to another Tenant", home, tenant.Name))
	case exists && l.objects.unread != nil:
		return l.objects.unread
	case !exists:
		return resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("the home namespace %s of Tenant %s does not exist; create the namespace", home, tenant.Name))
	case l.objects.ending:
		return resource.Reasoned(policy.ReasonReferenceNotReady, fmt.Errorf("the home namespace %s of Tenant %s is being deleted", home, tenant.Name))
	case l.broken != nil:
		return resource.Reasoned(policy.ReasonReferenceNotReady, fmt.Errorf("the home namespace %s of Tenant %s cannot be used: %w", home, tenant.Name, l.broken))
	}
	return nil
}

// concerned returns the namespaces in s that are linked again when a namespace changes:
// itself, and the members of Tenants whose home it is.
func (s *Snapshot) concerned(namespace verify.Namespace) []verify.Namespace {
	list := []verify.Namespace{}
	if _, ok := s.levels[namespace]; ok {
		list = append(list, namespace)
	}
	for _, tenant := range s.tenants.homes[namespace] {
		for _, other := range s.candidates()[tenant] {
			if other != namespace {
				list = append(list, other)
			}
		}
	}
	return list
}

// Account returns the account that the work of a namespace counts against, whether or not
// s was compiled with the namespace.
func (s *Snapshot) Account(namespace verify.Namespace) verify.Account {
	return s.view(namespace).config.Account
}

// Tenant returns the name of the Tenant that holds a namespace, "" if none does.
func (s *Snapshot) Tenant(namespace verify.Namespace) string { return s.view(namespace).tenant }

// TenantNamespaces returns the namespaces of a Tenant with their states, home first and at
// most 256. It returns nil for a Tenant that does not exist or whose members are unknown.
func (s *Snapshot) TenantNamespaces(name string) []v1beta1.TenantNamespace {
	found := s.namespacesOf(name)
	return found[:min(len(found), maxTenantNamespaces)]
}

// namespacesOf returns all namespaces of a Tenant with their states.
func (s *Snapshot) namespacesOf(name string) []v1beta1.TenantNamespace {
	tenant := s.tenants.Named(name)
	if tenant == nil {
		return nil
	}
	var existing []corev1.Namespace
	for _, namespace := range s.candidates()[name] {
		if l, ok := s.levels[namespace]; ok {
			existing = append(existing, asObject(l.objects))
		}
	}
	return s.tenants.Namespaces(tenant, existing)
}

// Members returns the existing namespaces of a Tenant that are not being deleted, home
// first.
func (s *Snapshot) Members(name string) []verify.Namespace {
	var members []verify.Namespace
	for _, n := range s.namespacesOf(name) {
		if n.State == v1beta1.NamespaceHome || n.State == v1beta1.NamespaceActive {
			members = append(members, verify.Namespace(n.Name))
		}
	}
	return members
}

// candidates returns the existing namespaces that each Tenant holds, sorted.
func (s *Snapshot) candidates() map[string][]verify.Namespace {
	s.members.once.Do(func() {
		s.members.of = map[string][]verify.Namespace{}
		for namespace := range s.levels {
			if holder := s.tenants.Holder(string(namespace)); holder != nil {
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

// asObject returns what membership needs of a Namespace.
func asObject(o *objects) corev1.Namespace {
	namespace := corev1.Namespace{ObjectMeta: v1.ObjectMeta{Name: string(o.namespace)}}
	if o.ending {
		namespace.DeletionTimestamp = &v1.Time{}
	}
	return namespace
}

// tenantProblems returns what the owners of Tenants should correct.
func (s *Snapshot) tenantProblems() []resource.Problem {
	var problems []resource.Problem
	for _, e := range s.cluster.objects.tenants {
		if err := s.tenantError(e); err != nil {
			problems = append(problems, resource.Problem{Source: e.source, Reason: resource.ReasonOf(err), Message: cut(err.Error())})
		}
	}
	return problems
}

func (s *Snapshot) tenantError(e entry[*v1beta1.Tenant]) error {
	if err := s.tenants.unusable[e.source]; err != nil {
		return err
	}
	conflict := s.tenants.Conflict(e.spec)
	err := s.homeError(e.spec)
	switch {
	case conflict != "" && err != nil && resource.ReasonOf(err) != policy.ReasonConflict:
		return resource.Reasoned(policy.ReasonConflict, errors.New(conflict+"; "+err.Error()))
	case conflict != "":
		return resource.Reasoned(policy.ReasonConflict, errors.New(conflict))
	}
	return err
}

// countOf returns a number of things in words.
func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Related returns the namespaces whose reports a change of one may concern: itself, the
// members of a Tenant whose home it is, and the home of its Tenant, whose reports count
// members.
func (s *Snapshot) Related(namespace verify.Namespace) []verify.Namespace {
	list := s.concerned(namespace)
	if holder := s.tenants.Holder(string(namespace)); holder != nil && holder.Spec.HomeNamespace != string(namespace) {
		list = append(list, verify.Namespace(holder.Spec.HomeNamespace))
	}
	return list
}

// Relinked returns the namespaces of s whose configuration was made again since an earlier
// snapshot: a change of one namespace may deny others of its account.
func (s *Snapshot) Relinked(earlier *Snapshot) []verify.Namespace {
	var list []verify.Namespace
	for namespace, v := range s.namespaces {
		if earlier.namespaces[namespace] != v {
			list = append(list, namespace)
		}
	}
	return list
}
