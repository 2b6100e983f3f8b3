package resource

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

// Ledger bounds what is kept of the resources of each [Share] together. Its zero value is
// ready to use, and may be used by several goroutines.
//
// It knows what came, not what went: whoever keeps the objects says with [Ledger.Settle] what
// is left. Whether a namespace is denied never depends on a Ledger, and so never on the order
// in which objects came, but on their sizes alone.
type Ledger struct {
	mu     sync.Mutex
	shares map[Share]*account
}

// account is what is kept of one share.
type account struct {
	total int
	sizes map[identity]int
}

// identity is of one object. A UID alone would be, but not every source of objects sets it.
type identity struct {
	kind, name string
	uid        types.UID
}

func identityOf(object v1alpha1.Object) identity {
	return identity{kind: RefOf(object).Kind, name: object.GetName(), uid: object.GetUID()}
}

// Keep is [Keep] for an object that is going to be kept with those of earlier calls. It drops
// the spec if those of its share take too much otherwise; [Missing] then says so, and
// [ReadAgain] when to read it again.
func (l *Ledger) Keep(object v1alpha1.Object) error {
	if err := Keep(object); err != nil {
		return err
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
// out, if the share has no room for it. What does not grow always has.
func (l *Ledger) charge(share Share, id identity, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.of(share)
	was := a.sizes[id]
	if size > was && a.total-was+size > share.Limit() {
		a.total -= was
		delete(a.sizes, id)
		return false
	}
	a.total += size - was
	a.sizes[id] = size
	return true
}

// of returns the account of a share.
func (l *Ledger) of(share Share) *account {
	a := l.shares[share]
	if a == nil {
		a = &account{sizes: map[identity]int{}}
		if l.shares == nil {
			l.shares = map[Share]*account{}
		}
		l.shares[share] = a
	}
	return a
}

// Settle says that of the objects of a namespace exactly these are kept.
func (l *Ledger) Settle(namespace string, objects []v1alpha1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, exceptions := range []bool{false, true} {
		delete(l.shares, Share{Namespace: namespace, Exceptions: exceptions})
	}
	for _, object := range objects {
		share, limited := ShareOf(object)
		if _, ok := withheld(object); ok || !limited {
			continue
		}
		a, size := l.of(share), Size(object)
		a.total += size
		a.sizes[identityOf(object)] = size
	}
}
