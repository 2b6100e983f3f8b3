package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// request is a body to send and what its answer must say.
type request struct {
	body []byte
	path string          // if it is not Landwaiter's
	want map[string]bool // by key, whether it is allowed
}

// newRequest asks for images in a namespace as a ConstraintTemplate does.
func newRequest(namespace string, images ...sample) (request, error) {
	r := request{want: map[string]bool{}}
	keys := make([]string, len(images))
	for i, img := range images {
		keys[i] = "[" + namespace + "]" + img.reference
		r.want[keys[i]] = img.signed
	}
	var err error
	r.body, err = gatekeeper.Encode(keys...)
	return r, err
}

// figure is what was measured of one scenario; times are in milliseconds.
type figure struct {
	Name      string  `json:"name"`
	Requests  int     `json:"requests"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50ms"`
	P99       float64 `json:"p99ms"`
	Max       float64 `json:"maxms"`
	Undecided int     `json:"undecided"` // answered with a system error
	Failed    int     `json:"failed"`    // not answered
	Wrong     int     `json:"wrong"`     // answered, but not as it must be
	// Processor is the time in seconds that the server's process used, if it was
	// measured: what is compared does not depend on who else uses the machine.
	Processor float64 `json:"processorSeconds,omitempty"`
	// Gatekeeper is the time in seconds that Gatekeeper used for admissions.
	Gatekeeper float64 `json:"gatekeeperSeconds,omitempty"`
	// AddedOverYardstick is the processor time that verification adds to an admission,
	// over what the yardstick adds, in paired rounds as all of these.
	AddedOverYardstick      *ratio `json:"addedOverYardstick,omitempty"`
	ThroughputOverYardstick *ratio `json:"throughputOverYardstick,omitempty"`
	// Over Ratify, if there is one.
	ThroughputOverRatify *ratio `json:"throughputOverRatify,omitempty"`
	GatekeeperOverRatify *ratio `json:"gatekeeperOverRatify,omitempty"`
	ProviderOverRatify   *ratio `json:"providerOverRatify,omitempty"`
	// Over the bare handler, and over an older build, in the same rounds, if the scenario is about that.
	OverBare   *over `json:"overBare,omitempty"`
	OverBefore *over `json:"overBefore,omitempty"`
	// RegistryRequests are those that a scenario about Redis made all the same.
	RegistryRequests int `json:"registryRequests,omitempty"`
	// Retries are requests that failed or were undecided, and were asked a second time.
	Retries int    `json:"retries,omitempty"`
	Remark  string `json:"remark,omitempty"`

	took     []time.Duration // each
	expected bool            // undecided answers are part of it
}

// over is what one server does of what another one does, each a request.
type over struct {
	Throughput *ratio `json:"throughput"`
	Processor  *ratio `json:"processor"`
	P99        *ratio `json:"p99"`
}

// answer is what became of one request.
type answer int

const (
	right answer = iota
	undecided
	wrong
	failed
)

// ask sends one request and looks at the answer; unchecked ones only have to come.
func ask(ctx context.Context, client *gatekeeper.Client, r request, check bool) answer {
	body, status, err := client.Send(ctx, cmp.Or(r.path, gatekeeper.VerdictPath), r.body)
	switch {
	case err != nil || status != http.StatusOK:
		return failed
	case !check:
		return right
	case bytes.Contains(body, []byte(`"systemError":"`)):
		return undecided
	case r.answered(body):
		return right
	}
	return wrong
}

// answered reports whether a body has the right answer for each key, and no other.
func (r request) answered(body []byte) bool {
	if len(r.want) == 1 {
		// Decoding would cost more than the answer, and there is but one spelling.
		for key, allowed := range r.want {
			return bytes.Contains(body, []byte(`"key":"`+key+`"`)) && bytes.Contains(body, fmt.Appendf(nil, `"isSuccess":%t`, allowed)) &&
				!bytes.Contains(body, fmt.Appendf(nil, `"isSuccess":%t`, !allowed))
		}
	}
	response, err := gatekeeper.Decode(body)
	if err != nil || len(response.Items) != len(r.want) {
		return false
	}
	for _, item := range response.Items {
		allowed, asked := r.want[item.Key]
		value, _ := item.Value.(map[string]any)
		if got, ok := value["isSuccess"].(bool); !asked || !ok || got != allowed {
			return false
		}
	}
	return true
}

