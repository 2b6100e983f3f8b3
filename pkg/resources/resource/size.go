package resource

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// withheldBytes is the annotation of a resource whose spec is withheld, with its size. No
// object of an API server has it: the key is none that an API server accepts.
const withheldBytes = v1beta1.Group + "/withheld bytes"

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

// withheld returns the size of a spec that was dropped by [Room.Keep] or [Refuse].
func withheld(object v1beta1.Object) (size int, ok bool) {
	text, noted := object.GetAnnotations()[withheldBytes]
	if !noted {
		return 0, false
	}
	size, err := strconv.Atoi(text)
	return size, err == nil
}

// Withheld reports whether the spec of a resource was dropped because of others in its share.
func Withheld(object v1beta1.Object) bool {
	_, ok := withheld(object)
	return ok && Refused(object) == nil
}

// Missing returns why the spec of a resource is not kept or not used, nil if it is. The
// resource is then broken.
func Missing(object v1beta1.Object) error {
	if err := Refused(object); err != nil {
		return err
	}
	if Withheld(object) {
		return Outside(policy.Outside("keep less in the namespaces of its Tenant"),
			fmt.Errorf("the spec is being read again: when it came, too much was kept of namespace %s or its Tenant", object.GetNamespace()))
	}
	return Oversized(object)
}
