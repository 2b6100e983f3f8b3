package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// outdated queues the namespaces whose statuses may differ from the snapshot, while this
// replica writes statuses. Its zero value drops them: a replica that begins to write marks
// all.
type outdated struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[verify.Namespace]]
}

func (o *outdated) mark(namespaces ...verify.Namespace) {
	queue := o.queue.Load()
	if queue == nil {
		return
	}
	for _, namespace := range namespaces {
		(*queue).Add(namespace)
	}
}

// markCluster marks the cluster's resources for later: a namespace's own resources affect
// whether they are effective, so any tenant could cause continuous checks.
func (o *outdated) markCluster() {
	if queue := o.queue.Load(); queue != nil {
		(*queue).AddAfter(verify.Cluster, clusterPause)
	}
}

// markAt marks a namespace for a time, unless that is zero. The regular check covers times
// that are further away than [lookAgain].
func (o *outdated) markAt(namespace verify.Namespace, at time.Time) {
	queue, wait := o.queue.Load(), time.Until(at)
	if queue != nil && !at.IsZero() && wait <= lookAgain {
		(*queue).AddAfter(namespace, max(wait, 0))
	}
}

// nextEnd returns when the next exception of a level ends, the zero time if none will.
func nextEnd(reports map[policy.ObjectRef]conditions.Report, now time.Time) (next time.Time) {
	for _, report := range reports {
		if report.Until.After(now) && (next.IsZero() || report.Until.Before(next)) {
			next = report.Until
		}
	}
	return next
}

// markAll marks every namespace of the snapshot and the cluster.
func (c *Controller) markAll() {
	if snapshot := c.set.Snapshot(); snapshot != nil {
		c.outdated.mark(snapshot.Namespaces()...)
	}
}

// writeStatuses updates the statuses of resources as the snapshot changes, until ctx ends. It
// begins with all of them, because the last leader may have missed changes, and checks all of
// them regularly, because time alone changes ExpiresSoon.
func (c *Controller) writeStatuses(ctx context.Context) error {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[verify.Namespace](retryPause,
		maxRetryPause))
	c.outdated.queue.Store(&queue)
	defer c.outdated.queue.Store(nil)
	c.markAll()
	w := newStatusWriter(c)
	var group errgroup.Group
	for range statusWriters {
		group.Go(func() error { w.work(ctx, queue); return nil })
	}
	everyHour(ctx.Done(), c.markAll)
	queue.ShutDown()
	return group.Wait()
}

// everyHour calls look each [lookAgain] until done is closed.
func everyHour(done <-chan struct{}, look func()) {
	for again := time.Tick(lookAgain); ; {
		select {
		case <-again:
			look()
		case <-done:
			return
		}
	}
}

// statusWriter writes statuses for one term of the lease.
type statusWriter struct {
	*Controller

	// refused has the last status of each resource that the API server refused, which is not
	// tried again.
	refused recent[policy.ObjectRef, attempt]
	events  recent[verify.Namespace, *rate.Limiter]
	reviews recent[policy.ObjectRef, review]
}

func newStatusWriter(c *Controller) *statusWriter {
	return &statusWriter{Controller: c, refused: otter.Must(&otter.Options[policy.ObjectRef, attempt]{MaximumSize: maxRefused}),
		events:  otter.Must(&otter.Options[verify.Namespace, *rate.Limiter]{MaximumSize: maxRefused}),
		reviews: otter.Must(&otter.Options[policy.ObjectRef, review]{MaximumSize: maxRefused})}
}

// attempt identifies a status that was to be written.
type attempt struct {
	uid      string
	ready    conditions.Condition
	effect   conditions.Condition
	expires  conditions.Condition
	review   conditions.Condition
	observed int64
}

// work writes statuses in turns of [statusesAtOnce] writes for each namespace.
func (w *statusWriter) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[verify.Namespace]) {
	for {
		namespace, ended := queue.Get()
		if ended {
			return
		}
		more, err := w.write(ctx, namespace)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			w.log.WithField("namespace", namespace.Label()).WithError(err).Warn("cannot write a status, will try again")
			queue.AddRateLimited(namespace)
		case more:
			queue.Add(namespace)
		default:
			queue.Forget(namespace)
		}
		queue.Done(namespace)
	}
}

// write writes the changed statuses of one namespace, at most [statusesAtOnce]. It reports
// whether there are more.
func (w *statusWriter) write(ctx context.Context, namespace verify.Namespace) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	snapshot := w.set.Snapshot()
	reports := conditions.Reports(snapshot, namespace)
	if len(reports) == 0 {
		return false, nil // the namespace has no resources
	}
	w.outdated.markAt(namespace, nextEnd(reports, time.Now()))
	written := 0
	var failures []error
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced != (namespace != verify.Cluster) {
			continue
		}
		err := w.reader.forEach(ctx, kind, func(object v1beta1.Object) error {
			if written >= statusesAtOnce {
				more = true
				return nil
			}
			tried, err := w.apply(ctx, object, snapshot, reports)
			if tried {
				written++
			}
			failures = append(failures, err)
			return nil
		}, client.InNamespace(namespace))
		failures = append(failures, err)
	}
	return more, errors.Join(failures...)
}

