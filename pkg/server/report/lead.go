package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// ourReports selects the reports that this program may have written.
const ourReports = v1beta1.LabelReport + " in (" + v1beta1.ReportRunning + "," + v1beta1.ReportDenied + ")"

// Lead writes the reports until ctx ends. Only the leader runs it.
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
	group.Go(func() error {
		t.repeat(ctx, t.readNotes, func(err error) { t.log.WithError(err).Warn("cannot read Events about denials, will try again") })
		return nil
	})
	group.Go(func() error {
		t.repeat(ctx, t.readReports, func(err error) { t.log.WithError(err).Warn("cannot watch reports, will try again") })
		return nil
	})
	group.Go(func() error { return t.work(ctx) })
	return group.Wait()
}

// isUndefined reports whether the API server does not have the kind of reports.
func isUndefined(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Kind != "namespaces" && details.Name == ""
}

// await waits until the running images are known, and until the API server has reports. It
// returns false if ctx ends first.
func (t *term) await(ctx context.Context) bool {
	began, unread := t.now(), rate.Sometimes{Interval: complainEvery}
	for missing := false; ; {
		_, synced := t.pods.Namespaces()
		var err error
		if !synced && t.now().Sub(began) >= unreadFor {
			unread.Do(func() {
				t.log.Error("no reports are written: pods and workloads have not all been read; the account of serve needs permission to list " +
					"and watch them")
			})
		}
		if synced {
			if _, err = t.page(ctx, metav1.ListOptions{LabelSelector: ourReports, Limit: 1}); err == nil {
				if missing {
					t.log.Info("the API server has reports now: they are written")
				}
				return true
			}
		}
		pause := tick
		if err != nil && ctx.Err() == nil {
			pause = retryAfter
			t.complaints.Do(func() {
				missing = isUndefined(err)
				t.complain(err)
			})
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
		t.log.Error("no reports are written: the API server has no reports.openreports.io; set reports.installCRDs of the chart, or install " +
			"the CRDs of the OpenReports API")
		return
	}
	t.log.WithError(fmt.Errorf("list reports: %w", err)).Error("no reports are written: they cannot be read, will try again")
}

// page reads some of our reports.
func (t *term) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return t.reports.Reports(metav1.NamespaceAll).List(ctx, options)
}

// load reads what former terms have written, of each account as much as they could write:
// others may have imitated them.
func (t *term) load(ctx context.Context) error {
	taken := map[verify.Account]int{}
	_, err := each(ctx, "reports", metav1.ListOptions{LabelSelector: ourReports}, t.page, func(object runtime.Object) {
		r, ok := object.(*openreports.Report)
		if !ok || v1beta1.ReportAbout(r.Name) == "" {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		account := t.accounts.Account(verify.Namespace(r.Namespace))
		taken[account] += t.space(verify.Namespace(r.Namespace)).load(r, t.now(), max(runningBytes-taken[account], minBytes))
	})
	return err
}

// repeat calls read until ctx ends. It logs failures, but not each of them.
func (t *term) repeat(ctx context.Context, read func(context.Context) error, complain func(error)) {
	failed := rate.Sometimes{Interval: complainEvery}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := read(ctx); err != nil && ctx.Err() == nil {
			failed.Do(func() { complain(err) })
		}
	}, soon)
}

// each calls do for every object of a kind, reads a few at a time, and returns the version of
// the list.
func each(ctx context.Context, what string, o metav1.ListOptions, list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	do func(runtime.Object)) (string, error) {
	for o.Limit = pageSize; ; {
		page, err := list(ctx, o)
		if err != nil {
			return "", fmt.Errorf("list %s: %w", what, err)
		}
		of, err := meta.ListAccessor(page)
		if err != nil {
			return "", fmt.Errorf("list %s: %w", what, err)
		}
		if err := meta.EachListItem(page, func(item runtime.Object) error { do(item); return nil }); err != nil {
			return "", fmt.Errorf("list %s: %w", what, err)
		}
		if o.Continue = of.GetContinue(); o.Continue == "" {
			return of.GetResourceVersion(), nil
		}
	}
}

// changes calls do for each object that a watch reports as put or deleted, until it ends.
func changes(ctx context.Context, what string, o metav1.ListOptions,
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error), do func(object runtime.Object, deleted bool)) error {
	following, err := follow(ctx, o)
	if err != nil {
		return fmt.Errorf("watch %s: %w", what, err)
	}
	defer following.Stop()
	for change := range following.ResultChan() {
		switch change.Type {
		case watch.Error:
			return fmt.Errorf("watch %s: %w", what, apierrors.FromObject(change.Object))
		case watch.Added, watch.Modified, watch.Deleted:
			do(change.Object, change.Type == watch.Deleted)
		case watch.Bookmark:
		}
	}
	return nil
}

