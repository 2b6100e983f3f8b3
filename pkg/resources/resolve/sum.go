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

// sumBits is the width of [Snapshot.Sums]: a float64, which a metric is, holds it exactly.
const sumBits = 48

// Sums returns a number of 48 bits each for the cluster's objects and for those of namespaces that s was
// compiled from: namespaces, resources, and the Secrets, ConfigMaps and ServiceAccounts that these
// reference. Two snapshots of the same objects have the same Sums, in whatever order the objects
// arrived. Trust material from outside the cluster does not count, because replicas fetch it at different
// times. Only levels that changed since the last call are hashed again.
func (s *Snapshot) Sums() (cluster, namespaces uint64) {
	for _, l := range s.levels {
		past := l.excess != (excess{}) || l.Objects.excess(false) != nil || l.Objects.excess(true) != nil
		namespaces += l.Objects.hash(past) // in any order: each hash has the name of its namespace
	}
	const mask = 1<<sumBits - 1
	return s.cluster.Objects.hash(false) & mask, namespaces & mask
}

// levelHash is the hash of the objects of one level, once somebody asked for it.
type levelHash struct {
	whole, names     sync.Once
	ofWhole, ofNames uint64
}

// hash returns a hash of what the level's owners wrote. Texts of errors are left out: they may
// differ between replicas. With names, specs are left out, too: past a limit, which of them are
// kept depends on the order in which they arrived.
func (l *Objects) hash(names bool) uint64 {
	if names {
		l.hashed.names.Do(func() { l.hashed.ofNames = l.hashNow(true) })
		return l.hashed.ofNames
	}
	l.hashed.whole.Do(func() { l.hashed.ofWhole = l.hashNow(false) })
	return l.hashed.ofWhole
}

func (l *Objects) hashNow(names bool) uint64 {
	parts := []string{string(l.Namespace), l.uid, l.labelled, fmt.Sprint(l.broken != nil, l.ending, names)}
	for _, key := range compile.SortedKeys(l.annotations) {
		parts = append(parts, key, l.annotations[key])
	}
	parts = hashSpecs(parts, l.Verifiers, names, false)
	parts = hashSpecs(parts, l.Stores, names, false)
	parts = hashSpecs(parts, l.TrustStores, names, false)
	parts = hashSpecs(parts, l.policies, names, false)
	parts = hashSpecs(parts, l.exceptions, names, true)
	parts = hashSpecs(parts, l.Quotas, names, false)
	parts = hashSpecs(parts, compile.MapSlice(l.tenants, func(e compile.Entry[*v1beta1.Tenant]) compile.Entry[v1beta1.TenantSpec] {
		return compile.Entry[v1beta1.TenantSpec]{Source: e.Source, Created: e.Created, Spec: e.Spec.Spec, Broken: e.Broken}
	}), names, true)
	if !names {
		for _, source := range l.references() {
			parts = l.hashReferenced(parts, source)
		}
	}
	sum := sha256.Sum256([]byte(compile.DigestOf(parts)))
	return binary.BigEndian.Uint64(sum[:])
}

// hashSpecs adds resources of one kind to parts, or their names. If dated, their times of creation
// decide, too.
func hashSpecs[S any](parts []string, entries []compile.Entry[S], names, dated bool) []string {
	for _, e := range entries {
		if names {
			parts = append(parts, e.Source.String())
			continue
		}
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
