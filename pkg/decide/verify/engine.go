package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Options configure an [Engine]. A zero or negative value means the default, which
// each field names.
type Options struct {
	// WorkTimeout bounds the work on one image. Work continues after the caller leaves,
	// so that a retry finds a warm cache. Default 10 s.
	WorkTimeout time.Duration
	// InFlight and InFlightPerAccount bound the images in flight. Further images are Undecided
	// immediately. Defaults 512 and 128.
	InFlight, InFlightPerAccount int
	// EvidenceBytes bounds the memory for the evidence of the images in flight. An account may
	// use at most as much as is free for others; beyond that its images are Undecided. Default
	// 144 MiB, of which one account alone gets half. The blobs of one image take at most a
	// ninth. While a large attestation is checked, one at a time, libraries take up to five
	// ninths in addition.
	EvidenceBytes int64
	// Processors is the number of goroutines that check evidence, and the number that match
	// patterns. Accounts take turns. Default: one less than [runtime.GOMAXPROCS], so that known
	// verdicts are always answered.
	Processors int
	// PassTTL and DenyTTL are how long a verdict is cached, unless a proof that it rests on ends
	// earlier. A pass is exact for its digest and generation until then; a deny should soon
	// notice a new signature. Defaults 1 h and 10 s. Undecided is never cached.
	PassTTL, DenyTTL time.Duration
	// TagTTL is how long the digest of a tag is cached. Default 5 s.
	TagTTL time.Duration
}

func (o Options) withDefaults() Options {
	o.WorkTimeout = cmp.Or(max(o.WorkTimeout, 0), defaultWorkTimeout)
	o.InFlight = cmp.Or(max(o.InFlight, 0), DefaultInFlight)
	o.InFlightPerAccount = cmp.Or(max(o.InFlightPerAccount, 0), DefaultInFlightPerAccount)
	o.EvidenceBytes = cmp.Or(max(o.EvidenceBytes, 0), DefaultEvidenceBytes)
	o.Processors = cmp.Or(max(o.Processors, 0), max(runtime.GOMAXPROCS(0)-1, 1))
	o.PassTTL = cmp.Or(max(o.PassTTL, 0), DefaultPassTTL)
	o.DenyTTL = cmp.Or(max(o.DenyTTL, 0), DefaultDenyTTL)
	o.TagTTL = cmp.Or(max(o.TagTTL, 0), DefaultTagTTL)
	return o
}

// Engine verifies images. It is safe for concurrent use.
type Engine struct {
	cache   Cache
	now     func() time.Time
	options Options
	flights singleflight.Group // by Key.String: concurrent callers share the work on an image
	traces  sync.Map           // of string to *trace: of the flights, for callers whose deadline has passed
	limit   *fair.Gate[Account]
	memory  *fair.Gate[Account]
	// imageBytes bounds all blobs that are fetched for one image.
	imageBytes int64
	turns      *fair.Turns[Account] // for evidence
	larges     *fair.Turns[Account] // for checks that take much memory: one at a time
	plans      *fair.Turns[Account] // for rules and exceptions, so that an image without evidence waits for no other
	seed       maphash.Seed
	later      chan struct{} // one element for each image that is verified after its answer
}

// NewEngine returns an Engine that caches results in cache and reads the time from
// now.
func NewEngine(cache Cache, now func() time.Time, options Options) *Engine {
	options = options.withDefaults()
	return &Engine{cache: cache, now: now, options: options, limit: fair.NewGate[Account](int64(options.InFlight)),
		imageBytes: max(options.EvidenceBytes/imagePart, minImageBytes),
		memory:     fair.NewGate[Account](options.EvidenceBytes), turns: fair.NewTurns[Account](options.Processors, now),
		larges: fair.NewTurns[Account](1, now), plans: fair.NewTurns[Account](options.Processors, now),
		seed: maphash.MakeSeed(), later: make(chan struct{}, laterAtOnce)}
}

// PassTTL returns how long a verdict that allows is cached.
func (e *Engine) PassTTL() time.Duration { return e.options.PassTTL }

