package resource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

// Limits on what is kept of one resource in memory, in bytes of JSON. The definitions
// limit the text of a spec to the same numbers, but count characters.
const (
	// MaxSpecBytes limits a spec.
	MaxSpecBytes = 64 << 10
	// MaxTrustStoreBytes limits the spec of a TrustStore or ClusterTrustStore, which may
	// hold a trusted root and a CA.
	MaxTrustStoreBytes = 96 << 10
	// maxStatusBytes limits a status. Anyone with rights on the status can write one; a
	// larger one is forgotten and then written again.
	maxStatusBytes = 64 << 10
)

// specBytes is the annotation of a resource whose spec was dropped, with the spec's size.
// It is meant to exist in memory only. Whoever writes it to an API server breaks an object
// that has no spec anyway.
const specBytes = v1alpha1.Group + "/spec-bytes"

// Keep reduces a resource to what compiling and writing statuses need: the identity from
// its metadata, the spec and the status. It drops a spec that exceeds [MaxSpecBytes] or
// [MaxTrustStoreBytes]; [Oversized] then reports the size. Of a Tenant, which only
// platform admins write, it drops managed fields alone. What was kept is kept as it is.
//
// Nobody may write an object that was kept back to an API server, except for its status.
func Keep(object v1alpha1.Object) error {
	if _, ok := object.(*v1alpha1.Tenant); ok {
		object.SetManagedFields(nil)
		return nil
	}
	mark, marked := object.GetAnnotations()[specBytes]
	strip(object)
	if marked && reflect.ValueOf(object).Elem().FieldByName("Spec").IsZero() {
		object.SetAnnotations(map[string]string{specBytes: mark}) // kept before
		return nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // an API server does not, and expressions have many <, > and &
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("measure %s: %w", RefOf(object), err)
	}
	var parts struct{ Spec, Status json.RawMessage }
	if err := json.Unmarshal(text.Bytes(), &parts); err != nil {
		return fmt.Errorf("measure %s: %w", RefOf(object), err)
	}
	if size := len(parts.Spec); size > maxSpec(object) {
		object.SetAnnotations(map[string]string{specBytes: fmt.Sprint(size)})
		drop(object, "Spec")
	}
	if len(parts.Status) > maxStatusBytes {
		drop(object, "Status")
	}
	return nil
}

// strip drops all metadata that others may fill and nothing here reads.
func strip(object metav1.Object) {
	object.SetAnnotations(nil)
	object.SetLabels(nil)
	object.SetFinalizers(nil)
	object.SetOwnerReferences(nil)
	object.SetManagedFields(nil)
}

// drop sets a field of a resource to its zero value.
func drop(object v1alpha1.Object, field string) {
	reflect.ValueOf(object).Elem().FieldByName(field).SetZero()
}

func maxSpec(object v1alpha1.Object) int {
	switch object.(type) {
	case *v1alpha1.TrustStore, *v1alpha1.ClusterTrustStore:
		return MaxTrustStoreBytes
	}
	return MaxSpecBytes
}

// Oversized returns an error that names the size of the spec if [Keep] dropped it. The
// resource is then broken.
func Oversized(object v1alpha1.Object) error {
	size, ok := object.GetAnnotations()[specBytes]
	if !ok {
		return nil
	}
	return fmt.Errorf("the spec has %s bytes, the limit is %d: split it into several resources", size, maxSpec(object))
}
