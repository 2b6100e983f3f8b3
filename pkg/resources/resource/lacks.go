package resource

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Lacks returns a condition of a resource that is False, nil if it is not. Every command and the page
// read the state of a resource here: one that lacks Ready is broken.
func Lacks(o v1beta1.Object, condition string) *metav1.Condition {
	c := meta.FindStatusCondition(o.CommonStatus().Conditions, condition)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return c
}
