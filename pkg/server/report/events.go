package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// newEvent returns an Event about a workload of a namespace, or about the namespace itself.
func newEvent(namespace verify.Namespace, name, reason, message string, about workload.Ref, first, last time.Time,
	count int) *corev1.Event {
	ref := reference(namespace, about)
	if about == (workload.Ref{}) {
		ref = corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: string(namespace), Name: string(namespace)}
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: string(namespace), Name: name,
			Labels: map[string]string{"app.kubernetes.io/managed-by": v1beta1.ReportSource}},
		InvolvedObject: ref, Reason: reason, Message: message, Type: corev1.EventTypeWarning,
		Source: corev1.EventSource{Component: v1beta1.ReportSource}, ReportingController: v1beta1.ReportSource,
		FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last), Count: int32(min(count, 1<<30)), //nolint:gosec // it is bounded here
	}
}

// newNoted returns the Event of a note.
func newNoted(namespace verify.Namespace, n note, about workload.Ref) (*corev1.Event, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("write a note: %w", err)
	}
	name, reason := "landwaiter-denied-", v1beta1.EventImageDenied
	if n.Registry != "" {
		name, reason = "landwaiter-undecided-", v1beta1.EventImageUndecided
	}
	e := newEvent(namespace, name+n.Counter, reason, n.text(), about, n.First, n.Last, n.Count-n.Earlier)
	if !n.Answered.IsZero() {
		e.Type = corev1.EventTypeNormal
	}
	e.Labels[v1beta1.LabelReport] = v1beta1.ReportDenied
	e.Annotations = map[string]string{annotationNote: string(text)}
	return e, nil
}

// newRevoked returns the Event of a revocation. Its name depends on the previous report, so
// that it exists once, regardless of who writes it and how often.
func newRevoked(namespace verify.Namespace, r revocation, about workload.Ref, now time.Time) *corev1.Event {
	hash := sha256.New()
	for _, part := range []string{string(namespace), r.image, stamp(r.since)} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	text := message(fmt.Sprintf("image %s runs and would be denied now: ", policy.Cut(r.image, maxMessageBytes/2)),
		policy.Objection{Reason: r.state.reason, Remediation: r.state.remediation, Command: r.state.command, Contact: r.state.contact})
	return newEvent(namespace, "landwaiter-revoked-"+hex.EncodeToString(hash.Sum(nil))[:24], v1beta1.EventImageNoLongerTrusted, text,
		about, now, now, 1)
}
