package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// rotationImages is how many images one request is about, as those of a pod.
const rotationImages = 10

// rotation verifies as many pairs of image and namespace as there are pods, replaces the key that
// all namespaces trust by another one that signed the images too, and verifies them again.
func rotation(ctx context.Context, s *stage) ([]figure, error) {
	if err := s.signAgain(ctx, 1); err != nil {
		return nil, err
	}
	retired, err := s.signedBy(ctx, "retired", 1, 1)
	if err != nil {
		return nil, err
	}
	requests, namespaces, err := s.podsOf(s.pods)
	if err != nil {
		return nil, err
	}
	_, flags, err := s.share(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.provide(ctx, namespaces, flags...)
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	defer s.registry.SetIntercept(nil)
	pass := func(name string) figure {
		content, lists := s.count()
		f := load{client: s.caller(p.url, true), connections: s.connections, check: true, retry: true, next: func(i int) (request, bool) {
			if i >= len(requests) {
				return request{}, false
			}
			return requests[i], true
		}}.run(ctx, fmt.Sprintf("%d images in %d namespaces, %s", len(requests)*rotationImages, namespaces, name))
		f.RegistryRequests = int(content.Load() + lists.Load())
		f.Remark = fmt.Sprintf("%.1f s in all; the registry was asked for %d manifests and blobs, and %d lists and descriptors", f.Seconds,
			content.Load(), lists.Load())
		return f
	}
	figures := []figure{pass("cold")}
	kept := s.key
	defer func() { s.key = kept }()
	s.key = s.others[0]
	if _, err := s.configure(namespaces); err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for i := range namespaces {
		r, err := newRequest(namespace(i), sample{retired[0].reference, false})
		if err != nil {
			return nil, err
		}
		if err := cluster.Until(wait, func(ctx context.Context) error {
			if got := ask(ctx, s.caller(p.url, true), r, true); got != right {
				return fmt.Errorf("%s still trusts the key that was replaced", namespace(i))
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("replace the key: %w", err)
		}
	}
	return append(figures, pass("after a rotation of keys")), nil
}

// podsOf are requests for as many signed images, ten in each, and the number of namespaces that
// they are in.
func (s *stage) podsOf(images int) ([]request, int, error) {
	signed := s.signedImages()
	var requests []request
	namespaces := 0
	for ; len(requests)*rotationImages < images; namespaces++ {
		for from := 0; from+rotationImages <= len(signed) && len(requests)*rotationImages < images; from += rotationImages {
			r, err := newRequest(namespace(namespaces), signed[from:from+rotationImages]...)
			if err != nil {
				return nil, 0, err
			}
			requests = append(requests, r)
		}
	}
	return requests, namespaces, nil
}

// count counts the requests to the registry from now on: those for manifests and blobs, and those
// for lists of referrers, tags and descriptors, which have a time.
func (s *stage) count() (content, lists *atomic.Int64) {
	content, lists = &atomic.Int64{}, &atomic.Int64{}
	s.registry.SetIntercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/sha256:") && !strings.Contains(r.URL.Path, "/referrers/") {
			content.Add(1)
		} else {
			lists.Add(1)
		}
		return false
	})
	return content, lists
}

// containers asks for the image of a pod of eight containers, which five keys must have signed,
// and which nobody asked for before.
func containers(ctx context.Context, s *stage) ([]figure, error) {
	const verifiers, latency = 5, 20 * time.Millisecond
	images, err := s.signedBy(ctx, "containers", s.rounds, verifiers)
	if err != nil {
		return nil, err
	}
	dir, err := s.demanding(verifiers)
	if err != nil {
		return nil, err
	}
	p, err := s.serve(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	defer s.registry.SetLatency(0)
	s.registry.SetLatency(latency)
	return []figure{load{client: s.caller(p.url, true), connections: 1, check: true, next: func(i int) (request, bool) {
		if i >= len(images) {
			return request{}, false
		}
		r, err := newRequest("strict", images[i])
		return r, err == nil
	}}.run(ctx, fmt.Sprintf("a pod of 8 containers of one image, %d verifiers, registry at %s: cold", verifiers, latency))}, nil
}
