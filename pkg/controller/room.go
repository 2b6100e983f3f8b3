package controller

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
)

// room bounds what is kept of the Secrets, ConfigMaps and ServiceAccounts of one namespace
// together, however many others refer to them. Its zero value is ready to use.
type room struct {
	mu    sync.Mutex
	taken map[string]int // by namespace
}

// place is what one object takes of a room.
type place struct {
	room *room
	of   policy.ObjectRef
	size int
}

// take makes room for an object instead of its last version; nil gives back what that had. It
// returns an error if there is no room, and has given it back then, too.
func (p *place) take(object runtime.Object) error {
	size := 0
	if sized, ok := object.(interface{ Size() int }); ok {
		size = sized.Size()
	}
	r, namespace := p.room, p.of.Namespace
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken == nil {
		r.taken = map[string]int{}
	}
	rest := r.taken[namespace] - p.size
	fits := rest+size <= maxReferenceBytes
	p.size = 0
	if fits {
		p.size = size
	}
	if r.taken[namespace] = rest + p.size; r.taken[namespace] == 0 {
		delete(r.taken, namespace)
	}
	if !fits {
		return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it has %d KiB, and the Secrets, ConfigMaps and ServiceAccounts of namespace %s that resources name may take %d KiB together: make it or others smaller, or delete what names them",
			size>>10, namespace, maxReferenceBytes>>10))
	}
	return nil
}
