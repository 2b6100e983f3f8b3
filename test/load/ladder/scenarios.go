package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// scenario is one thing to measure, which may give several figures.
type scenario struct {
	name    string
	measure func(context.Context, *stage) ([]figure, error)
}

func scenarios() []scenario {
	return []scenario{
		{"warm", warm},
		{"cold", cold},
		{"beside Ratify", coldBeside},
		{"redis", onlyRedis},
		{"redis killed", func(ctx context.Context, s *stage) ([]figure, error) {
			return faultyRedis(ctx, s, "Redis killed in the middle", func(r *cluster.Redis) error { r.Kill(); return nil })
		}},
		{"redis paused", func(ctx context.Context, s *stage) ([]figure, error) {
			return faultyRedis(ctx, s, "Redis paused in the middle", (*cluster.Redis).Pause)
		}},
		{"replicas", replicas},
		{"throttled", throttled},
		{"audit", audit},
		{"batch", batch},
		{"containers", containers},
		{"rotation", rotation},
		{"admission", admission},
		{"cached admission", cachedAdmission},
	}
}

// zipf returns numbers below n, the small ones far more often, from a fixed seed.
func zipf(n int) func() int {
	if n == 1 {
		return func() int { return 0 }
	}
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, uint64(n-1))
	return func() int { return int(z.Uint64()) }
}

// single are requests for one image each at a path, of namespaces as Zipf has it.
func (s *stage) single(namespaces int, path string) (func(int) (request, bool), error) {
	requests := make([][]request, namespaces)
	for i := range requests {
		for _, img := range s.own(i) {
			r, err := newRequest(namespace(i), img)
			if err != nil {
				return nil, err
			}
			r.path = path
			requests[i] = append(requests[i], r)
		}
	}
	draw := zipf(namespaces)
	return func(i int) (request, bool) { return requests[draw()][i%imagesEach], true }, nil
}

// fill asks for all images of all namespaces once, each namespace's together.
func (s *stage) fill(ctx context.Context, url string, namespaces int) error {
	filled := load{client: s.caller(url, true), connections: s.connections, check: true, retry: true, next: func(i int) (request, bool) {
		if i >= namespaces {
			return request{}, false
		}
		r, err := newRequest(namespace(i), s.own(i)...)
		return r, err == nil
	}}.run(ctx, "fill")
	if filled.Requests != namespaces || filled.Wrong+filled.Failed > 0 {
		return fmt.Errorf("fill the cache: %w: %+v", errWrong, filled)
	}
	return nil
}

// warm compares answers from memory with a bare handler that answers as many bytes, on both paths, and
// with an older build if there is one.
func warm(ctx context.Context, s *stage) ([]figure, error) {
	var figures []figure
	for _, n := range []int{1, 100, 1000} {
		found, err := s.warm(ctx, n)
		if err != nil {
			return nil, err
		}
		figures = append(figures, found...)
	}
	return figures, nil
}