// Verify decides whether config allows ref, before ctx ends. If it cannot, the verdict is
// Undecided and says why.
func (e *Engine) Verify(ctx context.Context, config *Config, ref image.Reference) Result {
	return e.judge(ctx, config, ref, mode{})
}

// Warm is Verify at low priority: it only uses spare capacity. While half of the
// in-flight limit is in use, in total or of the account, the result is immediately
// Undecided and Overloaded.
func (e *Engine) Warm(ctx context.Context, config *Config, ref image.Reference) Result {
	return e.judge(ctx, config, ref, mode{lowPriority: true})
}

// Refresh re-verifies at low priority, bypassing the cached tag and verdict, and restarts
// their TTL. An Undecided result leaves the cached one.
func (e *Engine) Refresh(ctx context.Context, config *Config, ref image.Reference) Result {
	return e.judge(ctx, config, ref, mode{refresh: true, lowPriority: true})
}

// Unproven decides about ref by rules and exceptions alone, as if it had no evidence. It makes no request. It is
// for image names without tag and digest, for which no evidence can exist.
func (e *Engine) Unproven(ctx context.Context, config *Config, ref image.Reference) Result {
	return e.judge(ctx, config, ref, mode{unproven: true})
}

// judge verifies an image, and then applies exceptions to a denial.
func (e *Engine) judge(ctx context.Context, config *Config, ref image.Reference, how mode) Result {
	result, tasks := e.verify(ctx, config.all(), ref, nil, how)
	result, _ = e.except(ctx, config, ref, result, tasks, how)
	return result
}

// verify handles one image: it plans, unless the caller passes the plan as tasks, pins, looks in
// the cache, and on a miss gathers evidence and decides. It also returns the plan, nil if there
// was no time.
func (e *Engine) verify(ctx context.Context, config part, ref image.Reference, tasks []task, how mode) (result Result, _ []task) {
	result = Result{Namespace: config.Namespace, Reference: ref, Digest: ref.Digest}
	var err error
	if tasks == nil {
		if tasks, err = e.plan(ctx, config, ref); err != nil {
			result.Verdict = failure(err)
			return result, nil
		}
	}
	if verdict, ok := decided(tasks); ok {
		result.Verdict, result.Findings = verdict, missing(tasks)
		return result, tasks
	}
	if how.unproven {
		result.Verdict, result.Findings = unproven(tasks), missing(tasks)
		return result, tasks
	}
	if onlyWarns(tasks) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, warnGrace)
		defer cancel()
	}
	trace := &trace{now: e.now}
	ctx = e.pace(config.account()).in(trace.in(ctx))
	subject, doubt, err := e.pin(ctx, config, tasks, ref, how, trace)
	if err != nil {
		result.Verdict, result.Stages, result.Overloaded = failed(tasks, err), trace.stages(), errors.Is(err, errOverloaded)
		return result, tasks
	}
	result.Reference, result.Digest = subject.Reference, subject.Reference.Digest

	key := config.verdictKey(result.Reference)
	entry, cached := e.known(ctx, key, how)
	if !cached {
		entry, err = e.once(ctx, config.Config, key, how, func(ctx context.Context) (Entry, time.Duration, error) {
			return e.examine(ctx, config, tasks, subject, trace, how)
		})
		if err != nil {
			entry = Entry{Verdict: failed(tasks, err)}
			result.Overloaded = errors.Is(err, errOverloaded)
		}
	}
	result.Stages, result.Looked, result.Answered = trace.stages(), trace.locations(), trace.answered()
	result.Cached, result.Verdict, result.Findings = cached, entry.Verdict.WithWarning(doubt), entry.Findings
	return result, tasks
}

