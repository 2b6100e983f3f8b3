package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ladderRounds is how often each system has its turn with each number of clients.
const ladderRounds = 3

// system is one of those that are compared: who is asked about pods of a namespace.
type system struct {
	name      string
	namespace string
	provider  int // process, or 0 for none
}

// admission creates pods by dry run in a real kube-apiserver with Gatekeeper: without
// a constraint, with the yardstick and a bare handler, and with Landwaiter, in turns.
// Then it creates some with the chart's Assign objects as well.
func admission(ctx context.Context, s *stage) ([]figure, error) {
	l, err := s.ladder(ctx)
	if err != nil {
		return nil, err
	}
	defer l.Stop()
	alone := system{"Gatekeeper alone", "ladder-alone", 0}
	yardstick := system{"yardstick, bare handler", "ladder-yardstick", l.bare.PID()}
	verified := system{"VerifiedImages, Landwaiter", "ladder-verified", l.Current().PID()}
	var figures []figure
	for _, clients := range s.clients {
		turns, err := l.compare(ctx, clients, s.duration, alone, yardstick, verified)
		if err != nil {
			return nil, err
		}
		ours := &turns[2]
		ours.overYardstick(turns[1], turns[0])
		figures = append(figures, turns...)
	}
	assigned, err := l.withAssigns(ctx, s.clients[len(s.clients)/2], s.duration, verified)
	return append(figures, assigned...), err
}

// compare lets the systems take turns, another one first in each round, and returns
// a figure for each.
func (l *ladder) compare(ctx context.Context, clients int, duration time.Duration, systems ...system) ([]figure, error) {
	turns := make([]figure, len(systems))
	for round := range ladderRounds {
		for i := range systems {
			i = (i + round) % len(systems)
			f, err := l.turn(ctx, systems[i], clients, duration)
			if err != nil {
				return nil, err
			}
			turns[i] = turns[i].and(f)
			turns[i].Name = f.Name
		}
	}
	for i := range turns {
		turns[i].perAdmission()
	}
	return turns, nil
}

// turn creates pods for a while, and measures the processes that decide about them.
func (l *ladder) turn(ctx context.Context, s system, clients int, duration time.Duration) (figure, error) {
	pods, err := l.creator(s.namespace)
	if err != nil {
		return figure{}, err
	}
	defer pods.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	gatekeeper, provider := processor(l.GatekeeperPID()), processor(s.provider)
	f := figure{Name: fmt.Sprintf("admission, %d clients: %s", clients, s.name)}
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				got := pods.create(ctx)
				if ctx.Err() != nil {
					return // it was cut off
				}
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

// overYardstick notes what f adds to an admission of Gatekeeper alone, over what the
// yardstick adds.
func (f *figure) overYardstick(yardstick, alone figure) {
	each := func(f figure) float64 { return (f.Gatekeeper + f.Processor) / float64(max(f.Requests, 1)) }
	f.AddedOverYardstick = (each(*f) - each(alone)) / (each(yardstick) - each(alone))
	f.ThroughputOverYardstick = f.PerSecond / yardstick.PerSecond
	f.Remark += fmt.Sprintf(", %.2f of what the yardstick adds, %.2f of its throughput", f.AddedOverYardstick, f.ThroughputOverYardstick)
}

// withAssigns measures the same with and without the chart's Assign objects, in turns.
func (l *ladder) withAssigns(ctx context.Context, clients int, duration time.Duration, s system) ([]figure, error) {
	objects := l.assigns()
	figures := make([]figure, 2)
	for range ladderRounds {
		for i, present := range []bool{false, true} {
			if err := l.settle(ctx, present); err != nil {
				return nil, err
			}
			f, err := l.turn(ctx, s, clients, duration)
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