func (s *stage) warm(ctx context.Context, n int) (figures []figure, err error) {
	builds := map[string]*server{}
	for name, binary := range map[string]string{now: s.binary, before: s.before} {
		if binary == "" {
			continue
		}
		// A denial would end within the run, and be worked out again.
		if builds[name], err = s.start(ctx, binary, n, "--ttl", "deny=1h"); err != nil {
			return nil, err
		}
		defer builds[name].Kill()
		if err := s.fill(ctx, builds[name].url, n); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{gatekeeper.VerdictPath, gatekeeper.VerifyPath} {
		r, err := newRequest(namespace(0), s.own(0)[0])
		if err != nil {
			return nil, err
		}
		answer, _, err := s.caller(builds[now].url, false).Send(ctx, path, r.body)
		if err != nil {
			return nil, err
		}
		bare, err := s.bare(ctx, answer)
		if err != nil {
			return nil, err
		}
		defer bare.Kill()
		next, err := s.single(n, path)
		if err != nil {
			return nil, err
		}
		for _, keep := range []bool{true, false} {
			if !keep && (n != 100 || path != gatekeeper.VerdictPath) {
				continue
			}
			f := s.compare(ctx, fmt.Sprintf("warm, %d namespaces, %s", n, path), map[string]*server{now: builds[now], before: builds[before], barely: bare}, keep, next)
			f.Remark += fmt.Sprintf(", %d MiB resident", resident(builds[now].PID()))
			figures = append(figures, f)
		}
	}
	return figures, nil
}

// Who takes turns in compare.
const (
	now    = "this build"
	before = "the older build"
	barely = "the bare handler"
)

// compare measures servers in turns, in which a machine that becomes slower is slower for each.
func (s *stage) compare(ctx context.Context, name string, servers map[string]*server, keep bool, next func(int) (request, bool)) figure {
	if !keep {
		name += ", a handshake each"
	}
	order := slices.DeleteFunc([]string{barely, now, before}, func(who string) bool { return servers[who] == nil })
	clients, turns := map[string]*gatekeeper.Client{}, map[string][]figure{}
	for _, who := range order {
		clients[who] = s.caller(servers[who].url, keep)
		defer clients[who].Close()
	}
	for range s.rounds {
		for _, who := range order {
			turns[who] = append(turns[who], s.turn(ctx, name, servers[who], load{client: clients[who], connections: s.connections, check: who != barely, next: next}))
		}
		slices.Reverse(order)
	}
	got := turns[now][0]
	for _, turn := range turns[now][1:] {
		got = got.and(turn)
	}
	got.over(turns)
	return got
}

// turn is one turn of a server, with the processor time that it took.
func (s *stage) turn(ctx context.Context, name string, p *server, l load) figure {
	ctx, cancel := context.WithTimeout(ctx, 2*s.duration/5)
	defer cancel()
	before := processor(p.PID())
	f := l.run(ctx, name)
	f.Processor = (processor(p.PID()) - before).Seconds()
	return f
}

// and joins two turns of the same thing.
func (f figure) and(other figure) figure {
	seconds := f.Seconds + other.Seconds
	f.Processor += other.Processor
	f.Gatekeeper += other.Gatekeeper
	f.Undecided, f.Failed, f.Wrong = f.Undecided+other.Undecided, f.Failed+other.Failed, f.Wrong+other.Wrong
	f.took = append(f.took, other.took...)
	f.sum(time.Duration(seconds * float64(time.Second)))
	return f
}

// pairs are requests for one image in one namespace each, no two alike: every
// namespace first has one image, then all another one.
func (s *stage) pairs(namespaces, limit int) func(int) (request, bool) {
	return func(i int) (request, bool) {
		if i >= limit || i >= namespaces*len(s.images) {
			return request{}, false
		}
		own := i % namespaces
		r, err := newRequest(namespace(own), s.images[(own+i/namespaces)%len(s.images)])
		return r, err == nil
	}
}

// cold measures images that nobody asked for before, one after another, with a
// registry that takes a time for each answer; and many at once.
func cold(ctx context.Context, s *stage) ([]figure, error) {
	const namespaces = 100
	var figures []figure
	defer s.registry.SetLatency(0)
	for _, latency := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond} {
		for _, connections := range []int{1, s.connections} {
			s.registry.SetLatency(latency)
			p, err := s.provide(ctx, namespaces)
			if err != nil {
				return nil, err
			}
			f := load{client: s.caller(p.url, true), connections: connections, check: true, next: s.pairs(namespaces, s.cold)}.
				run(ctx, fmt.Sprintf("cold, registry at %s, %d connections", latency, connections))
			if connections == 1 {
				// A digest that is signed under a tag takes one round trip.
				f.Remark = fmt.Sprintf("%.1f ms of its own at the median", f.P50-float64(latency.Milliseconds()))
			}
			figures = append(figures, f)
			p.Kill()
		}
	}
	return figures, nil
}

// throttle makes the registry take 200 requests a second and refuse the rest, and
// returns how many it refused.
func (s *stage) throttle() *atomic.Int64 {
	pace, refused := rate.NewLimiter(200, 50), &atomic.Int64{}
	s.registry.SetIntercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if pace.Allow() {
			return false
		}
		refused.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	return refused
}

// throttled has a registry that takes 200 requests a second and refuses the rest.
// A client with an undecided image asks again.
func throttled(ctx context.Context, s *stage) ([]figure, error) {
	const namespaces = 20
	p, err := s.provide(ctx, namespaces)
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	refused := s.throttle()
	defer s.registry.SetIntercept(nil)
	f := load{client: s.caller(p.url, true), connections: s.connections, check: true, retry: true, next: s.pairs(namespaces, 2*s.cold)}.
		run(ctx, "cold, registry takes 200 requests a second")
	f.Remark = fmt.Sprintf("%d requests refused by the registry; times are until it was decided", refused.Load())
	return []figure{f}, nil
}
