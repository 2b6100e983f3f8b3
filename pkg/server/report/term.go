package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// term is one term of the lease, in which the leader writes the reports.
type term struct {
	*Reporter

	mu     sync.Mutex // for spaces
	spaces map[verify.Namespace]*space

	dueMu sync.Mutex // for due and gone
	due   map[verify.Namespace]time.Time
	// gone are the deleted namespaces whose spaces still exist.
	gone map[verify.Namespace]bool

	// writing is held while a report is written, so that the watch does not mistake the new
	// version for another writer's.
	writing sync.Mutex

	all        *rate.Limiter
	each       *limiters
	events     *limiters
	complaints rate.Sometimes
}

func newTerm(r *Reporter) *term {
	return &term{Reporter: r, spaces: map[verify.Namespace]*space{}, due: map[verify.Namespace]time.Time{}, gone: map[verify.Namespace]bool{},
		all:    rate.NewLimiter(rate.Limit(float64(writesPerMinute)/60), writesAtOnce),
		each:   newLimiters(accountWritesPerMinute, accountWritesAtOnce),
		events: newLimiters(accountEventsPerMinute, accountEventsAtOnce), complaints: rate.Sometimes{Interval: complainEvery}}
}

// mark makes a namespace due within a time.
func (t *term) mark(namespace verify.Namespace, within time.Duration) {
	if namespace == verify.Cluster {
		return
	}
	t.dueMu.Lock()
	defer t.dueMu.Unlock()
	at := t.now().Add(within)
	if known, ok := t.due[namespace]; !ok || at.Before(known) {
		t.due[namespace] = at
	}
}

// takeDue returns the due namespaces, those that have been due longest first.
func (t *term) takeDue(now time.Time) []verify.Namespace {
	t.dueMu.Lock()
	defer t.dueMu.Unlock()
	var found []verify.Namespace
	for namespace, at := range t.due {
		if !now.Before(at) {
			found = append(found, namespace)
		}
	}
	slices.SortFunc(found, func(a, b verify.Namespace) int { return cmp.Or(t.due[a].Compare(t.due[b]), cmp.Compare(a, b)) })
	return found
}

// begin marks a namespace as not due: later changes mark it again.
func (t *term) begin(namespace verify.Namespace) {
	t.dueMu.Lock()
	defer t.dueMu.Unlock()
	delete(t.due, namespace)
}

// space returns the space of a namespace. Callers hold mu.
func (t *term) space(namespace verify.Namespace) *space {
	s := t.spaces[namespace]
	if s == nil {
		s = newSpace()
		t.spaces[namespace] = s
	}
	return s
}

// forget marks a namespace as deleted. It holds the lock briefly: policies are not compiled
// until it returns.
func (t *term) forget(namespace verify.Namespace) {
	t.dueMu.Lock()
	defer t.dueMu.Unlock()
	t.gone[namespace] = true
}

// sweep drops the spaces of namespaces that were deleted.
func (t *term) sweep() {
	t.dueMu.Lock()
	gone := t.gone
	t.gone = map[verify.Namespace]bool{}
	t.dueMu.Unlock()
	if len(gone) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for namespace := range gone {
		delete(t.spaces, namespace)
	}
}

// markAll marks every namespace with something to report or something written.
func (t *term) markAll() {
	found, _ := t.pods.Namespaces()
	t.mu.Lock()
	found = slices.AppendSeq(found, maps.Keys(t.spaces))
	t.mu.Unlock()
	for _, namespace := range found {
		t.mark(namespace, soon)
	}
}

// fold folds the note of an Event.
func (t *term) fold(namespace verify.Namespace, n note) {
	t.mu.Lock()
	changed, fresh := t.space(namespace).fold(n, t.now())
	t.mu.Unlock()
	switch {
	case fresh:
		t.mark(namespace, soon)
	case changed:
		t.mark(namespace, later)
	}
}

// errBusy says that the limits allow no write now.
var errBusy = errors.New("the limit of writes is reached")

// work writes the due reports until ctx ends, or the CRD of reports is deleted.
func (t *term) work(ctx context.Context) error {
	t.markAll()
	looked := t.now()
	for ticks := time.Tick(tick); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
		if now := t.now(); now.Sub(looked) > lookAgain {
			looked = now
			t.markAll()
		}
		if err := t.flushDue(ctx); err != nil {
			return err
		}
	}
}

// flushDue writes due reports as far as the limits allow.
func (t *term) flushDue(ctx context.Context) error {
	t.sweep()
	defer t.sweep()
	for _, namespace := range t.takeDue(t.now()) {
		if t.all.TokensAt(t.now()) < 1 {
			return nil
		}
		t.begin(namespace)
		err := t.flush(ctx, namespace)
		if isUndefined(err) {
			return err
		}
		t.again(ctx, namespace, err)
	}
	return nil
}

// again marks a namespace that could not be flushed.
func (t *term) again(ctx context.Context, namespace verify.Namespace, err error) {
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.Is(err, errBusy):
		t.mark(namespace, soon)
	case isGone(err):
		t.forget(namespace)
	default:
		t.mark(namespace, retryAfter)
		t.complaints.Do(func() {
			t.log.WithField("namespace", namespace).WithError(err).Warn("cannot write a report, will try again")
		})
	}
}

