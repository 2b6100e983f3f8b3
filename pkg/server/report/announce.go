package report

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// announcement is the unwritten Event of a revocation. It counts once against the limits of
// its account, regardless of retries.
type announcement struct {
	image string
	event *corev1.Event // nil if the limits exclude it
	done  bool
	owed  bool // the report says it already
}

// announceAll writes the Events of revocations, within the limits of the account: the report
// contains those that Events omit. While it fails, the report waits, so that the next leader
// announces them, but at most for withheldFor.
func (t *term) announceAll(ctx context.Context, namespace verify.Namespace, s *space, revoked []revocation, now time.Time) error {
	current := map[string]*announcement{}
	for name, a := range s.announcing {
		if a.owed && s.images[a.image].result == v1beta1.ReportFail {
			current[name] = a
		}
	}
	for _, r := range revoked {
		e := newRevoked(namespace, r, t.about(namespace, r.image), now)
		a := s.announcing[e.Name]
		if a == nil {
			a = &announcement{image: r.image}
			if t.events.allow(t.accounts.Account(namespace), now) {
				a.event = e
			}
		}
		current[e.Name] = a
	}
	s.announcing = current
	err := t.announceCurrent(ctx, namespace, current)
	if err == nil {
		s.announcing, s.withheld = nil, time.Time{}
		return nil
	}
	if s.withheld.IsZero() {
		s.withheld = now
	}
	if now.Sub(s.withheld) < withheldFor {
		return err
	}
	maps.DeleteFunc(current, func(_ string, a *announcement) bool { return a.done || a.event == nil })
	for _, a := range current {
		a.owed = true
	}
	t.mark(namespace, retryAfter)
	t.complainOfEvents(namespace, err)
	return nil
}

// announceCurrent writes the Events that are not written yet, until one fails.
func (t *term) announceCurrent(ctx context.Context, namespace verify.Namespace, current map[string]*announcement) error {
	for _, name := range slices.Sorted(maps.Keys(current)) {
		a := current[name]
		if a.done || a.event == nil {
			continue
		}
		_, err := t.clients.CoreV1().Events(string(namespace)).Create(ctx, a.event, metav1.CreateOptions{FieldManager: v1beta1.ReportSource})
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
		case apierrors.IsForbidden(err) && !isGone(err) || apierrors.IsInvalid(err): // a retry cannot help, and the report is more important
			t.complainOfEvents(namespace, err)
		default:
			return wrapped(err)
		}
		a.done = true
	}
	return nil
}

func (t *term) complainOfEvents(namespace verify.Namespace, err error) {
	t.complaints.Do(func() {
		t.log.WithField("namespace", namespace).WithError(err).Warn("cannot write an Event about an image that is no longer trusted")
	})
}
