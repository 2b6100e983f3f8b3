package controller

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// room bounds what is kept of the Secrets, ConfigMaps and ServiceAccounts of one namespace
// together, and of those of a Tenant's namespaces, however many others refer to them.
type room struct {
	holder func(namespace string) (tenant string) // "" if none holds it

	mu    sync.Mutex
	taken map[verify.Account]int
}

// place is what one object takes of a room.
type place struct {
	room *room
	of   policy.ObjectRef
	size int
	at   []verify.Account // which it counts against
}

// take makes room for an object instead of its last version; nil gives back what that had. It
// returns an error if there is no room, and has given it back then, too.
func (p *place) take(object runtime.Object) error {
	size, refusal := sizeOf(object)
	namespace, tenant := verify.Namespace(p.of.Namespace).Account(), p.room.holder(p.of.Namespace)
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	p.add(-p.size)
	p.size, p.at = 0, []verify.Account{namespace}
	if tenant != "" {
		p.at = append(p.at, verify.TenantAccount(tenant))
	}
	if refusal != nil {
		return refusal
	}
	for _, account := range p.at {
		limit := maxReferenceBytes
		if account != namespace {
			limit = maxTenantReferenceBytes
		}
		if p.room.taken[account]+size > limit {
			return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it has %d KiB, and the Secrets, ConfigMaps and ServiceAccounts of %s that resources name may take %d KiB together: make it or others smaller, or delete what names them",
				size>>10, account.Describe(), limit>>10))
		}
	}
	p.add(size)
	p.size = size
	return nil
}

func (p *place) add(size int) {
	r := p.room
	if r.taken == nil {
		r.taken = map[verify.Account]int{}
	}
	for _, account := range p.at {
		if r.taken[account] += size; r.taken[account] == 0 {
			delete(r.taken, account)
		}
	}
}

// sizeOf returns how much memory a Secret, ConfigMap or ServiceAccount takes, in bytes, or an
// error if it has so many entries that it is not kept. Short entries take far more than their
// text.
func sizeOf(object runtime.Object) (size int, err error) {
	count, what := 0, "keys"
	add := func(length int) { size, count = size+entryBytes+length, count+1 }
	switch object := object.(type) {
	case *corev1.Secret:
		for key, value := range object.Data {
			add(len(key) + len(value))
		}
		size += len(object.Type)
	case *corev1.ConfigMap:
		for key, value := range object.Data {
			add(len(key) + len(value))
		}
		for key, value := range object.BinaryData {
			add(len(key) + len(value))
		}
		for key, value := range object.Annotations {
			size += len(key) + len(value)
		}
	case *corev1.ServiceAccount:
		what = "imagePullSecrets"
		for _, secret := range object.ImagePullSecrets {
			add(len(secret.Name))
		}
	}
	if count > maxEntries {
		return 0, resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it has %d %s, the limit is %d: keep what is needed in an object of its own", count, what, maxEntries))
	}
	return size, nil
}