// readNotes folds the existing Events of all replicas, and then new ones until the watch ends.
// Anyone who can write Events can make large ones, so it reads a few at a time and keeps none,
// unlike an informer.
func (t *term) readNotes(ctx context.Context) (err error) {
	events := t.clients.CoreV1().Events(metav1.NamespaceAll)
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return events.List(ctx, o) }
	selected := metav1.ListOptions{LabelSelector: v1beta1.LabelReport + "=" + v1beta1.ReportDenied}
	if selected.ResourceVersion, err = each(ctx, "Events", selected, list, t.noted); err != nil {
		return err
	}
	return changes(ctx, "Events", selected, events.Watch, func(object runtime.Object, deleted bool) {
		if !deleted {
			t.noted(object)
		}
	})
}

// noted folds the note of an Event. Anyone who can write Events in a namespace can forge one
// about that namespace.
func (t *term) noted(object runtime.Object) {
	e, ok := object.(*corev1.Event)
	if !ok || e.Reason != v1beta1.EventImageDenied && e.Reason != v1beta1.EventImageUndecided {
		return
	}
	if n, ok := parseNote(e.Annotations[annotationNote], t.now()); ok {
		of := t.notes
		if n.Registry != "" {
			of = t.registries
		}
		namespace := verify.Namespace(e.Namespace)
		n.Remediation, n.Command = of.advice(namespace, n)
		n.Contact = policy.JoinContacts(t.accounts.Contacts(namespace, append([]string{n.Policy}, n.Others...)), maxContactBytes)
		t.fold(namespace, n)
	}
}

// readReports schedules a report for writing if somebody else writes or deletes it: it compares
// the existing reports with the written ones, and then changes until the watch ends. It reads
// metadata only, a few at a time, and keeps none: others' reports may be large.
func (t *term) readReports(ctx context.Context) (err error) {
	reports := t.metadata.Resource(reportsResource())
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return reports.List(ctx, o) }
	exists := map[string]bool{} // only ours, so few per namespace
	selected := metav1.ListOptions{LabelSelector: ourReports}
	selected.ResourceVersion, err = each(ctx, "reports", selected, list, func(object runtime.Object) {
		if m, ok := object.(*metav1.PartialObjectMetadata); ok && v1beta1.ReportAbout(m.Name) != "" {
			exists[m.Namespace+"/"+m.Name] = true
		}
		t.compare(object, false)
	})
	if err != nil {
		return err
	}
	t.missed(exists)
	return changes(ctx, "reports", selected, reports.Watch, t.compare)
}

// isLater reports whether one resourceVersion is later than another, and true if that is
// unknown.
func isLater(one, other string) bool {
	order, err := resourceversion.CompareResourceVersion(one, other)
	return err != nil || order > 0
}

// compare compares an existing or deleted report with the written one.
func (t *term) compare(object runtime.Object, deleted bool) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || v1beta1.ReportAbout(m.Name) == "" {
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

// missed drops written reports that do not exist, by namespace and name.
func (t *term) missed(exists map[string]bool) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for namespace, s := range t.spaces {
		for name := range s.written {
			if !exists[string(namespace)+"/"+name] {
				// It may have been created after the list. Then creating it again fails, and it is read.
				delete(s.written, name)
				t.mark(namespace, soon)
			}
		}
	}
}

// gauge collects running images. Only the leader has series, so that they can be summed; the
// others describe the metric as well, so that no other metric takes the name.
type gauge struct {
	reporter *Reporter
	desc     *prometheus.Desc
}

func newGauge(r *Reporter) gauge {
	return gauge{r, prometheus.NewDesc("landwaiter_running_images",
		"Distinct images of running pods, by namespace and the result of the last verification: pass, fail, warn, error or skip. Of the "+
			"replica that leads. With --reports.",
		[]string{"namespace", "outcome"}, nil)}
}

// Describe implements [prometheus.Collector].
func (g gauge) Describe(into chan<- *prometheus.Desc) { into <- g.desc }

// Collect implements [prometheus.Collector].
func (g gauge) Collect(into chan<- prometheus.Metric) {
	if t := g.reporter.leading.Load(); t != nil {
		t.collect(g.desc, into)
	}
}

func (t *term) collect(desc *prometheus.Desc, into chan<- prometheus.Metric) {
	counts := map[[2]string]int{}
	t.mu.Lock()
	for namespace, s := range t.spaces {
		for result, n := range s.counts() {
			counts[[2]string{t.accounts.NamespaceLabel(namespace), result}] += n
		}
	}
	t.mu.Unlock()
	for labels, n := range counts {
		into <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}
