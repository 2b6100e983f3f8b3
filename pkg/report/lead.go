package report

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// ourReports selects the reports that this program may have written.
const ourReports = v1alpha1.LabelReport + " in (" + v1alpha1.ReportRunning + "," + v1alpha1.ReportDenied + ")"

// Lead writes the reports until ctx ends. It is the duty of the replica that leads.
func (r *Reporter) Lead(ctx context.Context) error {
	t := newTerm(r)
	if !t.await(ctx) {
		return nil
	}
	if err := t.load(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	r.leading.Store(t)
	defer r.leading.Store(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { t.followNotes(ctx); return nil })
	group.Go(func() error { t.followReports(ctx); return nil })
	group.Go(func() error { return t.work(ctx) })
	return group.Wait()
}

// isUndefined reports whether the API server knows no reports.
func isUndefined(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Kind != "namespaces" && details.Name == ""
}

// await waits until it is known what runs, and until the API server has reports. It returns
// false if ctx ends first.
func (t *term) await(ctx context.Context) bool {
	for missing := false; ; {
		_, synced := t.pods.Namespaces()
		var err error
		if synced {
			if _, err = t.page(ctx, "", 1); err == nil {
				if missing {
					t.log.Info("the API server has reports now: they are written")
				}
				return true
			}
		}
		pause := tick
		if err != nil && ctx.Err() == nil {
			pause = retryAfter
			if t.complaints.due(t.now()) {
				missing = isUndefined(err)
				t.complain(err)
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// complain logs why no reports can be written.
func (t *term) complain(err error) {
	if isUndefined(err) {
		t.log.Error("no reports are written: the API server has no reports.openreports.io; set reports.installCRDs of the chart, or install the definitions of the OpenReports API")
		return
	}
	t.log.WithError(err).Error("no reports are written: they cannot be read, will try again")
}

// page reads some of our reports.
func (t *term) page(ctx context.Context, next string, size int64) (*openreports.ReportList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list := &openreports.ReportList{}
	options := &metav1.ListOptions{LabelSelector: ourReports, Limit: size, Continue: next}
	err := t.reports.Get().Resource(v1alpha1.ReportResource).VersionedParams(options, metav1.ParameterCodec).Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("list reports: %w", err)
	}
	return list, nil
}

// load takes over what former terms have written.
func (t *term) load(ctx context.Context) error {
	for next := ""; ; {
		list, err := t.page(ctx, next, pageSize)
		if err != nil {
			return err
		}
		t.mu.Lock()
		for i := range list.Items {
			if r := &list.Items[i]; v1alpha1.ReportAbout(r.Name) != "" {
				t.space(verify.Namespace(r.Namespace)).load(r, t.now())
			}
		}
		t.mu.Unlock()
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// followNotes folds the Events of all replicas until ctx ends. Whoever may write Events can
// make large ones, so it reads a few at a time and keeps none, unlike an informer.
func (t *term) followNotes(ctx context.Context) {
	var failed complaint
	for ctx.Err() == nil {
		if err := t.readNotes(ctx); err != nil && ctx.Err() == nil && failed.due(t.now()) {
			t.log.WithError(err).Warn("cannot read Events about denials, will try again")
		}
		pause := time.NewTimer(soon)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// readNotes folds the Events that there are, and then those that come until the watch ends.
func (t *term) readNotes(ctx context.Context) error {
	events := t.clients.CoreV1().Events(metav1.NamespaceAll)
	selected := metav1.ListOptions{LabelSelector: v1alpha1.LabelReport + "=" + v1alpha1.ReportDenied, FieldSelector: "reason=" + v1alpha1.EventImageDenied}
	paged := selected
	paged.Limit = pageSize
	for {
		list, err := events.List(ctx, paged)
		if err != nil {
			return fmt.Errorf("list Events: %w", err)
		}
		for i := range list.Items {
			t.noted(&list.Items[i])
		}
		if paged.Continue = list.Continue; paged.Continue == "" {
			selected.ResourceVersion = list.ResourceVersion
			break
		}
	}
	changes, err := events.Watch(ctx, selected)
	if err != nil {
		return fmt.Errorf("watch Events: %w", err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		switch change.Type {
		case watch.Error:
			return fmt.Errorf("watch Events: %w", apierrors.FromObject(change.Object))
		case watch.Added, watch.Modified:
			t.noted(change.Object)
		case watch.Deleted, watch.Bookmark:
		}
	}
	return nil
}

// noted takes over the note of an Event. Whoever may write Events in a namespace can forge
// one, about that namespace.
func (t *term) noted(object runtime.Object) {
	e, ok := object.(*corev1.Event)
	if !ok || e.Reason != v1alpha1.EventImageDenied {
		return
	}
	if n, ok := parseNote(e.Annotations[annotationNote], t.now()); ok {
		t.fold(verify.Namespace(e.Namespace), n)
	}
}

// followReports has a report written again if somebody else writes or deletes it, until ctx
// ends. It reads metadata only: others' reports may be large.
func (t *term) followReports(ctx context.Context) {
	reports := t.metadata.Resource(schema.GroupVersionResource{Group: v1alpha1.ReportGroup, Version: v1alpha1.ReportVersion, Resource: v1alpha1.ReportResource})
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = ourReports
			return reports.List(ctx, o) //nolint:wrapcheck // the reflector says what it did
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = ourReports
			return reports.Watch(ctx, o) //nolint:wrapcheck // the reflector says what it did
		},
	}
	cache.NewReflector(source, &metav1.PartialObjectMetadata{}, &told{put: t.seen, drop: t.dropped, all: t.seenAll}, 0).RunWithContext(ctx)
}

// isLater reports whether one resourceVersion is later than another, and true if that is
// unknown.
func isLater(one, other string) bool {
	a, err := strconv.ParseUint(one, 10, 64)
	b, otherErr := strconv.ParseUint(other, 10, 64)
	return err != nil || otherErr != nil || a > b
}

// seen compares a report with what was written.
func (t *term) seen(object any) { t.compare(object, false) }

// dropped does so for one that was deleted.
func (t *term) dropped(object any) { t.compare(object, true) }

func (t *term) compare(object any, deleted bool) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || v1alpha1.ReportAbout(m.Name) == "" {
		return
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.space(verify.Namespace(m.Namespace))
	known, exists := s.written[m.Name]
	switch {
	case exists && !isLater(m.ResourceVersion, known.version), !exists && deleted:
		return
	case deleted:
		delete(s.written, m.Name)
	default:
		s.written[m.Name] = written{version: m.ResourceVersion, other: true}
	}
	t.mark(verify.Namespace(m.Namespace), soon)
}

// seenAll compares everything that is written with a list of what exists.
func (t *term) seenAll(objects []any) {
	exists := map[string]bool{}
	for _, object := range objects {
		if m, ok := object.(*metav1.PartialObjectMetadata); ok {
			exists[m.Namespace+"/"+m.Name] = true
		}
		t.seen(object)
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for namespace, s := range t.spaces {
		for name := range s.written {
			if !exists[string(namespace)+"/"+name] {
				// It may have been made after the list. Then making it again fails, and it is read.
				delete(s.written, name)
				t.mark(namespace, soon)
			}
		}
	}
}

// told is a store that keeps nothing: it passes objects on.
type told struct {
	put, drop func(object any)
	all       func(objects []any)
}

// Add implements [cache.ReflectorStore].
func (s *told) Add(object any) error { s.put(object); return nil }

// Update implements [cache.ReflectorStore].
func (s *told) Update(object any) error { s.put(object); return nil }

// Delete implements [cache.ReflectorStore].
func (s *told) Delete(object any) error {
	if s.drop != nil {
		s.drop(object)
	}
	return nil
}

// Replace implements [cache.ReflectorStore].
func (s *told) Replace(objects []any, _ string) error {
	if s.all != nil {
		s.all(objects)
		return nil
	}
	for _, object := range objects {
		s.put(object)
	}
	return nil
}

// Resync implements [cache.ReflectorStore].
func (s *told) Resync() error { return nil }
