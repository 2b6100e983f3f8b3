package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// The action of events, and the maximum length of a note that the API server accepts.
const (
	actionCompile = "Compile"
	maxMessage    = 1024
)

// outdated is the set of namespaces whose statuses may differ from the snapshot.
type outdated struct {
	mu     sync.Mutex
	marked map[verify.Namespace]bool
	wake   chan struct{} // holds one token while anything is marked
}

func newOutdated() *outdated {
	return &outdated{marked: map[verify.Namespace]bool{}, wake: make(chan struct{}, 1)}
}

func (o *outdated) mark(namespaces ...verify.Namespace) {
	if len(namespaces) == 0 {
		return
	}
	o.mu.Lock()
	for _, namespace := range namespaces {
		o.marked[namespace] = true
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default: // already has a token
	}
}

// take returns the marked namespaces and clears the marks.
func (o *outdated) take() []verify.Namespace {
	o.mu.Lock()
	defer o.mu.Unlock()
	marked := slices.Sorted(maps.Keys(o.marked))
	clear(o.marked)
	return marked
}

// markAll marks every namespace of the snapshot and the cluster.
func (c *Controller) markAll() {
	if snapshot := c.set.Snapshot(); snapshot != nil {
		c.outdated.mark(snapshot.Namespaces()...)
	}
}

// writeStatuses updates the statuses of resources as the snapshot changes, until ctx
// ends. It begins with all of them, because the last leader may have missed changes.
func (c *Controller) writeStatuses(ctx context.Context) error {
	c.markAll()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.outdated.wake:
		}
		for _, namespace := range c.outdated.take() {
			if err := c.writeStatus(ctx, namespace); err != nil && ctx.Err() == nil {
				c.log.WithField("namespace", string(namespace)).WithError(err).Warn("cannot write a status, will try again")
				time.AfterFunc(retryPause, func() { c.outdated.mark(namespace) })
			}
		}
	}
}

// writeStatus writes the changed statuses of one namespace.
func (c *Controller) writeStatus(ctx context.Context, namespace verify.Namespace) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	reports := c.set.Snapshot().Reports(namespace)
	if len(reports) == 0 {
		return nil // the namespace has no resources
	}
	var failures []error
	for _, kind := range v1alpha1.Kinds() {
		if kind.Namespaced != (namespace != verify.Cluster) {
			continue
		}
		err := c.reader.forEach(ctx, kind, func(object v1alpha1.Object) error {
			failures = append(failures, c.apply(ctx, object, reports))
			return nil
		}, client.InNamespace(namespace))
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// apply writes an object's status if it differs from the report.
func (c *Controller) apply(ctx context.Context, object v1alpha1.Object, reports map[policy.ObjectRef]compile.Report) error {
	source := resource.RefOf(object)
	report, compiled := reports[source]
	if !compiled || report.Generation != object.GetGeneration() {
		return nil // changed since; its compilation is queued
	}
	changed, ok := object.DeepCopyObject().(v1alpha1.Object)
	if !ok {
		return fmt.Errorf("write status of %s: its copy is a %T", source, object)
	}
	before := meta.FindStatusCondition(object.CommonStatus().Conditions, v1alpha1.ConditionReady)
	after := setStatus(changed, report)
	if reflect.DeepEqual(changed, object) {
		return nil // up to date
	}
	if err := c.writer.Status().Patch(ctx, changed, client.MergeFrom(object)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write status of %s: %w", source, err))
	}
	if before == nil || before.Status != after.Status || before.Reason != after.Reason {
		recordEvent(c.events, object, after)
	}
	return nil
}

// setStatus copies the report to the status of object, and returns its condition Ready.
func setStatus(object v1alpha1.Object, report compile.Report) metav1.Condition {
	status := object.CommonStatus()
	status.ObservedGeneration = report.Generation
	ready := condition(v1alpha1.ConditionReady, report.Ready, report.Generation)
	meta.SetStatusCondition(&status.Conditions, ready)
	meta.SetStatusCondition(&status.Conditions, condition(v1alpha1.ConditionEffective, report.Effective, report.Generation))
	if store, ok := object.(interface {
		Details() *v1alpha1.TrustStoreStatus
	}); ok {
		details := store.Details()
		details.Fingerprints, details.FetchedAt = report.Fingerprints, nil
		if !report.FetchedAt.IsZero() {
			at := metav1.NewTime(report.FetchedAt).Rfc3339Copy()
			details.FetchedAt = &at
		}
	}
	return ready
}

func condition(kind string, c compile.Condition, generation int64) metav1.Condition {
	status := metav1.ConditionFalse
	if c.True {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: string(c.Reason), Message: c.Message, ObservedGeneration: generation}
}

// recordEvent records a change of the condition Ready as an event.
func recordEvent(events recorder.EventRecorder, object v1alpha1.Object, condition metav1.Condition) {
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
