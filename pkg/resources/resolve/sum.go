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

// sumBits is the width of [Snapshot.Sums]: a metric is a float64, which holds it exactly.
const sumBits = 48

// Sums returns a number of 48 bits each for the cluster's objects and for those of namespaces that s was
// compiled from: namespaces, resources, and the Secrets, ConfigMaps and ServiceAccounts that these
// reference. Two snapshots of the same objects have the same Sums, in whatever order the objects arrived.
// Trust material from outside the cluster does not count, because replicas fetch it at different times.
// Each call only hashes levels that changed since the last one.
func (s *Snapshot) Sums() (cluster, namespaces uint64) {
	for _, l := range s.levels {
		past := l.tooLarge(resource.Specs) != nil || l.tooLarge(resource.Exceptions) != nil
		namespaces += l.Objects.hash(past) // in any order: each hash has the name of its namespace
	}
	const mask = 1<<sumBits - 1
	return s.cluster.Objects.hash(false) & mask, namespaces & mask
}

// levelHash is the hash of the objects of one level, computed on demand.
type levelHash struct {
	once sync.Once
	of   uint64
}

// hash returns a hash of the content that the level's owners wrote. It omits texts of errors,
// which may differ between replicas. With names, it also omits specs: past a limit, the order
// of arrival determines which of them are kept.
func (l *Objects) hash(names bool) uint64 {
	if names {
		return l.hashNow(true) // few namespaces are past a limit
	}
	l.hashed.once.Do(func() { l.hashed.of = l.hashNow(false) })
	return l.hashed.of
}

func (l *Objects) hashNow(names bool) uint64 {
	parts := []string{string(l.Namespace), l.uid, l.labelled, fmt.Sprint(l.broken != nil, l.ending, names)}
	for _, key := range compile.SortedKeys(l.annotations) {
		parts = append(parts, key, l.annotations[key])
	}
	for _, e := range l.entries {
		if parts = append(parts, e.Source.String()); !names {
			parts = hashSpec(parts, e)
		}
	}
	if !names {
		for _, source := range l.references() {
			parts = l.hashReferenced(parts, source)
		}
	}
	sum := sha256.Sum256([]byte(compile.DigestOf(parts)))
	return binary.BigEndian.Uint64(sum[:])
}

// hashSpec adds the spec of a resource to parts, with its creation time if that matters, too.
func hashSpec(parts []string, e compile.Entry[any]) []string {
	spec, created := e.Spec, ""
	switch whole := e.Spec.(type) {
	case *v1beta1.Tenant:
		spec, created = whole.Spec, e.Created.UTC().Format(time.RFC3339Nano)
	case *v1beta1.ExceptionSpec:
		created = e.Created.UTC().Format(time.RFC3339Nano)
	}
	encoded, err := json.Marshal(spec)
	return append(parts, string(encoded), created, fmt.Sprint(e.Broken != nil, err != nil))
}

// references returns the Secrets, ConfigMaps and ServiceAccounts that the resources of a level
// reference, sorted and without duplicates.
func (l *Objects) references() []policy.ObjectRef {
	var all []policy.ObjectRef
	for _, e := range l.entries {
		for _, f := range resource.FieldsOfSpec(e.Spec) {
			all = append(all, f.Named(l.referenced.Namespace, l.referenced.Pulls)...)
		}
	}
	return sortedRefs(all)
}

// hashReferenced adds the content of a referenced object to parts. It uses two bytes of each value's
// hash, which show a difference but are too few to find a password from the metric.
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
