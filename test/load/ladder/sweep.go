package main

import (
	"context"
	"fmt"
	"time"
)

// What the sweep is about: as many pods as Ratify's published one, with its images
// and signatures of each.
const (
	sweepNamespaces = 1000
	sweepImages     = 10 // of each namespace, out of all images of the stage
	sweepSignatures = 5  // of each image
)

// audit asks for the images of many pods as Gatekeeper's audit does, one pod after
// another on each connection, of a registry that takes 200 requests a second. In the
// cold sweep most of it stays undecided; the warm one comes after the same questions
// were asked until they were decided, of a registry without a limit.
func audit(ctx context.Context, s *stage) ([]figure, error) {
	if err := s.signAgain(ctx, sweepSignatures-1); err != nil {
		return nil, err
	}
	// A denial would end between the sweeps.
	p, err := s.provide(ctx, sweepNamespaces, "--ttl", "deny=1h")
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	defer s.registry.SetIntercept(nil)
	sweep := func(name string, retry bool) figure {
		return load{client: s.caller(p.url, true), connections: s.connections, check: true, retry: retry, next: func(i int) (request, bool) {
			if i >= s.pods {
				return request{}, false
			}
			own := i % sweepNamespaces
			images := make([]sample, sweepImages)
			for k := range images {
				images[k] = s.images[(own*sweepImages+k)%len(s.images)]
			}
			r, err := newRequest(namespace(own), images...)
			return r, err == nil
		}}.run(ctx, fmt.Sprintf("sweep of %d pods, %d images each, %d signatures: %s", s.pods, sweepImages, sweepSignatures, name))
	}
	refused := s.throttle()
	cold := sweep("cold", false)
	cold.expected = true
	cold.Remark = fmt.Sprintf("%.1f s in all, the registry refused %d requests, %d MiB resident", cold.Seconds, refused.Load(), resident(p.PID()))
	s.registry.SetIntercept(nil)
	filled := sweep("filled", true)
	if filled.Wrong+filled.Failed+filled.Undecided > 0 {
		return nil, fmt.Errorf("fill the cache: %w: %+v", errWrong, filled)
	}
	s.throttle()
	warm := sweep("warm", false)
	warm.Remark = fmt.Sprintf("%.1f s in all, %d MiB resident", warm.Seconds, resident(p.PID()))
	return []figure{cold, warm}, nil
}

// batch asks for many images at once that nobody asked for before, of a registry with
// a round trip of 20 ms, and then for the same again. On a machine that is too slow for the
// provider's deadline the answer is undecided, so it asks again until it is decided, as
// Gatekeeper's users do, and the time is that of all of it.
func batch(ctx context.Context, s *stage) ([]figure, error) {
	const keys, latency = 100, 20 * time.Millisecond
	defer s.registry.SetLatency(0)
	var figures []figure
	for _, signatures := range []int{2, 5} {
		images, err := s.signedBy(ctx, fmt.Sprintf("batch-%d", signatures), keys, signatures)
		if err != nil {
			return nil, err
		}
		p, err := s.provide(ctx, 1)
		if err != nil {
			return nil, err
		}
		r, err := newRequest(namespace(0), images...)
		if err != nil {
			return nil, err
		}
		s.registry.SetLatency(latency)
		for _, name := range []string{"cold", "warm"} {
			figures = append(figures,
				load{client: s.caller(p.url, true), connections: 1, check: true, retry: true, next: func(i int) (request, bool) { return r, i == 0 }}.
					run(ctx, fmt.Sprintf("one request of %d keys, %d signatures each, registry at %s: %s", keys, signatures, latency, name)))
		}
		s.registry.SetLatency(0)
		p.Kill()
	}
	return figures, nil
}
