// Package compile turns one resource into its compiled part: a Verifier into a Checker with its
// keys, a Store into credentials and mirrors, a policy into rules. It reads the resource's
// references but no other resource, so it does not say where it applies. Errors are for the
// resource's owner, and a resource with an error denies. It takes specs that package schema has
// validated. It reads an unknown word as the strictest known one, and a resource that lacks a field
// is broken.
package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// DigestOf hashes parts with their lengths, so that different lists never collide.
func DigestOf(parts []string) string {
	var written []byte
	for _, part := range parts {
		written = strconv.AppendInt(written, int64(len(part)), 10)
		written = append(append(written, ':'), part...)
	}
	sum := sha256.Sum256(written)
	return hex.EncodeToString(sum[:])
}

// Fingerprint hashes everything that determines a resource's meaning: its spec, its trust
// material, and its error.
func Fingerprint(source policy.ObjectRef, spec any, content []byte, err error) string {
	encoded, encodeErr := json.Marshal(spec)
	if encodeErr != nil {
		encoded = fmt.Appendf(nil, "%#v", spec)
	}
	return DigestOf([]string{source.String(), string(encoded), string(content), fmt.Sprint(err)})
}

// SortedKeys returns the keys of a map, sorted.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// MapSlice returns the results of a function for each item of a list.
func MapSlice[T, R any](list []T, of func(T) R) []R {
	mapped := make([]R, len(list))
	for i, item := range list {
		mapped[i] = of(item)
	}
	return mapped
}

// Entry is one resource of either scope. A namespaced kind and its Cluster twin have
// the same entry type.
type Entry[S any] struct {
	Source     policy.ObjectRef
	Generation int64
	Created    time.Time // zero for an object that no API server stored
	Spec       S
	Broken     error // why the content could not be read
	// why the content may not be compiled, although it says where it applies: the schema refuses it, or the cluster
	// exceeds its limit
	Refused error
}

// Err returns why the resource cannot be compiled, nil if it can.
func (e Entry[S]) Err() error {
	if e.Broken != nil {
		return e.Broken
	}
	return e.Refused
}

// NewEntry returns a resource with its spec; broken says why the spec cannot be used.
func NewEntry[S any](source policy.ObjectRef, object v1beta1.Object, spec S, broken error) Entry[S] {
	return Entry[S]{Source: source, Generation: object.GetGeneration(), Created: object.GetCreationTimestamp().Time,
		Spec: spec, Broken: broken}
}

// KindOf returns the name of a kind at the level of namespace.
func KindOf(namespace verify.Namespace, kind string) string {
	if namespace == verify.Cluster {
		return "Cluster" + kind
	}
	return kind
}
