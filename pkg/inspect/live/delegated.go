package live

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// delegated returns that a denial is unknown, and true, if an Exception names the image: only a ClusterException,
// which the person cannot read, determines whether the Exception applies.
func (s State) delegated(result verify.Result) (verify.Result, bool) {
	if !s.exceptionsUnread() || s.mandatory(result.Verdict) {
		return verify.Result{}, false
	}
	for _, x := range s.exceptionsFor(result.Namespace, result.Reference) {
		said, now := inForce(x)
		if !now {
			continue
		}
		where := "ask a cluster admin which images ClusterExceptions delegate to namespace " + x.Namespace +
			", or apply the Exception and read its condition Effective"
		reason := fmt.Sprintf("%s names the image, and counts if a ClusterException delegates it to namespace %s: you cannot read "+
			"ClusterExceptions", resource.RefOf(x), x.Namespace)
		if said != "" {
			where = "ask a cluster admin which images ClusterExceptions delegate to namespace " + x.Namespace
			if command := s.AskServer(result.Namespace, result.Reference.String()); command != "" {
				where = "ask the server: " + command
			}
			reason = fmt.Sprintf("%s names the image and is in force (%s), but whether its delegation is for this image is unknown: you cannot "+
				"read ClusterExceptions", resource.RefOf(x), said)
		}
		denied := result.Verdict
		result.Verdict = policy.NotDecided(denied.Policy, reason+". Without the exception: "+denied.Reason)
		result.Verdict.Cause, result.Verdict.Remediation, result.Verdict.Contact = policy.ReasonUnreadable, where, denied.Contact
		return result, true
	}
	return verify.Result{}, false
}

// outweighed adds to a denial by a mandatory policy that an Exception for the image does not override it. Nobody has to
// read its delegation for that.
func (s State) outweighed(result verify.Result) policy.Verdict {
	if !s.exceptionsUnread() || !s.mandatory(result.Verdict) {
		return result.Verdict
	}
	for _, x := range s.exceptionsFor(result.Namespace, result.Reference) {
		_, over := endedAt(x, time.Now())
		if e := effectiveOf(x); !over && (e == nil || e.Status == metav1.ConditionTrue || e.Reason == string(policy.ReasonMandatoryHolds)) {
			return (&verify.Exception{Source: resource.RefOf(x)}).Outweighed(result.Verdict)
		}
	}
	return result.Verdict
}

// exceptionsUnread reports whether the person cannot read ClusterExceptions.
func (s State) exceptionsUnread() bool {
	return slices.ContainsFunc(s.Objects.Unreadable, func(u resource.Unreadable) bool { return u.Source.Kind == v1beta1.KindClusterException })
}

// mandatory reports whether a denial is, or may be, also a mandatory policy's: no Exception lifts that.
func (s State) mandatory(denied policy.Verdict) bool {
	return slices.ContainsFunc(denied.Objections(), func(o policy.Objection) bool {
		return slices.ContainsFunc(s.Objects.Resources, func(object v1beta1.Object) bool {
			p, ok := object.(*v1beta1.ClusterVerificationPolicy)
			return ok && resource.RefOf(p) == o.Policy && p.Spec.Scope == v1beta1.PolicyScopeMandatory
		})
	})
}

// exceptionsFor returns the Exceptions that name an image and can apply in a namespace.
func (s State) exceptionsFor(namespace verify.Namespace, ref image.Reference) (found []*v1beta1.Exception) {
	home := ""
	if holder := tenantsOf(s.Objects).Holder(string(namespace)); holder != nil {
		home = holder.Spec.HomeNamespace
	}
	for _, e := range entriesOf(s.Objects.Resources) {
		if x, ok := e.exception.(*v1beta1.Exception); ok && e.countsIn(string(namespace), home) && e.has(ref) && !slices.Contains(found, x) {
			found = append(found, x)
		}
	}
	return found
}

// inForce returns the message of an Exception's condition Effective, "" if the server has not processed this
// version of it. It returns false if the exception has expired or the server says that it allows nothing.
func inForce(x *v1beta1.Exception) (said string, now bool) {
	if _, over := endedAt(x, time.Now()); over {
		return "", false
	}
	effective := effectiveOf(x)
	if effective == nil {
		return "", true
	}
	return shown(effective.Message), effective.Status == metav1.ConditionTrue
}

// effectiveOf returns the condition Effective of an Exception, nil if the server has not processed this version of it.
func effectiveOf(x *v1beta1.Exception) *metav1.Condition {
	effective := apimeta.FindStatusCondition(x.Status.Conditions, v1beta1.ConditionEffective)
	if effective == nil || effective.ObservedGeneration != x.Generation {
		return nil
	}
	return effective
}

// endedAt returns when an exception ended, and whether it has by a time.
func endedAt(object v1beta1.Object, now time.Time) (time.Time, bool) {
	spec := exceptionOf(object)
	if spec == nil {
		return time.Time{}, false
	}
	until, err := time.Parse(time.RFC3339, spec.Until)
	return until, err == nil && !now.Before(until)
}
