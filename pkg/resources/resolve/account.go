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

// amount is the bytes of specs, and what these keep once they are compiled.
type amount struct{ bytes, weight int }

// bound is a limit of a Tenant.
type bound int

const (
	within bound = iota
	byBytes
	byWeight
)

// excess says which limits of its Tenant a namespace is past. The zero value is a namespace
// within them.
type excess struct {
	tenant string
	past   [2]bound // by share
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

// excesses says which of some namespaces are past the limits of their Tenant. If there is one of a
// Tenant, there are all of it. It is a pure function of what the namespaces have, so that every
// replica agrees, whatever changed first.
func (s *Snapshot) excesses(namespaces []verify.Namespace) map[verify.Namespace]excess {
	sums := map[*v1beta1.Tenant][2]amount{} // by share
	for _, namespace := range namespaces {
		tenant := s.tenancy.Holder(string(namespace))
		if tenant == nil {
			continue
		}
		sum := sums[tenant]
		for i := range sum {
			own, share := s.levels[namespace], resource.Share(i)
			if sum[i].weight += own.weight.of(share); string(namespace) != tenant.Spec.HomeNamespace {
				// As resource.Room counts: no namespace alone takes the room of the Tenant's others.
				limit, _ := share.Limits()
				sum[i].bytes += min(own.Objects.bytes[i], limit)
			}
		}
		sums[tenant] = sum
	}
	found := map[verify.Namespace]excess{}
	for tenant, sum := range sums {
		for share := range sum {
			limit, past := s.past(tenant, resource.Share(share), sum[share])
			for _, namespace := range past {
				e := found[namespace]
				e.tenant, e.past[share] = tenant.Name, limit
				found[namespace] = e
			}
		}
	}
	return found
}

// past returns which limit the sum of a share of a Tenant's namespaces is past, and the namespaces
// that are denied for it. If too many bytes were written, nobody knows all specs, so these are all
// but home.
func (s *Snapshot) past(tenant *v1beta1.Tenant, share resource.Share, sum amount) (bound, []verify.Namespace) {
	_, most := share.Limits()
	heaviest := [...]int{maxAccountWeight, maxAccountExceptionWeight}[share]
	if sum.bytes <= most && sum.weight <= heaviest {
		return within, nil
	}
	all := slices.Clone(s.Candidates()[tenant.Name])
	if sum.bytes > most {
		return byBytes, slices.DeleteFunc(all, func(n verify.Namespace) bool { return string(n) == tenant.Spec.HomeNamespace })
	}
	account := slices.DeleteFunc(all, func(n verify.Namespace) bool { return s.accountOf(n, tenant) != verify.TenantAccount(tenant.Name) })
	return byWeight, s.heaviest(account, verify.Namespace(tenant.Spec.HomeNamespace), share, heaviest)
}

// heaviest returns those of a Tenant's namespaces whose weights do not fit into a limit together.
// Home comes first, because its rules apply in the others, then those that weigh least: none loses
// its rules to one that weighs more.
func (s *Snapshot) heaviest(account []verify.Namespace, home verify.Namespace, share resource.Share, limit int) []verify.Namespace {
	weight := func(n verify.Namespace) int { return s.levels[n].weight.of(share) }
	rank := func(n verify.Namespace) int {
		if n == home {
			return -1
		}
		return weight(n)
	}
	slices.SortFunc(account, func(a, b verify.Namespace) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	for i, namespace := range account {
		if limit -= weight(namespace); limit < 0 {
			return account[i:]
		}
	}
	return nil
}

// tooLarge returns why the specs of a share are not all kept, nil if they are.
func (l *Level) tooLarge(share resource.Share) error {
	if err := l.Objects.tooLarge(share); err != nil || l.excess.past[share] != byBytes {
		return err
	}
	_, limit := share.Limits()
	return resource.Reasoned(policy.ReasonLimitExceeded,
		fmt.Errorf("the specs of the %s of Tenant %s take more than %d KiB, the limit of all its namespaces but the home namespace together; "+
			"those of namespace %s take %d KiB: delete some",
			share, l.excess.tenant, limit>>10, l.Objects.Namespace, l.Objects.bytes[share]>>10))
}

// tooHeavy returns why the resources of a namespace are not compiled though they are kept, nil if they are compiled.
func (l *Level) tooHeavy() error {
	if l.weight.refused != nil || l.excess.past[resource.Specs] != byWeight {
		return l.weight.refused
	}
	return resource.Reasoned(policy.ReasonLimitExceeded,
		fmt.Errorf("the resources of Tenant %s take more than %d KiB once they are compiled, the limit of all its namespaces together, and the "+
			"largest namespaces are denied first; "+
			"those of namespace %s take about %d KiB, %s", l.excess.tenant, maxAccountWeight>>10, l.Objects.Namespace, l.weight.total>>10,
			l.weight.advice()))
}

// refusedExceptions returns why no exceptions of a namespace are in force, nil if they may be.
func (l *Level) refusedExceptions() error {
	if l.excess.past[resource.Exceptions] != byWeight {
		return nil
	}
	return resource.Reasoned(policy.ReasonLimitExceeded,
		fmt.Errorf("it is not in force: the exceptions of Tenant %s take more than %d KiB, the limit of all its namespaces together, and the "+
			"namespaces with the largest lose theirs first; delete some",
			l.excess.tenant, maxAccountExceptionWeight>>10))
}

// Lacks reports whether specs of a namespace were dropped from the cache though all of them fit, so
// that they have to be read.
func (s *Snapshot) Lacks(namespace verify.Namespace) bool {
	l := s.Level(namespace)
	for share, some := range l.Objects.withheld {
		if some && l.tooLarge(resource.Share(share)) == nil {
			return true
		}
	}
	return false
}
