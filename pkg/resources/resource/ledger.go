package resource

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Ledger bounds what is kept of the resources of each [Share] together, and of the shares of a
// Tenant's namespaces. It knows the Tenants that it was given, so these come first. Its zero
// value is ready to use, and may be used by several goroutines.
//
// It knows what came, not what went: whoever keeps the objects says with [Ledger.Settle] what
// is left. Whether a namespace is denied never depends on a Ledger, and so never on the order
// in which objects came, but on their sizes alone.
type Ledger struct {
	mu      sync.Mutex
	shares  map[Share]*holding
	tenants map[string]*v1beta1.Tenant // what matters of them
	labels  Labels
	// holders is made of tenants and labels, nil if they have changed since, and totals of all: what
	// the shares of all namespaces of a Tenant take.
	holders *Tenants
	totals  map[tenantShare]int
}

// holding is what is kept of one share.
type holding struct {
	total int
	sizes map[identity]int
}

// tenantShare is the shares of a Tenant's namespaces of one sort.
type tenantShare struct {
	tenant     string
	exceptions bool
}

// identity is of one object. A UID alone would be, but not every source of objects sets it.
type identity struct {
	kind, name string
	uid        types.UID
}

func identityOf(object v1beta1.Object) identity {
	return identity{kind: RefOf(object).Kind, name: object.GetName(), uid: object.GetUID()}
}

// Keep is [Keep] for an object that is going to be kept with those of earlier calls. It drops
// the spec if those of its share take too much otherwise; [Missing] then says so, and
// [ReadAgain] when to read it again.
func (l *Ledger) Keep(object v1beta1.Object) error {
	if err := Keep(object); err != nil {
		return err
	}
	if tenant, ok := object.(*v1beta1.Tenant); ok {
		l.know(tenant)
	}
	share, limited := ShareOf(object)
	if _, before := withheld(object); before || !limited {
		return nil
	}
	if size := Size(object); !l.charge(share, identityOf(object), size) {
		withhold(object, size)
	}
	return nil
}

// charge adds an object to its share, or replaces it. It reports false, and leaves the object
// out, if the share or its Tenant has no room for it. What does not grow always has.
func (l *Ledger) charge(share Share, id identity, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.of(share)
	was := h.sizes[id]
	tenant, held := l.tenantOf(share)
	if size > was && (h.total-was+size > share.Limit() || held && l.totals[tenant]-was+size > share.AccountLimit()) {
		l.add(share, -was)
		delete(h.sizes, id)
		return false
	}
	l.add(share, size-was)
	h.sizes[id] = size
	return true
}

// of returns what is kept of a share.
func (l *Ledger) of(share Share) *holding {
	h := l.shares[share]
	if h == nil {
		h = &holding{sizes: map[identity]int{}}
		if l.shares == nil {
			l.shares = map[Share]*holding{}
		}
		l.shares[share] = h
	}
	return h
}

// add adds to what a share takes.
func (l *Ledger) add(share Share, size int) {
	tenant, held := l.tenantOf(share) // which may sum up what is there
	if l.of(share).total += size; held {
		l.totals[tenant] += size
	}
}

// tenantOf returns whose total a share is part of, and false if no Tenant holds its namespace.
func (l *Ledger) tenantOf(share Share) (tenantShare, bool) {
	holder := l.current().Holder(share.Namespace)
	if holder == nil {
		return tenantShare{}, false
	}
	return tenantShare{tenant: holder.Name, exceptions: share.Exceptions}, true
}

// Holder returns the name of the Tenant that holds a namespace, "" if none does.
func (l *Ledger) Holder(namespace string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder := l.current().Holder(namespace); holder != nil {
		return holder.Name
	}
	return ""
}

// current returns holders, and makes it and totals if Tenants have changed.
func (l *Ledger) current() *Tenants {
	if l.holders == nil {
		l.holders, l.totals = NewTenants(slices.Collect(maps.Values(l.tenants))).Labelled(l.labels), map[tenantShare]int{}
		for share, h := range l.shares {
			if tenant, held := l.tenantOf(share); held {
				l.totals[tenant] += h.total
			}
		}
	}
	return l.holders
}

// know says that there is a Tenant.
func (l *Ledger) know(tenant *v1beta1.Tenant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := membership(tenant)
	if reflect.DeepEqual(l.tenants[tenant.Name], is) {
		return // another status, for example
	}
	if l.tenants == nil {
		l.tenants = map[string]*v1beta1.Tenant{}
	}
	l.tenants[tenant.Name], l.holders = is, nil
}

// Label says which Tenant the label of a namespace names, "" for none or if the namespace is gone.
func (l *Ledger) Label(namespace, tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, moved := l.current().Relabelled(namespace, tenant)
	if l.holders, l.labels = next, next.labels; moved {
		l.holders = nil
	}
}

// Relabel says that there are no labels of namespaces but these.
func (l *Ledger) Relabel(labels Labels) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.labels, l.holders = labels, nil
}

// membership returns what says which namespaces a Tenant holds.
func membership(tenant *v1beta1.Tenant) *v1beta1.Tenant {
	is := &v1beta1.Tenant{}
	is.Name, is.CreationTimestamp = tenant.Name, tenant.CreationTimestamp
	is.Spec.HomeNamespace, is.Spec.Namespaces, is.Spec.NamespacePrefix = tenant.Spec.HomeNamespace, tenant.Spec.Namespaces, tenant.Spec.NamespacePrefix
	return is
}

// Settle says that of the objects of a namespace, or of the cluster, exactly these are kept.
func (l *Ledger) Settle(namespace string, objects []v1beta1.Object) {
	if namespace == "" {
		l.settleTenants(objects)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, exceptions := range []bool{false, true} {
		share := Share{Namespace: namespace, Exceptions: exceptions}
		if h := l.shares[share]; h != nil {
			l.add(share, -h.total)
			delete(l.shares, share)
		}
	}
	for _, object := range objects {
		share, limited := ShareOf(object)
		if _, ok := withheld(object); ok || !limited {
			continue
		}
		size := Size(object)
		l.add(share, size)
		l.of(share).sizes[identityOf(object)] = size
	}
}

// settleTenants says that there are no Tenants but these.
func (l *Ledger) settleTenants(objects []v1beta1.Object) {
	are := map[string]*v1beta1.Tenant{}
	for _, object := range objects {
		if tenant, ok := object.(*v1beta1.Tenant); ok {
			are[tenant.Name] = membership(tenant)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !maps.EqualFunc(l.tenants, are, func(a, b *v1beta1.Tenant) bool { return reflect.DeepEqual(a, b) }) {
		l.tenants, l.holders = are, nil
	}
}