// load is what a client does.
type load struct {
	client      *gatekeeper.Client
	connections int
	check       bool
	retry       bool // until it is decided
	retryOnce   bool // a second later, also if it failed
	// next returns request i, or false at the end. It is not called twice at once.
	next func(i int) (request, bool)
}

// run asks until the end of the requests, or of ctx.
func (l load) run(ctx context.Context, name string) figure {
	var mu sync.Mutex
	var took []time.Duration
	f := figure{Name: name}
	began, number := time.Now(), 0
	take := func() (request, bool) {
		mu.Lock()
		defer mu.Unlock()
		number++
		return l.next(number - 1)
	}
	var all sync.WaitGroup
	for range l.connections {
		all.Go(func() {
			for ctx.Err() == nil {
				r, ok := take()
				if !ok {
					return
				}
				began := time.Now()
				got, again := l.settle(ctx, r)
				each := time.Since(began)
				if ctx.Err() != nil {
					return // it was cut off
				}
				mu.Lock()
				took = append(took, each)
				f.count(got)
				f.Retries += again
				mu.Unlock()
			}
		})
	}
	all.Wait()
	f.took = took
	f.sum(time.Since(began))
	return f
}

// settleTimeout is how long one request is asked again for.
const settleTimeout = time.Minute

// settle asks, and with retry goes on asking while the answer is undecided, as
// those do whose pods are not admitted. With retryOnce it asks a second time, as controllers
// do, and returns how often it did.
func (l load) settle(ctx context.Context, r request) (got answer, again int) {
	pause := 50 * time.Millisecond
	for end := time.Now().Add(settleTimeout); ; {
		got = ask(ctx, l.client, r, l.check)
		switch {
		case ctx.Err() != nil, time.Now().After(end):
			return got, again
		case l.retryOnce && again == 0 && (got == undecided || got == failed):
			again, pause = 1, time.Second
		case got != undecided || !l.retry:
			return got, again
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, 2*time.Second)
	}
}

func (f *figure) count(got answer) {
	switch got {
	case undecided:
		f.Undecided++
	case wrong:
		f.Wrong++
	case failed:
		f.Failed++
	case right:
	}
}

// sum works out the figures of what was asked in all the time.
func (f *figure) sum(all time.Duration) {
	took := slices.Clone(f.took)
	f.Requests, f.Seconds = len(took), all.Seconds()
	if len(took) == 0 {
		f.Failed++ // nothing was measured
		return
	}
	f.PerSecond = float64(len(took)) / f.Seconds
	slices.Sort(took)
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	f.P50, f.P99, f.Max = milliseconds(took[len(took)/2]), milliseconds(took[len(took)*99/100]), milliseconds(took[len(took)-1])
}

// over notes the ratios of turns of this build to those of the others beside them.
func (f *figure) over(turns map[string][]figure) {
	ratios := func(other string, of func(figure) float64) *ratio {
		var rounds []float64
		for i := range turns[other] {
			rounds = append(rounds, of(turns[now][i])/of(turns[other][i]))
		}
		return ratioOf(rounds)
	}
	each := func(f figure) float64 { return f.Processor / float64(max(f.Requests, 1)) }
	throughput := func(f figure) float64 { return f.PerSecond }
	for _, other := range []string{barely, before} {
		over := &over{ratios(other, throughput), ratios(other, each), ratios(other, func(f figure) float64 { return f.P99 })}
		switch {
		case over.Throughput == nil:
			continue
		case other == barely:
			f.OverBare = over
		default:
			f.OverBefore = over
		}
		f.Remark = strings.TrimPrefix(fmt.Sprintf("%s; throughput %s, processor time %s and p99 %s of %s", f.Remark, over.Throughput, over.Processor,
			over.P99, other), "; ")
	}
	f.Remark += fmt.Sprintf("; %.0f µs of processor time a request", 1e6*each(*f))
}
