// Package report shows verdicts where teams look: reports of the OpenReports API and Events,
// in each namespace about what runs and what was denied there. Every replica records its own
// denials as Events; the leader folds them, and results of re-verification, into reports. The
// package reads and writes no other kind of object, and never names a workload of another
// namespace. What others wrote in a namespace only affects that namespace.
package report

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	reportsclient "github.com/openreports/reports-api/pkg/client/clientset/versioned/typed/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// Pods knows what runs. It is safe for concurrent use.
type Pods interface {
	// Namespaces returns the namespaces with pods, and false until they are known.
	Namespaces() ([]verify.Namespace, bool)
	// Running returns the images of the pods of a namespace, for each container of a workload.
	// There may be many, with duplicates.
	Running(namespace verify.Namespace) iter.Seq[workload.Running]
	// Having returns at most limit workloads of a namespace with an image.
	Having(namespace verify.Namespace, image string, limit int) []workload.Ref
}

// Accounts returns the account that pays for a namespace, its label in metrics, and the contacts of
// its policies. It is safe for concurrent use.
type Accounts interface {
	Account(namespace verify.Namespace) verify.Account
	NamespaceLabel(namespace verify.Namespace) string
	Contacts(namespace verify.Namespace, policies []string) []string
}

// Reporter observes verdicts, and writes Events and reports about them. It is safe for
// concurrent use. Call [Reporter.Attach] before anything else.
type Reporter struct {
	accounts Accounts
	pods     Pods
	log      *logrus.Logger
	now      func() time.Time

	clients  kubernetes.Interface
	reports  reportsclient.ReportsGetter
	metadata metadata.Interface

	notes      *notes
	registries *notes
	leading    atomic.Pointer[term]
	known      *known
}

// New returns a Reporter for the API server of config. It registers its metric with metrics.
func New(config *rest.Config, accounts Accounts, log *logrus.Logger, metrics prometheus.Registerer) (*Reporter, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.Timeout = clientQPS, clientBurst, 0
	r := &Reporter{accounts: accounts, log: log, now: time.Now, known: newKnown()}
	replica, fresh := rand.String(8), make(chan struct{}, 1)
	r.notes, r.registries = newNotes(replica, fresh, maxPending, maxPendingEach),
		newNotes(replica, fresh, maxPendingRegistries, maxRegistriesEach)
	var err, metadataErr, reportsErr error
	r.clients, err = kubernetes.NewForConfig(config)
	r.metadata, metadataErr = metadata.NewForConfig(config)
	r.reports, reportsErr = reportsclient.NewForConfig(config) // without discovery, so that it works once their CRD comes
	if err := errors.Join(err, metadataErr, reportsErr); err != nil {
		return nil, fmt.Errorf("new reporter: %w", err)
	}
	if err := metrics.Register(newGauge(r)); err != nil {
		return nil, fmt.Errorf("new reporter: %w", err)
	}
	return r, nil
}

// reportsResource names the resource of reports.
func reportsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: v1beta1.ReportGroup, Version: v1beta1.ReportVersion, Resource: v1beta1.ReportResource}
}

// Attach sets the source of running images.
func (r *Reporter) Attach(pods Pods) { r.pods = pods }

// Run writes Events about this replica's denials and undecided images until ctx ends, including
// the remaining ones.
func (r *Reporter) Run(ctx context.Context) error {
	look, again := time.Tick(noteEvery), time.Tick(lookAgain)
	w := newNoteWriter(r)
	for {
		select {
		case <-r.notes.fresh:
			w.write(ctx, r.now())
		case <-look:
			w.write(ctx, r.now())
		case <-again:
			r.prune()
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
			defer cancel()
			r.registries.hurry()
			w.write(last, r.now())
			return nil
		}
	}
}

// Verified records how an image of a workload was verified.
func (r *Reporter) Verified(namespace verify.Namespace, image string, result verify.Result) {
	r.looked(namespace, result.Reference, &result)
	found := findingOf(result, r.now())
	before, ok := r.known.set(namespace, r.accounts.Account(namespace), image, found)
	if ok && result.Decided() && found.same(before) {
		return
	}
	r.Changed(namespace)
}

// Changed records that pods of a namespace were created or deleted.
func (r *Reporter) Changed(namespace verify.Namespace) {
	if t := r.leading.Load(); t != nil {
		t.mark(namespace, soon)
	}
}

// Forget drops the data of a deleted namespace.
func (r *Reporter) Forget(namespace verify.Namespace) {
	r.known.forget(namespace)
	r.notes.forget(namespace)
	r.registries.forget(namespace)
	if t := r.leading.Load(); t != nil {
		t.forget(namespace)
	}
}

// prune drops the results of images that do not run.
func (r *Reporter) prune() {
	for _, namespace := range r.known.namespaces() {
		known, runs := r.known.get(namespace).images, map[string]bool{}
		for row := range r.pods.Running(namespace) {
			if _, ok := known[row.Image]; ok {
				runs[row.Image] = true
			}
		}
		r.known.keep(namespace, runs)
	}
}

// limiters has a limiter for each account that needs one, and forgets some if there are too many.
type limiters struct {
	perMinute, atOnce int
	of                interface { // a cache of otter, whose type every package that sees it would compile again
		ComputeIfAbsent(account verify.Account, compute func() (limiter *rate.Limiter, cancel bool)) (*rate.Limiter, bool)
	}
}

func newLimiters(perMinute, atOnce int) *limiters {
	return &limiters{perMinute, atOnce, otter.Must(&otter.Options[verify.Account, *rate.Limiter]{MaximumSize: maxLimiters})}
}

// allow reports whether an account may have another one now.
func (l *limiters) allow(account verify.Account, now time.Time) bool {
	limiter, _ := l.of.ComputeIfAbsent(account, func() (limiter *rate.Limiter, cancel bool) {
		return rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), l.atOnce), false
	})
	return limiter.AllowN(now, 1)
}
