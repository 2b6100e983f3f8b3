package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// The verb of events, and the limit of their note.
const (
	actionCompile = "Compile"
	maxMessage    = 1024 // of an event's note, as the API server has it
)

// writeStatuses keeps the conditions of resources in step with the reports until
// ctx ends. It begins with all of them: another replica may have been behind.
func (c *Controller) writeStatuses(ctx context.Context) error {
	c.reports.markAll()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.reports.wake:
		}
		for _, namespace := range c.reports.take() {
			if err := c.writeStatus(ctx, namespace); err != nil && ctx.Err() == nil {
				c.log.WithField("namespace", string(namespace)).WithError(err).Warn("a status was not written and will be tried again")
				time.AfterFunc(retryPause, func() { c.reports.mark(namespace) })
			}
		}
	}
}

// writeStatus writes what has changed in one namespace.
func (c *Controller) writeStatus(ctx context.Context, namespace verify.Namespace) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	found, ok := c.reports.get(namespace)
	if !ok {
		return nil // nothing is there any more
	}
	var failures []error
	for _, list := range listsOf(namespace) {
		err := c.each(ctx, list, func(object v1alpha1.Object) error {
			if err := c.apply(ctx, object, found); err != nil {
				failures = append(failures, err)
			}
			return nil
		}, client.InNamespace(namespace))
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// apply writes one object's status if it says something else than the report.
func (c *Controller) apply(ctx context.Context, object v1alpha1.Object, r report) error {
	source := resource.RefOf(object)
	generation, compiled := r.generations[source]
	if !compiled || generation != object.GetGeneration() {
		return nil // it has changed since, and will be compiled
	}
	changed, ok := object.DeepCopyObject().(v1alpha1.Object)
	if !ok {
		return fmt.Errorf("write status of %s: its copy is a %T", source, object)
	}
	before := meta.FindStatusCondition(object.GetStatus().Conditions, v1alpha1.ConditionReady)
	condition := ready(source, object, r)
	condition.ObservedGeneration = generation
	status := changed.GetStatus()
	meta.SetStatusCondition(&status.Conditions, condition)
	status.ObservedGeneration = generation
	status.Material = nil
	if material, ok := r.materials[source]; ok {
		status.Material = &material
	}
	if reflect.DeepEqual(status, object.GetStatus()) {
		return nil // said already
	}
	if err := c.manager.GetClient().Status().Patch(ctx, changed, client.MergeFrom(object)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write status of %s: %w", source, err))
	}
	if before == nil || before.Status != condition.Status || before.Reason != condition.Reason {
		announce(c.manager.GetEventRecorder("landwaiter"), object, condition)
	}
	return nil
}

// announce records a change of state as an event.
func announce(events recorder.EventRecorder, object v1alpha1.Object, condition metav1.Condition) {
	kind := corev1.EventTypeNormal
	if condition.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	note := condition.Message
	if len(note) > maxMessage {
		note = strings.ToValidUTF8(note[:maxMessage], "")
	}
	events.Eventf(object, nil, kind, condition.Reason, actionCompile, "%s", note)
}

// ready is what a resource's condition says.
func ready(source policy.ObjectRef, object v1alpha1.Object, r report) metav1.Condition {
	if p, broken := r.problems[source]; broken {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: string(p.Reason),
			Message: p.Message + consequence(object)}
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: string(policy.ReasonInForce),
		Message: inForce(object, r.policies)}
}

// consequence says what follows from a problem with a resource. Nothing depends on
// limits; their problems say themselves what applies.
func consequence(object v1alpha1.Object) string {
	if _, ok := object.(*v1alpha1.ClusterLimits); ok {
		return ""
	}
	return "; what depends on it denies"
}

// inForce says where a resource applies, and in which order policies do.
func inForce(object v1alpha1.Object, policies []string) string {
	message := "in force in its namespace"
	if object.GetNamespace() == "" {
		message = "in force for namespaces without resources of this kind, and for floors"
	}
	switch p := object.(type) {
	case *v1alpha1.TrustStore:
		return "usable in its namespace"
	case *v1alpha1.ClusterTrustStore:
		return "usable everywhere"
	case *v1alpha1.ClusterLimits:
		return "in force for each of its namespaces"
	case *v1alpha1.ClusterVerificationPolicy:
		if p.Spec.Enforcement == v1alpha1.EnforcementFloor {
			return "a floor: must hold in every namespace, besides its own policy"
		}
		message = "in force for namespaces without a VerificationPolicy"
	case *v1alpha1.VerificationPolicy:
	default:
		return message
	}
	if len(policies) > 1 {
		message += "; the rules of several policies are tried in the order of names: " + strings.Join(policies, ", ")
	}
	return message
}
