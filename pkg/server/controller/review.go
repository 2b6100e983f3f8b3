package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// review is the review of a generation of a resource.
type review struct {
	uid        types.UID
	generation int64
	found      conditions.Condition
}

// setReview sets or removes the condition NeedsReview, and returns it. Comparing identities with strangers' takes
// time, so it reviews each generation of a Verifier once.
func (w *statusWriter) setReview(object v1beta1.Object, report conditions.Report, now time.Time) conditions.Condition {
	source := resource.RefOf(object)
	if report.EffectiveAt(now).Reason == policy.ReasonExpired {
		meta.RemoveStatusCondition(&object.CommonStatus().Conditions, v1beta1.ConditionNeedsReview)
		return conditions.Condition{}
	}
	known, ok := w.reviews.GetIfPresent(source)
	if !ok || known.uid != object.GetUID() || known.generation != report.Generation {
		known = review{object.GetUID(), report.Generation, conditions.Reviewed(object, report)}
		if source.Kind == v1beta1.KindVerifier || source.Kind == v1beta1.KindClusterVerifier {
			w.reviews.Set(source, known)
		}
	}
	status := object.CommonStatus()
	if !known.found.True {
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.ConditionNeedsReview)
		return known.found
	}
	meta.SetStatusCondition(&status.Conditions, condition(v1beta1.ConditionNeedsReview, known.found, report.Generation))
	return known.found
}