// examine verifies subject, and returns how long its verdict may be cached. Kept lists are valid for as long as a
// verdict based on them would have been cached; older ones are read again.
func (e *Engine) examine(ctx context.Context, config part, tasks []task, subject Subject, trace *trace,
	how mode) (Entry, time.Duration, error) {
	for fresh := how.refresh; ; fresh = true {
		x := &examination{config: config, cache: e.cache, budget: e.budget(config.account()), trace: trace, now: e.now, fresh: fresh,
			allows: e.options.PassTTL, denies: e.options.DenyTTL}
		entry, err := func() (Entry, error) {
			defer x.budget.release()
			return x.run(ctx, tasks, subject)
		}()
		ttl, age := e.ttl(entry.Verdict), x.keeper.age()
		if err == nil && !x.budget.refused.Load() { // evidence that found no memory is not kept either
			x.keeper.save(ctx, e.cache, ttl == e.options.PassTTL)
		}
		if fresh || err != nil || age == 0 || age < ttl {
			return entry, within(ttl-age, entry.Findings, e.now()), err
		}
		trace.lookAgain()
	}
}

// within returns how long a verdict based on findings may be cached: until the first of them expires.
func within(ttl time.Duration, findings []policy.Finding, now time.Time) time.Duration {
	var until time.Time
	for _, f := range findings {
		until = policy.Sooner(until, f.Until)
	}
	if until.IsZero() {
		return ttl
	}
	return min(ttl, until.Sub(now))
}

// Recall returns the result of Verify if it is in memory or follows from config alone. It
// also returns the result of break-glass if that allows the image anyway. Otherwise it
// returns false. It never blocks.
func (e *Engine) Recall(config *Config, ref image.Reference) (Result, bool) {
	result, known := e.recall(config.all(), ref, true)
	if !known {
		// In an outage, waiting for the registry would use up every caller's deadline, and waiting
		// requests keep others out.
		if !config.BreakGlass.counts(e.now()) {
			return Result{}, false
		}
		result = Result{Namespace: config.Namespace, Reference: ref, Digest: ref.Digest,
			Verdict: policy.NotDecided(policy.ObjectRef{}, fmt.Sprintf("%s was not verified yet", ref))}
	}
	overridden, ok := e.except(context.Background(), config, ref, result, nil, mode{recall: true})
	if !known {
		if !ok || !overridden.Answer().Allows() {
			return Result{}, false // an exception may still lift what a mandatory policy denies, which only Verify knows
		}
		e.verifyLater(config, ref)
	}
	return overridden, ok
}

// recall returns a result that is in memory or follows from config alone. With turns, planning
// takes a turn of the account, and recall returns false if none is free.
func (e *Engine) recall(config part, ref image.Reference, turns bool) (Result, bool) {
	if result, ok := e.remembered(config, ref); ok {
		return result, true
	}
	if turns {
		turn := e.plans.Try(config.account())
		if turn == nil {
			return Result{}, false // Verify waits for its turn
		}
		defer turn.Leave()
	}
	tasks := config.plan(ref)
	verdict, ok := decided(tasks)
	return Result{Namespace: config.Namespace, Reference: ref, Digest: ref.Digest, Verdict: verdict, Findings: missing(tasks)}, ok
}

// remembered returns the verdict in memory. It skips planning: a cached verdict needed
// evidence, and under the same generation still does.
func (e *Engine) remembered(config part, ref image.Reference) (Result, bool) {
	pinned := ref
	if ref.Digest == "" {
		tag, ok := e.cache.Recall(config.tagKey(ref))
		if !ok {
			return Result{}, false
		}
		pinned = ref.WithDigest(tag.Descriptor.Digest)
	}
	entry, ok := e.cache.Recall(config.verdictKey(pinned))
	return Result{Namespace: config.Namespace, Reference: pinned, Digest: pinned.Digest, Verdict: entry.Verdict, Findings: entry.Findings,
		Cached: true}, ok
}

// verifyLater verifies an image in the background at low priority, so that the next answer is
// the one of its policies. It does nothing if enough images are being verified that way.
func (e *Engine) verifyLater(config *Config, ref image.Reference) {
	select {
	case e.later <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-e.later }()
		defer func() { _ = recover() }() // it must not end the process; without break-glass the caller logs it
		ctx, cancel := context.WithTimeout(context.Background(), e.options.WorkTimeout)
		defer cancel()
		e.verify(ctx, config.all(), ref, nil, mode{lowPriority: true})
	}()
}
