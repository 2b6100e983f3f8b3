package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// measure is one of the sums that have a limit for all namespaces of an account together.
type measure int

const (
	specsKept          measure = iota // the specs of resources in memory, compiled or not
	exceptionSpecsKept                // the same of Exceptions, which must not deny anything
	compiledResources                 // what resources keep once they are compiled
	compiledExceptions
	measures int = iota
)

// limit returns the limit of a measure, in bytes.
func (m measure) limit() int {
	return [measures]int{specsKept: resource.MaxAccountBytes, exceptionSpecsKept: resource.MaxAccountExceptionBytes,
		compiledResources: maxAccountWeight, compiledExceptions: maxAccountExceptionWeight}[m]
}

// load is what a namespace adds to each measure, in bytes.
type load [measures]int

// loadOf returns what the resources of a namespace add to the measures of its account. Specs past
// the limit of a namespace add nothing, because it is denied anyway and is not read again.
func loadOf(o *Objects, w weight) (sum load) {
	for _, exceptions := range []bool{false, true} {
		share := resource.Share{Namespace: string(o.Namespace), Exceptions: exceptions}
		sum[kept(share)] = counted(share, o.written(share))
	}
	sum[compiledResources], sum[compiledExceptions] = w.resources(), w.exceptions
	return sum
}

// loadOf returns what a namespace adds to the measures of its account, whether or not it exists.
func (s *Snapshot) loadOf(namespace verify.Namespace) load {
	if l := s.levels[namespace]; l != nil {
		return l.load
	}
	return load{}
}

func (l load) plus(other load) load {
	for m := range l {
		l[m] += other[m]
	}
	return l
}

// tooMuch reports whether what all namespaces of an account add is past one of its limits.
func (l load) tooMuch() bool {
	for m := range l {
		if l[m] > measure(m).limit() {
			return true
		}
	}
	return false
}

// kept returns the measure of what is kept of a share.
func kept(share resource.Share) measure {
	if share.Exceptions {
		return exceptionSpecsKept
	}
	return specsKept
}

// excess says which limits of its Tenant's account a namespace is past. The zero value is a
// namespace within them.
type excess struct {
	tenant string
	past   [measures]bool
}

// accountOf returns whose quota a namespace uses: that of tenant, which holds it, unless that
// is nil or a ClusterQuota lists the namespace itself.
func (s *Snapshot) accountOf(namespace verify.Namespace, tenant *v1beta1.Tenant) verify.Account {
	account := namespace.Account()
	if _, own := s.cluster.quotas[account]; own || tenant == nil {
		return account
	}
	return verify.TenantAccount(tenant.Name)
}

// excesses says which of some namespaces are past the limits of their account. If there is one of a Tenant, there are all
// of it. It only ranks those of Tenants that are past a limit: it runs at each change.
func (s *Snapshot) excesses(namespaces []verify.Namespace) map[verify.Namespace]excess {
	sums := map[*v1beta1.Tenant]load{}
	for _, namespace := range namespaces {
		if own := s.loadOf(namespace); own != (load{}) {
			if tenant := s.tenancy.Holder(string(namespace)); tenant != nil {
				sums[tenant] = sums[tenant].plus(own)
			}
		}
	}
	found := map[verify.Namespace]excess{}
	for tenant, sum := range sums {
		if sum.tooMuch() {
			s.rank(tenant, found)
		}
	}
	return found
}

// rank adds the namespaces of a Tenant's account that are past its limits to found. It is a
// pure function of what they weigh, so that every replica agrees, whatever changed first. Of
// namespaces whose specs are past a limit nobody knows all specs: they weigh nothing.
func (s *Snapshot) rank(tenant *v1beta1.Tenant, found map[verify.Namespace]excess) {
	for i := range measures {
		m := measure(i)
		weight := func(n verify.Namespace) int {
			own := s.loadOf(n)
			if found[n].past[specsKept] {
				own[compiledResources] = 0
			}
			if found[n].past[exceptionSpecsKept] {
				own[compiledExceptions] = 0
			}
			return own[m]
		}
		for _, namespace := range s.past(tenant, s.Candidates()[tenant.Name], m.limit(), weight) {
			e := found[namespace]
			e.tenant, e.past[m] = tenant.Name, true
			found[namespace] = e
		}
	}
}

