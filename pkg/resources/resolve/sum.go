package resolve

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// sumBits is the width of [Snapshot.Sum]: a float64, which a metric is, holds it exactly.
const sumBits = 48

// Sum returns a number of 48 bits for the objects that s was compiled from: namespaces, resources, and
// the Secrets, ConfigMaps and ServiceAccounts that these reference. Two snapshots of the same objects
// have the same Sum, in whatever order the objects arrived. Trust material from outside the cluster
// does not count, because replicas fetch it at different times. Only levels that changed since the
// last call are hashed again.
func (s *Snapshot) Sum() uint64 {
	sum := s.cluster.Objects.hash()
	for _, l := range s.levels {
		sum += l.Objects.hash() // in any order: each hash has the name of its namespace
	}
	return sum & (1<<sumBits - 1)
}

// levelHash is the hash of the objects of one level, once somebody asked for it.
type levelHash struct {
	once  sync.Once
	value uint64
}

// hash returns a hash of what the level's owners wrote. Texts of errors are left out: they may
// differ between replicas.
func (l *Objects) hash() uint64 {
	l.hashed.once.Do(func() {
		parts := []string{string(l.Namespace), l.uid, fmt.Sprint(l.broken != nil, l.ending)}
		for _, key := range compile.SortedKeys(l.annotations) {
			parts = append(parts, key, l.annotations[key])
		}
		parts = hashSpecs(parts, l.Verifiers, false)
		parts = hashSpecs(parts, l.Stores, false)
		parts = hashSpecs(parts, l.TrustStores, false)
		parts = hashSpecs(parts, l.policies, false)
		parts = hashSpecs(parts, l.exceptions, true)
		parts = hashSpecs(parts, l.Quotas, false)
		parts = hashSpecs(parts, compile.MapSlice(l.tenants, func(e compile.Entry[*v1beta1.Tenant]) compile.Entry[v1beta1.TenantSpec] {
			return compile.Entry[v1beta1.TenantSpec]{Source: e.Source, Created: e.Created, Spec: e.Spec.Spec, Broken: e.Broken}
		}), true)
		for _, source := range l.references() {
			parts = l.hashReferenced(parts, source)
		}
		sum := sha256.Sum256([]byte(compile.DigestOf(parts)))
		l.hashed.value = binary.BigEndian.Uint64(sum[:])
	})
	return l.hashed.value
}

// hashSpecs adds resources of one kind to parts. If dated, their times of creation decide, too.
func hashSpecs[S any](parts []string, entries []compile.Entry[S], dated bool) []string {
	for _, e := range entries {
		encoded, err := json.Marshal(e.Spec)
		created := ""
		if dated {
			created = e.Created.UTC().Format(time.RFC3339Nano)
		}
		parts = append(parts, e.Source.String(), string(encoded), created, fmt.Sprint(e.Broken != nil, err != nil))
	}
	return parts
}

// references returns the Secrets, ConfigMaps and ServiceAccounts that the resources of a level
// reference, sorted and without duplicates.
func (l *Objects) references() []policy.ObjectRef {
	var fields []resource.Field
	for _, e := range l.Stores {
		fields = append(fields, resource.FieldsOfStore(e.Spec)...)
	}
	for _, e := range l.TrustStores {
		fields = append(fields, resource.FieldsOfTrustStore(e.Spec)...)
	}
	for _, e := range l.Verifiers {
		fields = append(fields, resource.FieldsOfVerifier(e.Spec)...)
	}
	var all []policy.ObjectRef
	for _, f := range fields {
		all = append(all, f.Named(l.referenced.Namespace, l.referenced.Pulls)...)
	}
	return sortedRefs(all)
}

// hashReferenced adds the content of an object that the level references to parts: of each value two
// bytes of its hash, which show a difference, and are too few to find a password by the metric.
func (l *Objects) hashReferenced(parts []string, source policy.ObjectRef) []string {
	parts = append(parts, source.String())
	if source.Kind == resource.KindServiceAccount {
		names, ok := l.referenced.Pulls[source]
		return append(append(parts, fmt.Sprint(ok, len(names))), names...)
	}
	content, err := l.referenced.Object(source)
	parts = append(parts, fmt.Sprint(err == nil, len(content)))
	for _, key := range compile.SortedKeys(content) {
		sum := sha256.Sum256(content[key])
		parts = append(parts, key, fmt.Sprintf("%x", sum[:2]))
	}
	return parts
}
