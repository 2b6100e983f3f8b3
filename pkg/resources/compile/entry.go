package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// digestOf hashes parts with their lengths, so that different lists never collide.
func digestOf(parts []string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// fingerprint hashes everything that determines a resource's meaning: its spec, the
// trust material that it uses, and its error.
func fingerprint(source policy.ObjectRef, spec any, content []byte, err error) string {
	encoded, encodeErr := json.Marshal(spec)
	if encodeErr != nil {
		encoded = fmt.Appendf(nil, "%#v", spec)
	}
	return digestOf([]string{source.String(), string(encoded), string(content), fmt.Sprint(err)})
}

// sortedKeys returns the keys of a map, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// mapSlice returns what a function makes of each item of a list.
func mapSlice[T, R any](list []T, of func(T) R) []R {
	mapped := make([]R, len(list))
	for i, item := range list {
		mapped[i] = of(item)
	}
	return mapped
}

// entry is one resource of either scope. A namespaced kind and its Cluster twin have
// the same entry type.
type entry[S any] struct {
	source     policy.ObjectRef
	generation int64
	created    time.Time // zero for an object that no API server has
	spec       S
	broken     error // the content could not be read
	refused    error // the content may not be compiled: the cluster is over its limit
}

// err returns why the resource cannot be compiled, if it cannot.
func (e entry[S]) err() error {
	if e.broken != nil {
		return e.broken
	}
	return e.refused
}

// newEntry returns a resource with its spec; broken says why that cannot be used.
func newEntry[S any](source policy.ObjectRef, object v1beta1.Object, spec S, broken error) entry[S] {
	return entry[S]{source: source, generation: object.GetGeneration(), created: object.GetCreationTimestamp().Time, spec: spec, broken: broken}
}

// kindOf returns the name of a kind at the level of namespace.
func kindOf(namespace verify.Namespace, kind string) string {
	if namespace == verify.Cluster {
		return "Cluster" + kind
	}
	return kind
}
