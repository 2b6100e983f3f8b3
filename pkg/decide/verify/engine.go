package verify

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"runtime"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Options configure an [Engine]. A zero or negative value means the default, which
// each field names.
type Options struct {
	// WorkTimeout bounds the work on one image. Work continues after the caller leaves,
	// so that a retry finds a warm cache. Default 10 s.
	WorkTimeout time.Duration
	// InFlight and InFlightPerAccount bound the images in flight. Further images are
	// Undecided immediately. Defaults 512 and 128.
	InFlight, InFlightPerAccount int
	// EvidenceBytes bounds the memory for the evidence of the images in flight. An
	// account may use what is left for others; beyond that its images are Undecided.
	// Default 96 MiB, of which one account alone gets half: room for the
	// largest image.
	EvidenceBytes int64
	// Processors is how many goroutines check evidence and match patterns at a time.
	// Accounts take turns. Default: one less than [runtime.GOMAXPROCS], so that known
	// verdicts are always answered.
	Processors int
	// PassTTL and DenyTTL are how long a verdict is cached: a pass is exact for its
	// digest and generation, a deny should soon notice a new signature. Defaults 1 h
	// and 10 s. Undecided is never cached.
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
	limit   *fair.Gate[Account]
	memory  *fair.Gate[Account]
	turns   *fair.Turns[Account]
	seed    maphash.Seed
	later   chan struct{} // one element for each image that is verified after its answer
}

// NewEngine returns an Engine that caches results in cache and reads the time from
// now.
func NewEngine(cache Cache, now func() time.Time, options Options) *Engine {
	options = options.withDefaults()
	return &Engine{cache: cache, now: now, options: options, limit: fair.NewGate[Account](int64(options.InFlight)),
		memory: fair.NewGate[Account](options.EvidenceBytes), turns: fair.NewTurns[Account](options.Processors, now),
		seed: maphash.MakeSeed(), later: make(chan struct{}, laterAtOnce)}
}

// PassTTL returns how long a verdict that allows is cached.
func (e *Engine) PassTTL() time.Duration { return e.options.PassTTL }

// Verify decides whether config allows ref, before ctx ends. If it cannot, the verdict
// is Undecided and says why.
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

// judge verifies an image, and then asks whether an exception allows what the policies do
// not.
func (e *Engine) judge(ctx context.Context, config *Config, ref image.Reference, how mode) Result {
	return e.except(ctx, config, ref, e.verify(ctx, config, ref, how), how)
}

// verify handles one image: it plans, pins, looks in the cache, and on a miss gathers
// evidence and decides.
func (e *Engine) verify(ctx context.Context, config *Config, ref image.Reference, how mode) Result {
	result := Result{Namespace: config.Namespace, Reference: ref, Digest: ref.Digest}
	tasks, err := e.plan(ctx, config, ref)
	if err != nil {
		result.Verdict = failure(err)
		return result
	}
	if verdict, ok := decided(tasks); ok {
		result.Verdict, result.Findings = verdict, missing(tasks)
		return result
	}
	if onlyWarns(tasks) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, warnGrace)
		defer cancel()
	}
	trace := newTrace(e.now)
	ctx = trace.in(ctx)
	subject, doubt, err := e.pin(ctx, config, tasks, ref, how, trace)
	if err != nil {
		result.Verdict, result.Stages, result.Overloaded = failed(tasks, err), trace.stages(), errors.Is(err, errOverloaded)
		return result
	}
	result.Reference, result.Digest = subject.Reference, subject.Reference.Digest

	key := config.verdictKey(result.Reference)
	entry, cached := e.known(ctx, key, how)
	if !cached {
		entry, err = e.once(ctx, config, key, how, func(ctx context.Context) (Entry, time.Duration, error) {
			x := &examination{budget: e.budget(config.account()), trace: trace, now: e.now}
			defer x.budget.release()
			entry, err := x.run(ctx, tasks, subject)
			return entry, e.ttl(entry.Verdict), err
		})
		if err != nil {
			entry = Entry{Verdict: failed(tasks, err)}
			result.Overloaded = errors.Is(err, errOverloaded)
		}
	}
	result.Stages, result.Looked = trace.stages(), trace.locations()
	result.Cached, result.Verdict, result.Findings = cached, entry.Verdict.WithWarning(doubt), entry.Findings
	return result
}

// Recall returns the result of Verify if it is in memory or follows from config alone, and
// that of break-glass if it allows the image in any case. Otherwise it returns false. It
// never blocks.
func (e *Engine) Recall(config *Config, ref image.Reference) (Result, bool) {
	result, ok := e.recall(config, ref)
	if !ok {
		return e.open(config, ref)
	}
	return e.exceptRecalled(config, ref, result)
}

// recall is Recall without exceptions.
func (e *Engine) recall(config *Config, ref image.Reference) (Result, bool) {
	if result, ok := e.remembered(config, ref); ok {
		return result, true
	}
	turn := e.turns.Try(config.account())
	if turn == nil {
		return Result{}, false // Verify waits for its turn
	}
	defer turn.Leave()
	return config.follows(ref)
}

// follows returns the result that follows from c alone, or false if it needs evidence.
func (c *Config) follows(ref image.Reference) (Result, bool) {
	tasks := c.plan(ref)
	verdict, ok := decided(tasks)
	return Result{Namespace: c.Namespace, Reference: ref, Digest: ref.Digest, Verdict: verdict, Findings: missing(tasks)}, ok
}

// remembered returns the verdict in memory. It skips planning: a cached verdict needed
// evidence, and under the same generation still does.
func (e *Engine) remembered(config *Config, ref image.Reference) (Result, bool) {
	pinned := ref
	if ref.Digest == "" {
		tag, ok := e.cache.Recall(config.tagKey(ref))
		if !ok {
			return Result{}, false
		}
		pinned = ref.WithDigest(tag.Descriptor.Digest)
	}
	entry, ok := e.cache.Recall(config.verdictKey(pinned))
	return Result{Namespace: config.Namespace, Reference: pinned, Digest: pinned.Digest, Verdict: entry.Verdict, Findings: entry.Findings, Cached: true}, ok
}
