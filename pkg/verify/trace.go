package verify

import (
	"slices"
	"sync"
	"time"
)

// trace collects the stages of one verification; stages run in parallel.
type trace struct {
	now    func() time.Time
	mu     sync.Mutex
	passed []Stage
}

func newTrace(now func() time.Time) *trace { return &trace{now: now} }

// start begins a stage; the function that it returns ends it.
func (t *trace) start(name, detail string) (end func()) {
	began := t.now()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.passed) >= maxStages {
			return
		}
		t.passed = append(t.passed, Stage{Name: name, Duration: t.now().Sub(began), Detail: detail})
	}
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
