package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// annotationNote is the annotation of an Event ImageDenied that the leader reads.
const annotationNote = "landwaiter.dev/denial"

// toFix begins advice in the text of an Event.
const toFix = "To fix: "

// newEvent returns an Event about a workload of a namespace, or about the namespace itself.
func newEvent(namespace verify.Namespace, name, reason, message string, about workload.Ref, first, last time.Time, count int) *corev1.Event {
	ref := reference(namespace, about)
	if about == (workload.Ref{}) {
		ref = corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: string(namespace), Name: string(namespace)}
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: string(namespace), Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": v1beta1.ReportSource}},
		InvolvedObject: ref, Reason: reason, Message: message, Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: v1beta1.ReportSource}, ReportingController: v1beta1.ReportSource,
		FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last), Count: int32(min(count, 1<<30)), //nolint:gosec // it is bounded here
	}
}

// newDenied returns the Event of a note.
func newDenied(namespace verify.Namespace, n note, about workload.Ref) (*corev1.Event, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("write a note: %w", err)
	}
	e := newEvent(namespace, "landwaiter-denied-"+n.Counter, v1beta1.EventImageDenied, n.text(), about, n.First, n.Last, n.Count)
	e.Labels[v1beta1.LabelReport] = v1beta1.ReportDenied
	e.Annotations = map[string]string{annotationNote: string(text)}
	return e, nil
}

// newRevoked returns the Event of a revocation. Its name follows from what the report said
// before, so that it exists once, whoever writes it and however often.
func newRevoked(namespace verify.Namespace, r revocation, about workload.Ref, now time.Time) *corev1.Event {
	hash := sha256.New()
	for _, part := range []string{string(namespace), r.image, stamp(r.since)} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	message := fmt.Sprintf("image %s runs and would be denied now: %s", r.image, r.state.reason)
	if r.state.remediation != "" {
		message += ". " + toFix + r.state.remediation
	}
	return newEvent(namespace, "landwaiter-revoked-"+hex.EncodeToString(hash.Sum(nil))[:24], v1beta1.EventImageNoLongerTrusted, policy.Shown(message, maxMessageBytes), about, now, now, 1)
}

// about returns a workload that has an image, zero if there is none.
func (r *Reporter) about(namespace verify.Namespace, image string) workload.Ref {
	if image != "" {
		if of := r.pods.Having(namespace, image, 1); len(of) > 0 {
			return of[0]
		}
	}
	return workload.Ref{}
}

// isGone reports whether a namespace does not exist any more, or soon will not.
func isGone(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// noteWriter writes the notes of this replica.
type noteWriter struct {
	*Reporter
	all       *rate.Limiter
	each      *limiters
	complaint complaint
}

func newNoteWriter(r *Reporter) *noteWriter {
	return &noteWriter{Reporter: r, all: rate.NewLimiter(notesPerSecond, notesAtOnce), each: newLimiters(accountNotesPerMinute, accountNotesAtOnce)}
}

func (w *noteWriter) prune() { w.each.prune(w.now()) }

// write writes what is due and within the limits. The rest stays due.
func (w *noteWriter) write(ctx context.Context, now time.Time) {
	for _, p := range w.notes.due(now) {
		if w.all.TokensAt(now) < 1 {
			return
		}
		if !w.each.allow(p.account, now) {
			continue
		}
		w.all.AllowN(now, 1)
		err := w.save(ctx, p)
		if err != nil && ctx.Err() != nil {
			return // the last write before the end takes it
		}
		w.notes.settle(p, err, now)
		if err != nil && !isGone(err) && w.complaint.due(now) {
			w.log.WithFields(logrus.Fields{"namespace": p.namespace, "traceID": p.TraceID}).WithError(err).Warn("cannot write an Event about a denial, will try again")
		}
	}
}

// save makes the Event of a note, or brings it up to date.
func (w *noteWriter) save(ctx context.Context, p pending) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	e, err := newDenied(p.namespace, p.note, w.about(p.namespace, p.Image))
	if err != nil {
		return err
	}
	events := w.clients.CoreV1().Events(string(p.namespace))
	if p.written > 0 {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": e.Annotations, "labels": e.Labels}, "reason": e.Reason, "type": e.Type, "message": e.Message, "count": e.Count, "lastTimestamp": e.LastTimestamp})
		if err != nil {
			return fmt.Errorf("write a note: %w", err)
		}
		_, err = events.Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1beta1.ReportSource})
		if !apierrors.IsNotFound(err) || isGone(err) {
			return wrapped(err)
		}
	}
	_, err = events.Create(ctx, e, metav1.CreateOptions{FieldManager: v1beta1.ReportSource})
	if apierrors.IsAlreadyExists(err) { // an earlier answer was lost
		return w.save(ctx, pending{note: p.note, namespace: p.namespace, account: p.account, written: cmp.Or(p.written, 1)})
	}
	return wrapped(err)
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write an Event: %w", err)
}

// complaint says when the same failure may be logged again. The zero value is ready.
type complaint struct{ next time.Time }

func (c *complaint) due(now time.Time) bool {
	if now.Before(c.next) {
		return false
	}
	c.next = now.Add(complainEvery)
	return true
}
