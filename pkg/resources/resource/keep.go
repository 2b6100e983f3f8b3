package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Limits on one resource in memory, in bytes of JSON. The CRDs limit the text of a spec to
// the same numbers, but count characters.
const (
	// MaxSpecBytes limits a spec.
	MaxSpecBytes = 64 << 10
	// MaxTrustStoreBytes limits the spec of a TrustStore or ClusterTrustStore, which may
	// hold a trusted root and a CA.
	MaxTrustStoreBytes = 96 << 10
	// maxStatusBytes limits a status. Anyone with permissions on the status can write one; Keep
	// drops a larger one, which is then written again.
	maxStatusBytes = 64 << 10
	// maxConditionBytes limits the reason and message of a condition. Compiling cuts its own to
	// 2 KiB.
	maxConditionBytes = 3 << 10
	// maxFingerprints and maxFingerprintBytes limit the fingerprints of trust material: as
	// compiling writes them.
	maxFingerprints     = 16
	maxFingerprintBytes = 128
)

// oversizedBecause is the annotation of a resource whose spec was dropped because of its size, with
// the error. No API server accepts its key, so no stored object has it.
const oversizedBecause = v1beta1.Group + "/oversized because"

// Keep reduces a resource to what compiling and writing statuses need: the identity from its
// metadata, the spec and the status. It drops a spec that exceeds [MaxSpecBytes] or
// [MaxTrustStoreBytes]; [Oversized] then reports the size. Of a Tenant, which only platform
// admins write, it only drops managed fields. A second call changes nothing.
//
// Never write a reduced object to an API server, except for its status.
func Keep(object v1beta1.Object) error {
	if _, ok := object.(*v1beta1.Tenant); ok {
		object.SetManagedFields(nil)
		return nil
	}
	reduceStatus(object)
	before := object.GetAnnotations()
	Strip(object)
	for _, why := range []string{oversizedBecause, withheldBytes} {
		if text, dropped := before[why]; dropped {
			object.SetAnnotations(map[string]string{why: text})
			field(object, "Spec").SetZero()
			return nil
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // as API servers do; expressions have many <, > and &
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("measure %s: %w", RefOf(object), err)
	}
	var parts struct{ Spec, Status json.RawMessage }
	if err := json.Unmarshal(text.Bytes(), &parts); err != nil {
		return fmt.Errorf("measure %s: %w", RefOf(object), err)
	}
	if size, limit := len(parts.Spec), maxSpec(object); size > limit {
		object.SetAnnotations(
			map[string]string{oversizedBecause: fmt.Sprintf("the spec has %d bytes, the limit is %d: split it into several resources", size, limit)})
		field(object, "Spec").SetZero()
	}
	if len(parts.Status) > maxStatusBytes {
		field(object, "Status").SetZero()
	}
	return nil
}

// reduceStatus keeps the parts of a status that Landwaiter writes. A condition that is too long
// is not Landwaiter's, and is written again.
func reduceStatus(object v1beta1.Object) {
	status := object.CommonStatus()
	var kept []metav1.Condition
	for _, c := range status.Conditions {
		if c.Type != v1beta1.ConditionReady && c.Type != v1beta1.ConditionEffective && !v1beta1.IsWarning(c.Type) {
			continue
		}
		if len(c.Reason)+len(c.Message) > maxConditionBytes {
			c.Reason, c.Message = "", ""
		}
		kept = append(kept, c)
	}
	status.Conditions = kept
	if keys, ok := object.(interface{ Trusts() *[]string }); ok {
		list := keys.Trusts()
		if len(*list) > maxFingerprints || slices.ContainsFunc(*list, func(f string) bool { return len(f) > maxFingerprintBytes }) {
			*list = nil
		}
	}
}

// Strip drops the metadata of an object that others can fill: labels, annotations,
// finalizers, owner references and managed fields.
func Strip(object metav1.Object) {
	object.SetAnnotations(nil)
	object.SetLabels(nil)
	object.SetFinalizers(nil)
	object.SetOwnerReferences(nil)
	object.SetManagedFields(nil)
}

// field returns the field Spec or Status, which every kind has.
func field(object v1beta1.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

func maxSpec(object v1beta1.Object) int {
	switch object.(type) {
	case *v1beta1.TrustStore, *v1beta1.ClusterTrustStore:
		return MaxTrustStoreBytes
	}
	return MaxSpecBytes
}

// Oversized returns an error that names the size of the spec if [Keep] dropped it. The
// resource is then broken.
func Oversized(object v1beta1.Object) error {
	why, dropped := object.GetAnnotations()[oversizedBecause]
	if !dropped {
		return nil
	}
	return errors.New(why)
}
