package resource

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Limits on what a replica keeps of the specs of one namespace together, in bytes of memory.
// What is compiled has lower limits, so only what is not compiled comes close to them.
const (
	// MaxNamespaceBytes limits the resources of a namespace without Exceptions. A namespace
	// past it is denied.
	MaxNamespaceBytes = 4 << 20
	// MaxExceptionBytes limits the Exceptions of a namespace. Past it, none of them is in force.
	MaxExceptionBytes = 2 << 20
	// MaxAccountBytes and MaxAccountExceptionBytes limit the same of all namespaces of a Tenant
	// together. Those with the largest specs are denied past it, or lose their Exceptions.
	MaxAccountBytes          = 4 * MaxNamespaceBytes
	MaxAccountExceptionBytes = 2 * MaxExceptionBytes
)

// withheldBytes is the annotation of a resource whose spec is withheld, with its size. No
// object of an API server has it: the key is none that an API server accepts.
const withheldBytes = v1beta1.Group + "/withheld bytes"

// Share is what has a limit together: the resources of a namespace, or its Exceptions, apart
// because too many of those must not deny anything.
type Share struct {
	Namespace  string
	Exceptions bool
}

// ShareOf returns the share of a resource, and false for the resources of the cluster, which
// have no limit together: admins write them.
func ShareOf(object v1beta1.Object) (share Share, limited bool) {
	_, exception := object.(*v1beta1.Exception)
	return Share{Namespace: object.GetNamespace(), Exceptions: exception}, object.GetNamespace() != ""
}

// Limit returns how many bytes of specs are kept of a share.
func (s Share) Limit() int {
	if s.Exceptions {
		return MaxExceptionBytes
	}
	return MaxNamespaceBytes
}

// AccountLimit returns how many bytes of specs are kept of such shares of a Tenant's namespaces.
func (s Share) AccountLimit() int {
	if s.Exceptions {
		return MaxAccountExceptionBytes
	}
	return MaxAccountBytes
}

// Size returns how much memory the spec of a resource takes, in bytes. It is a pure function
// of the spec, so that every replica agrees, and the same for a spec that is withheld. A
// spec that [Keep] dropped takes none.
func Size(object v1beta1.Object) int {
	if size, ok := withheld(object); ok {
		return size
	}
	return sizeOf(field(object, "Spec"))
}

// sizeOf returns the size of a value with all that it points to. It counts what is used of
// lists, because what is allocated depends on how they were decoded.
func sizeOf(value reflect.Value) int { return int(value.Type().Size()) + beyond(value) }

// beyond returns the size of what a value points to.
func beyond(value reflect.Value) (size int) {
	switch value.Kind() { //nolint:exhaustive // the other kinds point to nothing
	case reflect.String:
		return value.Len()
	case reflect.Pointer:
		if !value.IsNil() {
			return sizeOf(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			size += sizeOf(value.Index(i))
		}
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			size += sizeOf(entries.Key()) + sizeOf(entries.Value())
		}
	case reflect.Struct:
		for i := range value.NumField() {
			size += beyond(value.Field(i))
		}
	}
	return size
}

// withhold drops the spec of a resource, and leaves its size.
func withhold(object v1beta1.Object, size int) {
	object.SetAnnotations(map[string]string{withheldBytes: strconv.Itoa(size)})
	field(object, "Spec").SetZero()
}

// withheld returns the size of a spec that was dropped because of others in its share.
func withheld(object v1beta1.Object) (size int, ok bool) {
	text, noted := object.GetAnnotations()[withheldBytes]
	if !noted {
		return 0, false
	}
	size, err := strconv.Atoi(text)
	return size, err == nil && size > 0 && (Refused(object) != nil || field(object, "Spec").IsZero())
}

// Missing returns why the spec of a resource is not kept or not used, nil if it is. The
// resource is then broken.
func Missing(object v1beta1.Object) error {
	if err := Refused(object); err != nil {
		return err
	}
	if _, ok := withheld(object); ok {
		return Outside(policy.Outside("keep less in the namespaces of its Tenant"), fmt.Errorf("the spec is being read again: when it came, too much was kept of namespace %s or its Tenant", object.GetNamespace()))
	}
	return Oversized(object)
}

// ReadAgain returns those of objects whose spec is withheld though all specs of their share fit
// into its limit: whoever keeps objects reads these again. Objects are all of their shares.
// crowded reports whether a share of some size does not fit into the limit of its Tenant.
func ReadAgain(objects []v1beta1.Object, crowded func(share Share, size int) bool) (found []v1beta1.Object) {
	total := map[Share]int{}
	for _, object := range objects {
		share, _ := ShareOf(object)
		total[share] += Size(object)
		if _, ok := withheld(object); ok {
			found = append(found, object)
		}
	}
	return slices.DeleteFunc(found, func(object v1beta1.Object) bool {
		share, _ := ShareOf(object)
		return total[share] > share.Limit() || crowded(share, total[share])
	})
}

// Excess returns an error if a share is past its limit, with the kinds that take most. Sizes
// are by kind.
func (s Share) Excess(sizes map[string]int) error {
	total, kinds := 0, make([]string, 0, len(sizes))
	for kind, size := range sizes {
		if size > 0 {
			kinds, total = append(kinds, kind), total+size
		}
	}
	if total <= s.Limit() {
		return nil
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if sizes[a] != sizes[b] {
			return sizes[b] - sizes[a]
		}
		return strings.Compare(a, b)
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d KiB", kind, sizes[kind]>>10)
	}
	what := "resources"
	if s.Exceptions {
		what = "Exceptions"
	}
	return Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("the specs of the %s of namespace %s take %d KiB, the limit is %d KiB (%s): delete some",
		what, s.Namespace, total>>10, s.Limit()>>10, strings.Join(kinds, ", ")))
}
