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
}

func newTrace(now func() time.Time) *trace { return &trace{now: now} }

// start begins a stage that is nobody's in particular.
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

// StageRedis is the stage that asks Redis for a verdict.
const StageRedis = "redis"

// StartStage begins a stage of the verification that ctx belongs to, and returns what ends
// it. A [Cache] calls it where it waits for a server. Outside a verification it does nothing.
func StartStage(ctx context.Context, name string) (end func()) {
	if t, ok := ctx.Value(traceKey{}).(*trace); ok {
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
		if task.known || seen[task.layer.Registry] {
			continue
		}
		seen[task.layer.Registry] = true
		found := b.looked[task.layer.Registry]
		t.looked = append(t.looked, found[:min(len(found), maxStages-len(t.looked))]...)
	}
}

// locations returns where was looked, and what was there.
func (t *trace) locations() []Looked {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.looked)
}
