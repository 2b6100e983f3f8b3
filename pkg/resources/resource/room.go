package resource

import (
	"sync"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Share is a part of what an account writes that has limits of its own, in bytes of memory.
type Share int

const (
	// Specs are those of the resources of a namespace, without its Exceptions. A namespace
	// past the limit is denied.
	Specs Share = iota
	// Exceptions are apart, because too many of them must not deny anything: past the limit,
	// none of them is in force.
	Exceptions
	// References are the Secrets, ConfigMaps and ServiceAccounts that resources name. One past
	// the limit is not read.
	References
)

// String names what is in a share.
func (s Share) String() string {
	return [...]string{"resources", "Exceptions", "Secrets, ConfigMaps and ServiceAccounts"}[s]
}

// ShareOf returns the share of a resource, and false for the resources of the cluster, which
// have no limit together: admins write them.
func ShareOf(object v1beta1.Object) (share Share, limited bool) {
	if _, exception := object.(*v1beta1.Exception); exception {
		return Exceptions, true
	}
	return Specs, object.GetNamespace() != ""
}

// Limits returns how many bytes are kept of a share of a namespace, and how many of all namespaces
// of a Tenant together. The home namespace only has the limit of a namespace: its rules apply in
// the others, so these must not take its room.
//
// Compiled resources have lower limits, so only specs that are not compiled come close to these.
func (s Share) Limits() (namespace, tenant int) {
	if s == Exceptions {
		return 2 << 20, 2 << 20
	}
	return 4 << 20, 12 << 20
}

// Room bounds what a replica keeps of what accounts write. It only saves memory: whether a
// namespace is denied depends on the sizes of all its specs, kept or not, and so never on the
// order in which objects arrived. Its zero value is ready to use, and safe for concurrent use.
type Room struct {
	mu      sync.Mutex
	tenants *Tenants
	kept    map[string]map[any]place // by namespace, and by the key of Take
	taken   map[total]int            // the sums of kept
}

// place is what one key takes.
type place struct {
	share Share
	size  int
}

// total is a share of an account: of a namespace, or of the namespaces of a Tenant.
type total struct {
	account string // in words
	share   Share
}

// Keep is [Keep] for an object that is cached. It drops the spec if there is no room for it, and
// notes its size; [Missing] then says so.
func (r *Room) Keep(object v1beta1.Object) error {
	if err := Keep(object); err != nil {
		return err
	}
	share, limited := ShareOf(object)
	if _, before := withheld(object); before || !limited {
		return nil
	}
	size := Size(object)
	if full, _ := r.Take(share, object.GetNamespace(), RefOf(object), size); full != "" {
		withhold(object, size)
	}
	return nil
}

// Take replaces what is kept of key by size bytes. If an account has no room for them, it returns
// the account and its limit, and nothing is kept of key.
func (r *Room) Take(share Share, namespace string, key any, size int) (full string, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(namespace, key, place{})
	return r.admit(namespace, key, place{share, size})
}

// Settle says that of the resources of a namespace exactly these are cached. It returns those
// whose specs were dropped though all of their share fit now: the caller reads them.
func (r *Room) Settle(namespace string, objects []v1beta1.Object) (fitting []v1beta1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.kept[namespace] {
		r.put(namespace, key, place{})
	}
	sizes := map[Share]int{}
	var dropped []v1beta1.Object
	for _, object := range objects {
		share, _ := ShareOf(object)
		sizes[share] += Size(object)
		if Withheld(object) {
			dropped = append(dropped, object)
		} else {
			r.put(namespace, RefOf(object), place{share, Size(object)})
		}
	}
	for _, object := range dropped {
		share, _ := ShareOf(object)
		if limit, _ := share.Limits(); sizes[share] > limit {
			continue
		}
		if full, _ := r.admit(namespace, RefOf(object), place{share, Size(object)}); full == "" {
			fitting = append(fitting, object)
		}
	}
	return fitting
}

// Clear forgets what is kept.
func (r *Room) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept, r.taken = nil, nil
}

// Hold says which Tenant holds each namespace.
func (r *Room) Hold(tenants *Tenants) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tenants == tenants {
		return
	}
	r.tenants, r.taken = tenants, nil
	for namespace, all := range r.kept {
		for _, p := range all {
			r.add(namespace, p, 1)
		}
	}
}

// accounts returns the account of a namespace alone, and that of its Tenant, "" if it counts for
// none.
func (r *Room) accounts(namespace string) (own, tenant string) {
	own = "namespace " + namespace
	if r.tenants == nil {
		return own, ""
	}
	if holder := r.tenants.Holder(namespace); holder != nil && holder.Spec.HomeNamespace != namespace {
		tenant = "Tenant " + holder.Name
	}
	return own, tenant
}

// admit adds what is kept of key, or returns the account that has no room for it.
func (r *Room) admit(namespace string, key any, p place) (full string, limit int) {
	own, tenant := r.accounts(namespace)
	limit, together := p.share.Limits()
	switch {
	case r.taken[total{own, p.share}]+p.size > limit:
		return own, limit
	case tenant != "" && r.taken[total{tenant, p.share}]+p.size > together:
		return tenant, together
	}
	r.put(namespace, key, p)
	return "", 0
}

// put replaces what is kept of key; size 0 is nothing.
func (r *Room) put(namespace string, key any, p place) {
	if r.kept == nil {
		r.kept = map[string]map[any]place{}
	}
	all := r.kept[namespace]
	if all == nil {
		all = map[any]place{}
		r.kept[namespace] = all
	}
	r.add(namespace, all[key], -1)
	r.add(namespace, p, 1)
	if all[key] = p; p.size == 0 {
		delete(all, key)
	}
	if len(all) == 0 {
		delete(r.kept, namespace)
	}
}

// add adds what is kept, or takes it off, at the accounts of a namespace.
func (r *Room) add(namespace string, p place, sign int) {
	if r.taken == nil {
		r.taken = map[total]int{}
	}
	own, tenant := r.accounts(namespace)
	for _, t := range []total{{own, p.share}, {tenant, p.share}} {
		if r.taken[t] += sign * p.size; r.taken[t] == 0 || t.account == "" {
			delete(r.taken, t)
		}
	}
}
