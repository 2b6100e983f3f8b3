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
	last   time.Time // when a registry answered last
	waits  []*string // hosts that are asked now, in the order of their requests
}

// start begins a stage without a verifier.
func (t *trace) start(name, detail string) (end func()) {
	return t.begin(Stage{Name: name, Detail: detail})
}

// begin begins a stage; the function that it returns ends it.
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

// traceKey is where the context of a verification has its trace.
type traceKey struct{}

func (t *trace) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// traceOf returns the trace of the verification that ctx belongs to, nil outside one.
func traceOf(ctx context.Context) *trace {
	t, _ := ctx.Value(traceKey{}).(*trace)
	return t
}

// Awaiting says that the verification that ctx belongs to waits for a registry, until the function that it
// returns is called, once or more. Outside a verification it does nothing.
func Awaiting(ctx context.Context, host string) (end func()) {
	t := traceOf(ctx)
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waits = append(t.waits, &host)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.waits = slices.DeleteFunc(t.waits, func(other *string) bool { return other == &host })
	}
}

// waitsFor returns the hosts that are asked now, each once, at most [maxLocationsNamed].
func (t *trace) waitsFor() (hosts []string) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, host := range t.waits {
		if !slices.Contains(hosts, *host) && len(hosts) < maxLocationsNamed {
			hosts = append(hosts, *host)
		}
	}
	return hosts
}

// answer notes that a registry answered at a time; the zero time says that none did.
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

// answerNow notes that a registry answers.
func (t *trace) answerNow() {
	if t != nil {
		t.answer(t.now())
	}
}

// answered returns when a registry answered last, zero if none did.
func (t *trace) answered() time.Time {
	if t == nil {
		return time.Time{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// StageRedis is the stage that asks Redis for a verdict.
const StageRedis = "redis"

// StartStage begins a stage of the verification that ctx belongs to, and returns what ends
// it. A [Cache] calls it where it waits for a server. Outside a verification it does nothing.
func StartStage(ctx context.Context, name string) (end func()) {
	if t := traceOf(ctx); t != nil {
		return t.start(name, "")
	}
	return func() {}
}

// maxStages bounds the stages that are kept: evidence by strangers has one for each
// check.
const maxStages = 256

// stages returns those that have ended, in the order of their end.
func (t *trace) stages() []Stage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.passed)
}

// look keeps what the locations of a search held.
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

// lookAgain forgets what locations held, because they are asked again.
func (t *trace) lookAgain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked = nil
}

// locations returns where was looked, and what was there.
func (t *trace) locations() []Looked {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.looked)
}