// flush updates the reports of a namespace.
func (t *term) flush(ctx context.Context, namespace verify.Namespace) error {
	ctx, cancel := context.WithTimeout(ctx, 3*requestTimeout)
	defer cancel()
	now := t.now()
	t.mu.Lock()
	s, room := t.space(namespace), t.room(namespace)
	s.expire(now)
	t.mu.Unlock()
	next, revoked := s.refresh(t.pods.Running(namespace), t.known.get(namespace), room, now)
	if err := t.announceAll(ctx, namespace, s, revoked, now); err != nil {
		return err
	}
	having := t.having(namespace, s)
	t.mu.Lock()
	s.images = next
	reports := s.render(namespace, func(image string) []workload.Ref { return having[image] }, room)
	if s.empty() {
		delete(t.spaces, namespace)
	}
	t.mu.Unlock()
	return t.save(ctx, namespace, s, reports)
}

// having returns the workloads with the denied images. A namespace may have many pods with
// each, so it does not hold the lock of all spaces meanwhile.
func (t *term) having(namespace verify.Namespace, s *space) map[string][]workload.Ref {
	t.mu.Lock()
	images := slices.Collect(maps.Keys(s.denials))
	for _, d := range s.registries {
		images = append(images, d.image)
	}
	t.mu.Unlock()
	found := map[string][]workload.Ref{}
	for _, image := range images {
		if image != "" {
			found[image] = t.pods.Having(namespace, image, maxWorkloads)
		}
	}
	return found
}

// room returns a namespace's share of its account's space. Callers hold mu.
func (t *term) room(namespace verify.Namespace) room {
	account, sharers, images := t.accounts.Account(namespace), 0, 0
	for other, s := range t.spaces {
		if t.accounts.Account(other) != account {
			continue
		}
		sharers++
		if other != namespace {
			images += len(s.images)
		}
	}
	sharers = max(sharers, 1)
	return room{images: max(maxImages-images, maxImages/sharers), running: max(runningBytes/sharers, minBytes),
		denied: max(deniedBytes/sharers, minBytes)}
}

// save writes changed reports, and deletes our other ones.
func (t *term) save(ctx context.Context, namespace verify.Namespace, s *space, reports []*openreports.Report) error {
	t.mu.Lock()
	rest := maps.Clone(s.written)
	t.mu.Unlock()
	for _, r := range reports {
		hash := hashOf(r)
		before, exists := rest[r.Name]
		delete(rest, r.Name)
		if exists && before.hash == hash {
			continue
		}
		if before.other {
			return errors.Join(t.reload(ctx, namespace, s, r.Name), errBusy)
		}
		if err := t.put(ctx, namespace, s, r, hash, before.version); err != nil {
			return err
		}
	}
	for name := range rest {
		if err := t.remove(ctx, namespace, s, name); err != nil {
			return err
		}
	}
	return nil
}

// allow consumes one write from the limits.
func (t *term) allow(namespace verify.Namespace) error {
	now := t.now()
	if t.all.TokensAt(now) < 1 || !t.each.allow(t.accounts.Account(namespace), now) {
		return errBusy
	}
	t.all.AllowN(now, 1)
	return nil
}

// put creates a report, or updates its known version. If the API server has another version,
// it is read, and the report is written later.
func (t *term) put(ctx context.Context, namespace verify.Namespace, s *space, r *openreports.Report, hash, version string) error {
	if err := t.allow(namespace); err != nil {
		return err
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	var stored *openreports.Report
	var err error
	if version == "" {
		stored, err = t.reports.Reports(r.Namespace).Create(ctx, r, metav1.CreateOptions{FieldManager: v1beta1.ReportSource})
	} else {
		r.ResourceVersion = version
		stored, err = t.reports.Reports(r.Namespace).Update(ctx, r, metav1.UpdateOptions{FieldManager: v1beta1.ReportSource})
	}
	switch {
	case err == nil:
		t.mu.Lock()
		defer t.mu.Unlock()
		s.written[r.Name] = written{version: stored.ResourceVersion, hash: hash}
		return nil
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return errors.Join(t.reload(ctx, namespace, s, r.Name), errBusy)
	case version != "" && apierrors.IsNotFound(err) && !isUndefined(err):
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(s.written, r.Name)
		return errBusy // it was deleted, and is created again
	}
	return fmt.Errorf("write report %s: %w", r.Name, err)
}

// reload reads a report that somebody else has written. If that was another term of the
// lease, it may contain denials that this one does not have.
func (t *term) reload(ctx context.Context, namespace verify.Namespace, s *space, name string) error {
	stored, err := t.reports.Reports(string(namespace)).Get(ctx, name, metav1.GetOptions{})
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		delete(s.written, name)
		return nil
	case err != nil:
		return fmt.Errorf("read report %s: %w", name, err)
	}
	if name == v1beta1.ReportNameDenied {
		s.load(stored, t.now(), 0) // nothing that runs is in it
	}
	s.written[name] = written{version: stored.ResourceVersion}
	return nil
}

// remove deletes a report without content.
func (t *term) remove(ctx context.Context, namespace verify.Namespace, s *space, name string) error {
	if err := t.allow(namespace); err != nil {
		return err
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	err := t.reports.Reports(string(namespace)).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && (!apierrors.IsNotFound(err) || isUndefined(err)) {
		return fmt.Errorf("delete report %s: %w", name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(s.written, name)
	return nil
}

// hashOf returns a hash of a report's content.
func hashOf(r *openreports.Report) string {
	text, err := json.Marshal(map[string]any{"labels": r.Labels, "source": r.Source, "scope": r.Scope, "scopeSelector": r.ScopeSelector,
		"configuration": r.Configuration, "summary": r.Summary, "results": r.Results})
	if err != nil {
		return "" // strings and numbers can be marshalled
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