// apply writes an object's status if it differs from the report. It reports whether it
// asked the API server.
func (w *statusWriter) apply(ctx context.Context, object v1beta1.Object, snapshot *resolve.Snapshot,
	reports map[policy.ObjectRef]conditions.Report) (tried bool, err error) {
	source := resource.RefOf(object)
	report, compiled := reports[source]
	if !compiled || report.Generation != object.GetGeneration() {
		return false, nil // changed since; its compilation is queued
	}
	changed, ok := object.DeepCopyObject().(v1beta1.Object)
	if !ok {
		return false, fmt.Errorf("write status of %s: its copy is a %T", source, object)
	}
	before := meta.FindStatusCondition(object.CommonStatus().Conditions, v1beta1.ConditionReady)
	now := time.Now()
	after := setStatus(changed, report, now)
	reviewed := w.setReview(changed, report, now)
	expires, _ := report.ExpiresSoon(now)
	if tenant, ok := changed.(*v1beta1.Tenant); ok {
		tenant.Status.Namespaces = snapshot.TenantNamespaces(tenant.Name)
	}
	this := attempt{uid: string(object.GetUID()), ready: report.Ready, effect: report.EffectiveAt(now), expires: expires, review: reviewed,
		observed: report.Generation}
	if last, _ := w.refused.GetIfPresent(source); reflect.DeepEqual(changed, object) || last == this {
		return false, nil // up to date, or as far as possible
	}
	err = w.applyStatus(ctx, source, changed)
	switch {
	case isPermanent(err):
		w.refused.Set(source, this)
		w.log.WithField("namespace", verify.Namespace(source.Namespace).Label()).WithField("object", source.String()).WithError(err).
			Error("the API server refuses a status, which is not tried again")
		return true, nil
	case err != nil:
		return true, client.IgnoreNotFound(err)
	}
	if (before == nil || before.Status != after.Status || before.Reason != after.Reason) && w.mayRecord(verify.Namespace(source.Namespace)) {
		recordEvent(w.Controller.events, object, after)
	}
	return true, nil
}

// isPermanent reports whether the API server would refuse the same status again.
func isPermanent(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// mayRecord reports whether a namespace may have another event now. The recorder has one
// queue for all of them.
func (w *statusWriter) mayRecord(namespace verify.Namespace) bool {
	limiter, _ := w.events.ComputeIfAbsent(namespace, func() (limiter *rate.Limiter, cancel bool) {
		return rate.NewLimiter(eventsPerSecond, eventBurst), false
	})
	return limiter.Allow()
}

// fieldManager owns the fields of statuses that the controller applies. Others may own
// further conditions.
const fieldManager = "landwaiter"

// own returns the part of an object that the controller applies: its status with the
// controller's conditions. It removes the others from the object.
func own(source policy.ObjectRef, object v1beta1.Object) (*unstructured.Unstructured, error) {
	status := object.CommonStatus()
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return !isOwn(c.Type) })
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	applied := &unstructured.Unstructured{Object: map[string]any{"status": content["status"]}}
	applied.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(source.Kind))
	applied.SetNamespace(object.GetNamespace())
	applied.SetName(object.GetName())
	applied.SetUID(object.GetUID()) // an object that was created again is refused
	return applied, nil
}

// isOwn reports whether the controller owns a condition.
func isOwn(condition string) bool {
	return condition == v1beta1.ConditionReady || condition == v1beta1.ConditionEffective || v1beta1.IsWarning(condition)
}

// applyStatus writes the controller's part of a status.
func (w *statusWriter) applyStatus(ctx context.Context, source policy.ObjectRef, object v1beta1.Object) error {
	applied, err := own(source, object)
	if err != nil {
		return fmt.Errorf("write status of %s: %w", source, err)
	}
	wanted := fieldsOf(applied)
	if err := w.writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write status of %s: %w", source, err)
	}
	// An apply only removes fields that its manager alone owned, and not restored or forged ones:
	// those would stay, and the status would be written repeatedly.
	stale := staleIn(fieldsOf(applied), wanted) // applied is now what the API server answered
	if len(stale) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": stale})
	if err != nil {
		return fmt.Errorf("remove fields from the status of %s: %w", source, err)
	}
	if err := w.writer.Status().Patch(ctx, applied, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("remove fields from the status of %s: %w", source, err)
	}
	return nil
}

// fieldsOf returns the fields of a status.
func fieldsOf(object *unstructured.Unstructured) map[string]any {
	status, _, _ := unstructured.NestedMap(object.Object, "status") // a copy
	return status
}

// staleIn returns the merge patch that removes unwanted fields and conditions of the controller
// from a status. Others' conditions stay.
func staleIn(status, wanted map[string]any) map[string]any {
	stale := map[string]any{}
	for name := range status {
		if _, ok := wanted[name]; !ok {
			stale[name] = nil
		}
	}
	typeOf := func(condition any) string {
		fields, _ := condition.(map[string]any)
		name, _ := fields["type"].(string)
		return name
	}
	has, _ := status["conditions"].([]any)
	want, _ := wanted["conditions"].([]any)
	kept := slices.DeleteFunc(slices.Clone(has), func(condition any) bool {
		return isOwn(typeOf(condition)) && !slices.ContainsFunc(want, func(other any) bool { return typeOf(other) == typeOf(condition) })
	})
	if len(kept) < len(has) {
		stale["conditions"] = kept
	}
	return stale
}

// actionCompile is the action of events.
const actionCompile = "Compile"

// setStatus copies the report, as of now, to the status of object, and returns its condition
// Ready.
func setStatus(object v1beta1.Object, report conditions.Report, now time.Time) metav1.Condition {
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

func condition(kind string, c conditions.Condition, generation int64) metav1.Condition {
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
func recordEvent(recorder events.EventRecorder, object v1beta1.Object, condition metav1.Condition) {
	kind := corev1.EventTypeNormal
	if condition.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	recorder.Eventf(object, nil, kind, condition.Reason, actionCompile, "%s", policy.Cut(condition.Message, maxMessage))
}
