package verify

import (
	"context"
	"slices"
	"sync"
	"time"
)

// trace collects the stages of one verification; stages run in parallel.
type trace struct {
	now    func() time.Time
	mu     sync.Mutex
	passed []Stage
	looked []Looked
	last   time.Time // when a registry last answered
	waits  []*wait   // pending requests, in their order
}

// wait is a pending request to a registry.
type wait struct {
	host  string
	since time.Time
}

// start begins a stage without a verifier.
func (t *trace) start(name, detail string) (end func()) {
	return t.begin(Stage{Name: name, Detail: detail})
}

// begin begins a stage; the returned function ends it.
func (t *trace) begin(stage Stage) (end func()) {
	stage.Began = t.now()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.passed) >= maxStages {
			return
		}
		stage.Duration = t.now().Sub(stage.Began)
		t.passed = append(t.passed, stage)
	}
}

// traceKey is the context key of the trace of a verification.
type traceKey struct{}

func (t *trace) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// traceOf returns the trace of the verification that ctx belongs to, nil outside one.
func traceOf(ctx context.Context) *trace {
	t, _ := ctx.Value(traceKey{}).(*trace)
	return t
}

// Awaiting records that the verification of ctx waits for a registry, until the returned function is
// called, which may happen repeatedly. Outside a verification it does nothing.
func Awaiting(ctx context.Context, host string) (end func()) {
	t := traceOf(ctx)
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	pending := &wait{host, t.now()}
	t.waits = append(t.waits, pending)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.waits = slices.DeleteFunc(t.waits, func(other *wait) bool { return other == pending })
	}
}

// waitsFor returns the distinct hosts that have not answered a request for some time, at most [maxLocationsNamed].
func (t *trace) waitsFor(some time.Duration) (hosts []string) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pending := range t.waits {
		if !slices.Contains(hosts, pending.host) && len(hosts) < maxLocationsNamed && t.now().Sub(pending.since) >= some {
			hosts = append(hosts, pending.host)
		}
	}
	return hosts
}

// answer records the time of a registry's answer; the zero time means that none answered.
func (t *trace) answer(at time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.After(t.last) {
		t.last = at
	}
}

// answerNow records that a registry answers now.
func (t *trace) answerNow() {
	if t != nil {
		t.answer(t.now())
	}
}

// answered returns when a registry last answered, zero if none did.
func (t *trace) answered() time.Time {
	if t == nil {
		return time.Time{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// StageRedis is the stage that queries Redis for a verdict.
const StageRedis = "redis"

// StartStage begins a stage of the verification of ctx, and returns the function that ends
// it. A [Cache] calls it when it waits for a server. Outside a verification it does nothing.
func StartStage(ctx context.Context, name string) (end func()) {
	if t := traceOf(ctx); t != nil {
		return t.start(name, "")
	}
	return func() {}
}

// maxStages bounds the stages that are kept: a stranger's evidence has one for each check.
const maxStages = 256

// stages returns the finished stages, in the order of their end.
func (t *trace) stages() []Stage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.passed)
}

// look records the content of a search's locations.
func (t *trace) look(b *board) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[Registry]bool{}
	for _, task := range b.tasks {
		if task.known || seen[task.tier.Registry] {
			continue
		}
		seen[task.tier.Registry] = true
		found := b.looked[task.tier.Registry]
		t.looked = append(t.looked, found[:min(len(found), maxStages-len(t.looked))]...)
	}
}

// lookAgain forgets the content of the locations, which are asked again.
func (t *trace) lookAgain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked = nil
}

// locations returns the locations that were searched, and their content.
func (t *trace) locations() []Looked {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.looked)
}