// past returns those of all namespaces of a Tenant that do not fit into a limit of its account
// together. Home comes first, because its rules hold in the others, then those that weigh
// least: none loses its rules to one that weighs more.
func (s *Snapshot) past(tenant *v1beta1.Tenant, all []verify.Namespace, limit int, weight func(verify.Namespace) int) []verify.Namespace {
	if total(all, weight) <= limit {
		return nil
	}
	account := slices.DeleteFunc(slices.Clone(all), func(n verify.Namespace) bool { return s.accountOf(n, tenant) != verify.TenantAccount(tenant.Name) })
	rank := func(n verify.Namespace) int {
		if string(n) == tenant.Spec.HomeNamespace {
			return -1
		}
		return weight(n)
	}
	slices.SortFunc(account, func(a, b verify.Namespace) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	rest := limit
	i := slices.IndexFunc(account, func(n verify.Namespace) bool {
		rest -= weight(n)
		return rest < 0
	})
	if i < 0 {
		return nil
	}
	return account[i:]
}

func total(namespaces []verify.Namespace, weight func(verify.Namespace) int) (sum int) {
	for _, namespace := range namespaces {
		sum += weight(namespace)
	}
	return sum
}

// refusal returns why the resources of a namespace are not compiled, nil if they are. Size is
// what their specs take.
func (e excess) refusal(namespace verify.Namespace, w weight, size int) error {
	switch {
	case e.past[specsKept]:
		return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("the specs of the resources of Tenant %s take more than %d KiB, the limit of all its namespaces together, and the largest namespaces are denied first; "+
			"those of namespace %s take %d KiB: delete some", e.tenant, resource.MaxAccountBytes>>10, namespace, size>>10))
	case !e.past[compiledResources]:
		return nil
	}
	return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("the resources of Tenant %s take more than %d KiB once they are compiled, the limit of all its namespaces together, and the largest namespaces are denied first; "+
		"those of namespace %s take about %d KiB, the largest is %s: %s", e.tenant, maxAccountWeight>>10, namespace, w.total>>10, w.most, lighten))
}

// refusalOfExceptions returns why the exceptions of a namespace are not in force, nil if they
// are.
func (e excess) refusalOfExceptions() error {
	switch {
	case e.past[exceptionSpecsKept]:
		return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it is not in force: the specs of the exceptions of Tenant %s take more than %d KiB, the limit of all its namespaces together, and the namespaces with the largest lose theirs first; delete some",
			e.tenant, resource.MaxAccountExceptionBytes>>10))
	case !e.past[compiledExceptions]:
		return nil
	}
	return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it is not in force: the exceptions of Tenant %s take more than %d KiB, the limit of all its namespaces together, and the namespaces with the largest lose theirs first; delete some",
		e.tenant, maxAccountExceptionWeight>>10))
}

// written returns how much memory the specs of a share of l take, those that are withheld
// too.
func (l *Objects) written(share resource.Share) (size int) {
	for _, s := range l.sizes {
		if (s.kind == v1beta1.KindException) == share.Exceptions {
			size += s.bytes
		}
	}
	return size
}

// counted returns what a share of some size counts against its account: nothing past its limit.
func counted(share resource.Share, size int) int {
	if size > share.Limit() {
		return 0
	}
	return size
}

// Crowded reports whether a share of some size does not fit into the limit of its Tenant's
// account, beside what s has of the Tenant's other namespaces. What is withheld of it is
// then not read again.
func (s *Snapshot) Crowded(share resource.Share, size int) bool {
	tenant := s.tenancy.Holder(share.Namespace)
	if tenant == nil {
		return false
	}
	namespace, all := verify.Namespace(share.Namespace), s.Candidates()[tenant.Name]
	if _, exists := s.levels[namespace]; !exists {
		all = append(slices.Clone(all), namespace)
	}
	return slices.Contains(s.past(tenant, all, share.AccountLimit(), func(n verify.Namespace) int {
		if n == namespace {
			return counted(share, size)
		}
		return s.loadOf(n)[kept(share)]
	}), namespace)
}

// Measured returns a Snapshot that can tell what [Snapshot.Crowded] does, and nothing else: it
// is cheap.
func Measured(o resource.Objects) *Snapshot {
	levels := Group(o)
	cluster := &Level{weighed: &weighed{Objects: levels[verify.Cluster]}}
	cluster.quotas = cluster.compileQuotas()
	s := &Snapshot{cluster: cluster, levels: map[verify.Namespace]*Level{}, members: &members{}}
	for namespace, found := range levels {
		if namespace != verify.Cluster {
			s.levels[namespace] = &Level{weighed: &weighed{Objects: found, load: loadOf(found, weight{})}}
		}
	}
	s.tenancy = newTenancy(cluster.Objects, s.labels())
	return s
}
