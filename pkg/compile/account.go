package compile

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// excess says what of a namespace is past the limits of its Tenant's account. The zero value
// is a namespace within them.
type excess struct {
	tenant                string
	resources, exceptions bool
	// specs and exceptionSpecs are the same of what the specs take, whatever is compiled. They
	// imply the others.
	specs, exceptionSpecs bool
}

// accountOf returns whose quota a namespace uses: that of tenant, which holds it, unless that
// is nil or a ClusterQuota lists the namespace itself.
func (s *Snapshot) accountOf(namespace verify.Namespace, tenant *v1alpha1.Tenant) verify.Account {
	account := namespace.Account()
	if _, own := s.cluster.quotas[account]; own || tenant == nil {
		return account
	}
	return verify.TenantAccount(tenant.Name)
}

// excesses adds the namespaces of a Tenant's account that are past its limits to found. It is a
// pure function of what they weigh, so that every replica agrees, whatever changed first. Of
// namespaces whose specs are past a limit nobody knows all specs: they weigh nothing.
func (s *Snapshot) excesses(tenant *v1alpha1.Tenant, found map[verify.Namespace]excess) {
	mark := func(limit int, weight func(verify.Namespace) int, set func(*excess)) {
		for _, namespace := range s.past(tenant, s.candidates()[tenant.Name], limit, weight) {
			e := found[namespace]
			e.tenant = tenant.Name
			set(&e)
			found[namespace] = e
		}
	}
	mark(resource.MaxAccountBytes, func(n verify.Namespace) int { return s.written(resource.Share{Namespace: string(n)}) },
		func(e *excess) { e.specs, e.resources = true, true })
	mark(resource.MaxAccountExceptionBytes, func(n verify.Namespace) int { return s.written(resource.Share{Namespace: string(n), Exceptions: true}) },
		func(e *excess) { e.exceptionSpecs, e.exceptions = true, true })
	mark(maxAccountWeight, func(n verify.Namespace) int {
		if found[n].specs {
			return 0
		}
		return s.levels[n].weight.resources()
	}, func(e *excess) { e.resources = true })
	mark(maxAccountExceptionWeight, func(n verify.Namespace) int {
		if found[n].exceptionSpecs {
			return 0
		}
		return s.levels[n].weight.exceptions
	}, func(e *excess) { e.exceptions = true })
}

// past returns those of all namespaces of a Tenant that do not fit into a limit of its account
// together. Home comes first, because its rules hold in the others, then those that weigh
// least: none loses its rules to one that weighs more.
func (s *Snapshot) past(tenant *v1alpha1.Tenant, all []verify.Namespace, limit int, weight func(verify.Namespace) int) []verify.Namespace {
	if total(all, weight) <= limit {
		return nil
	}
	account := slices.DeleteFunc(slices.Clone(all), func(n verify.Namespace) bool { return s.accountOf(n, tenant) != verify.TenantAccount(tenant.Name) })
	rank := func(n verify.Namespace) int {
		if string(n) == tenant.Spec.Home {
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
	case !e.resources:
		return nil
	case e.specs:
		return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("the specs of the resources of Tenant %s take more than %d KiB, the limit of all its namespaces together, and the largest namespaces are denied first; "+
			"those of namespace %s take %d KiB: delete some", e.tenant, resource.MaxAccountBytes>>10, namespace, size>>10))
	}
	return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("the resources of Tenant %s take more than %d KiB once they are compiled, the limit of all its namespaces together, and the largest namespaces are denied first; "+
		"those of namespace %s take about %d KiB, the largest is %s with %d KiB: %s", e.tenant, maxAccountWeight>>10, namespace, w.total>>10, w.largest, w.most>>10, lighten))
}

// refusalOfExceptions returns why the exceptions of a namespace are not in force, nil if they
// are.
func (e excess) refusalOfExceptions() error {
	switch {
	case !e.exceptions:
		return nil
	case e.exceptionSpecs:
		return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it is not in force: the specs of the exceptions of Tenant %s take more than %d KiB, the limit of all its namespaces together, and the namespaces with the largest lose theirs first; delete some",
			e.tenant, resource.MaxAccountExceptionBytes>>10))
	}
	return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it is not in force: the exceptions of Tenant %s take more than %d KiB, the limit of all its namespaces together, and the namespaces with the largest lose theirs first; delete some",
		e.tenant, maxAccountExceptionWeight>>10))
}

// settle compiles the given levels if they are only weighed, or if they pass the limits of
// their account or no longer do. It returns the namespaces that it compiled.
func (s *Snapshot) settle(namespaces iter.Seq[verify.Namespace], excesses map[verify.Namespace]excess) []verify.Namespace {
	var compiled []verify.Namespace
	for namespace := range namespaces {
		if l := s.levels[namespace]; !l.compiled || l.excess != excesses[namespace] {
			c := &compiler{material: l.objects.material, outside: s.outside}
			s.levels[namespace] = c.level(l, s.cluster, excesses[namespace])
			compiled = append(compiled, namespace)
		}
	}
	return compiled
}

// settleAll is settle for every namespace.
func (s *Snapshot) settleAll() {
	excesses := map[verify.Namespace]excess{}
	for name := range s.candidates() {
		s.excesses(s.tenants.Named(name), excesses)
	}
	s.settle(maps.Keys(s.levels), excesses)
}

// settleAccount is settle for the namespaces that may share the account of one, and itself.
func (s *Snapshot) settleAccount(namespace verify.Namespace) []verify.Namespace {
	excesses := map[verify.Namespace]excess{}
	if tenant := s.tenants.Holder(string(namespace)); tenant != nil {
		s.excesses(tenant, excesses)
		return s.settle(slices.Values(s.candidates()[tenant.Name]), excesses)
	}
	if _, exists := s.levels[namespace]; !exists {
		return nil
	}
	return s.settle(slices.Values([]verify.Namespace{namespace}), excesses)
}
