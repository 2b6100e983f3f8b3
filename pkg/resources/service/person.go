package service

import (
	"context"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Open returns a Service with objects that a person has read from a cluster, for a command
// that runs once. Its background work ends with ctx.
func Open(ctx context.Context, objects resource.Objects, options Options) (*Service, []resource.Problem, error) {
	options.Wait = true
	s, err := New(options, AnyNamespace{})
	if err != nil {
		return nil, nil, err
	}
	go func() { _ = s.Run(ctx) }() // fails only with Redis, which commands do not use
	return s, s.Apply(ctx, objects), nil
}

// Rehearse returns what s would be with other objects, and the problems of these. Both
// share connections and caches, whose keys tell them apart. What is in force in s stays.
func (s *Service) Rehearse(ctx context.Context, objects resource.Objects) (*Rehearsal, []resource.Problem) {
	s.applying.Lock()
	defer s.applying.Unlock()
	levels := compile.Group(objects)
	wanted := levels.Externals()
	for namespace, sources := range wanted {
		s.external.Want(namespace, united(s.wanted[namespace], sources))
	}
	ctx, cancel := context.WithTimeout(ctx, s.firstFetch)
	defer cancel()
	s.external.Await(ctx)
	snapshot, problems := levels.Compile(s.known(wanted), s.Outside())
	r := &Rehearsal{}
	r.set.Swap(snapshot)
	r.Decider = NewDecider(&r.set, s.engine, AnyNamespace{})
	return r, problems
}

// Rehearsal decides about images by objects that are not in force.
type Rehearsal struct {
	*Decider

	set Set
}

// Set returns the holder of the snapshot.
func (r *Rehearsal) Set() *Set { return &r.set }

// united returns the sources of both lists, each once.
func united(a, b []external.Source) []external.Source {
	all := slices.Clone(a)
	for _, source := range b {
		if !slices.Contains(all, source) {
			all = append(all, source)
		}
	}
	return all
}
