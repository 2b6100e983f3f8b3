package compile

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// written returns how much memory the specs of a share of l take, those that are withheld
// too.
func (l *objects) written(share resource.Share) (size int) {
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
	tenant := s.tenants.Holder(share.Namespace)
	if tenant == nil {
		return false
	}
	namespace, all := verify.Namespace(share.Namespace), s.candidates()[tenant.Name]
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
	cluster := &level{objects: levels[verify.Cluster]}
	cluster.quotas = cluster.compileQuotas(cluster.objects.quotas)
	s := &Snapshot{cluster: cluster, tenants: newTenancy(cluster.objects), levels: map[verify.Namespace]*level{}, members: &members{}}
	for namespace, found := range levels {
		if namespace != verify.Cluster {
			s.levels[namespace] = &level{objects: found, load: loadOf(found, weight{})}
		}
	}
	return s
}

// Resettled returns the namespaces that came past the limits of specs of their account since
// an earlier snapshot, or no longer are: other specs of them have to be read again.
func (s *Snapshot) Resettled(earlier *Snapshot) (list []verify.Namespace) {
	for namespace, l := range s.levels {
		var was excess
		if before := earlier.levels[namespace]; before != nil {
			was = before.excess
		}
		if was.past[specsKept] != l.excess.past[specsKept] || was.past[exceptionSpecsKept] != l.excess.past[exceptionSpecsKept] {
			list = append(list, namespace)
		}
	}
	return list
}
