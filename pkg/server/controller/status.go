package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// actionCompile is the action of events.
const actionCompile = "Compile"

// setStatus copies the report, as of now, to the status of object, and returns its
// condition Ready.
func setStatus(object v1beta1.Object, report compile.Report, now time.Time) metav1.Condition {
	status := object.CommonStatus()
	status.ObservedGeneration = report.Generation
	ready := condition(v1beta1.ConditionReady, report.Ready, report.Generation)
	meta.SetStatusCondition(&status.Conditions, ready)
	meta.SetStatusCondition(&status.Conditions, condition(v1beta1.ConditionEffective, report.EffectiveAt(now), report.Generation))
	if expires, ok := report.ExpiresSoon(now); ok {
		meta.SetStatusCondition(&status.Conditions, condition(v1beta1.ConditionExpiresSoon, expires, report.Generation))
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.ConditionExpiresSoon)
	}
	if keys, ok := object.(interface{ Trusts() *[]string }); ok {
		*keys.Trusts() = report.Fingerprints
	}
	if store, ok := object.(interface {
		Details() *v1beta1.TrustStoreStatus
	}); ok {
		details := store.Details()
		details.FetchedAt = nil
		if !report.FetchedAt.IsZero() {
			at := metav1.NewTime(report.FetchedAt).Rfc3339Copy()
			details.FetchedAt = &at
		}
	}
	return ready
}

func condition(kind string, c compile.Condition, generation int64) metav1.Condition {
	status := metav1.ConditionFalse
	switch {
	case c.True:
		status = metav1.ConditionTrue
	case c.Unknown:
		status = metav1.ConditionUnknown
	}
	return metav1.Condition{Type: kind, Status: status, Reason: string(c.Reason), Message: c.Message, ObservedGeneration: generation}
}

// recordEvent records a change of the condition Ready as an event.
func recordEvent(events recorder.EventRecorder, object v1beta1.Object, condition metav1.Condition) {
	kind := corev1.EventTypeNormal
	if condition.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	events.Eventf(object, nil, kind, condition.Reason, actionCompile, "%s", policy.Cut(condition.Message, maxMessage))
}
