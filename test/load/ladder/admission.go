package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// system is one of those that are compared: who is asked about pods of a namespace.
type system struct {
	name      string
	namespace string
	provider  int // process, or 0 for none
}

// admission creates pods by dry run in a real kube-apiserver with Gatekeeper: without
// a constraint, with the yardstick and a bare handler, with Landwaiter, and with Ratify if
// there is one, in turns. Then it creates some that are stored, and some with the chart's
// Assign objects as well.
func admission(ctx context.Context, s *stage) ([]figure, error) {
	l, err := s.ladder(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer l.Stop()
	var figures []figure
	for _, clients := range s.clients {
		turns, err := l.compare(ctx, clients, s.rounds, s.duration, l.systems()...)
		if err != nil {
			return nil, err
		}
		figures = append(figures, turns...)
	}
	l.stored = true
	stored, err := l.compare(ctx, s.clients[len(s.clients)/2], s.rounds, s.duration, l.systems()...)
	if err != nil {
		return nil, err
	}
	for i := range stored {
		stored[i].Name += ", stored"
	}
	l.stored, figures = false, append(figures, stored...)
	assigned, err := l.withAssigns(ctx, s.clients[len(s.clients)/2], s.rounds, s.duration)
	return append(figures, assigned...), err
}

// cachedAdmission is the same with as many clients as Gatekeeper keeps connections, while
// Gatekeeper caches answers for ten seconds.
func cachedAdmission(ctx context.Context, s *stage) ([]figure, error) {
	l, err := s.ladder(ctx, 10*time.Second)
	if err != nil {
		return nil, err
	}
	defer l.Stop()
	figures, err := l.compare(ctx, s.connections, s.rounds, s.duration, l.systems()...)
	for i := range figures {
		figures[i].Name += ", answers cached by Gatekeeper"
	}
	return figures, err
}

// Where systems are in what compare takes and returns; Ratify is the last, if there.
const (
	alone = iota
	yardstick
	verified
	ratified
)

func (l *ladder) systems() []system {
	systems := []system{{"Gatekeeper alone", "ladder-alone", 0}, {"yardstick, bare handler", "ladder-yardstick", l.bare.PID()},
		{"VerifiedImages, Landwaiter", "ladder-verified", l.Current().PID()}}
	if l.ratify != nil {
		systems = append(systems, system{"RatifyVerification, Ratify", "ladder-ratify", l.ratify.PID()})
	}
	return systems
}

// compare lets the systems take turns, another one first in each round, and returns
// a figure for each.
func (l *ladder) compare(ctx context.Context, clients, rounds int, duration time.Duration, systems ...system) ([]figure, error) {
	turns := make([][]figure, len(systems))
	for round := range rounds {
		for i := range systems {
			i = (i + round) % len(systems)
			f, err := l.turn(ctx, systems[i], clients, duration)
			if err != nil {
				return nil, err
			}
			turns[i] = append(turns[i], f)
		}
	}
	figures := make([]figure, len(systems))
	for i, each := range turns {
		figures[i] = each[0]
		for _, f := range each[1:] {
			figures[i] = figures[i].and(f)
		}
		figures[i].perAdmission()
	}
	figures[verified].beside(figures[alone], turns)
	return figures, nil
}

// turn creates pods for a while, and measures the processes that decide about them.
func (l *ladder) turn(ctx context.Context, s system, clients int, duration time.Duration) (figure, error) {
	pods, err := l.creator(s.namespace)
	if err != nil {
		return figure{}, err
	}
	defer pods.http.CloseIdleConnections()
	gatekeeper, provider := processor(l.GatekeeperPID()), processor(s.provider)
	f := figure{Name: fmt.Sprintf("admission, %d clients: %s", clients, s.name)}
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for range clients {
		all.Go(func() {
			// What has begun is waited for: else a turn would use time for what it does not count.
			for start := began; start.Sub(began) < duration && ctx.Err() == nil; start = time.Now() {
				got := pods.create(ctx)
				mu.Lock()
				f.took = append(f.took, time.Since(start))
				f.count(got)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	f.sum(time.Since(began))
	f.Gatekeeper = (processor(l.GatekeeperPID()) - gatekeeper).Seconds()
	f.Processor = (processor(s.provider) - provider).Seconds()
	if l.stored {
		if err := l.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.GracePeriodSeconds(0)); err != nil {
			return figure{}, fmt.Errorf("delete pods: %w", err)
		}
	}
	return f, nil
}

// perAdmission notes the processor time of one admission.
func (f *figure) perAdmission() {
	each := func(seconds float64) float64 { return seconds * 1e3 / float64(max(f.Requests, 1)) }
	f.Remark = fmt.Sprintf("%.2f ms of processor time of Gatekeeper", each(f.Gatekeeper))
	if f.Processor > 0 {
		f.Remark += fmt.Sprintf(", %.2f ms of the provider", each(f.Processor))
	}
}

// beside notes the ratios of Landwaiter's turns to the turns of the others, and how much p99 is over
// that without a provider.
func (f *figure) beside(without figure, turns [][]figure) {
	over := func(other int, quotient func(ours, theirs, alone figure) float64) *ratio {
		if other >= len(turns) {
			return nil
		}
		rounds := make([]float64, len(turns[verified]))
		for i := range rounds {
			rounds[i] = quotient(turns[verified][i], turns[other][i], turns[alone][i])
			if math.IsInf(rounds[i], 0) || math.IsNaN(rounds[i]) {
				return nil // there was nothing to measure, such as a provider that was not asked
			}
		}
		return ratioOf(rounds)
	}
	each := func(seconds float64, f figure) float64 { return seconds / float64(max(f.Requests, 1)) }
	both := func(f figure) float64 { return each(f.Gatekeeper+f.Processor, f) }
	throughput := func(ours, theirs, _ figure) float64 { return ours.PerSecond / theirs.PerSecond }
	f.ThroughputOverYardstick = over(yardstick, throughput)
	f.AddedOverYardstick = over(yardstick, func(ours, theirs, alone figure) float64 {
		return (both(ours) - both(alone)) / (both(theirs) - both(alone))
	})
	f.ThroughputOverRatify = over(ratified, throughput)
	f.GatekeeperOverRatify = over(ratified, func(ours, theirs, _ figure) float64 {
		return each(ours.Gatekeeper, ours) / each(theirs.Gatekeeper, theirs)
	})
	f.ProviderOverRatify = over(ratified, func(ours, theirs, _ figure) float64 {
		return each(ours.Processor, ours) / each(theirs.Processor, theirs)
	})
	f.Remark += fmt.Sprintf(", p99 %.0f ms over Gatekeeper alone; of the yardstick: %s of what it adds, %s of its throughput", f.P99-without.P99,
		f.AddedOverYardstick, f.ThroughputOverYardstick)
	if f.ThroughputOverRatify != nil {
		f.Remark += fmt.Sprintf("; of Ratify: %s of its throughput, %s of Gatekeeper's and %s of the provider's processor time",
			f.ThroughputOverRatify, f.GatekeeperOverRatify, f.ProviderOverRatify)
	}
}

// withAssigns measures the same with and without the chart's Assign objects, in turns.
func (l *ladder) withAssigns(ctx context.Context, clients, rounds int, duration time.Duration) ([]figure, error) {
	objects := l.assigns()
	figures := make([]figure, 2)
	for range rounds {
		for i, present := range []bool{false, true} {
			if err := l.settle(ctx, present); err != nil {
				return nil, err
			}
			f, err := l.turn(ctx, l.systems()[verified], clients, duration)
			if err != nil {
				return nil, err
			}
			figures[i] = figures[i].and(f)
			figures[i].Name = fmt.Sprintf("admission, %d clients, %d Assigns", clients, map[bool]int{true: len(objects)}[present])
		}
	}
	for i := range figures {
		figures[i].perAdmission()
	}
	figures[1].Remark += fmt.Sprintf(", %.2f of the throughput without them", figures[1].PerSecond/figures[0].PerSecond)
	return figures, nil
}

// settle makes the Assigns be there or not, and waits until Gatekeeper knows: a pod
// whose tag is pinned shows it.
func (l *ladder) settle(ctx context.Context, present bool) error {
	for _, object := range l.assigns() {
		if present {
			if err := l.Apply(ctx, object); err != nil {
				return fmt.Errorf("apply Assigns: %w", err)
			}
		} else if err := l.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove Assigns: %w", err)
		}
	}
	return l.until(ctx, func(ctx context.Context) error {
		pod := dryPod("ladder-verified", l.tagged)
		if err := l.Client.Create(ctx, pod, client.DryRunAll); err != nil {
			return fmt.Errorf("create a pod: %w", err)
		}
		if pinned := strings.Contains(pod.Spec.Containers[0].Image, "@"); pinned != present {
			return errors.New("the Assigns are not known to Gatekeeper yet")
		}
		return nil
	})
}
