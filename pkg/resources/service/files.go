package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Loaded is the content of a directory that [Load] read.
type Loaded struct {
	// Problems are the problems of reading and compiling.
	Problems []resource.Problem
	// Ignored counts the objects of kinds that Landwaiter does not use.
	Ignored int
	// Namespaces are those that files declare or that contain objects, sorted.
	Namespaces []string
}

// Load returns a Service with the resources in dir, for a command that runs once. Its
// background work ends with ctx. With an empty dir there are no resources. A directory
// without resources is an error, since a verdict about it would only say that.
func Load(ctx context.Context, dir string, options Options) (*Service, Loaded, error) {
	var objects resource.Objects
	var problems []resource.Problem
	if dir != "" {
		var err error
		if objects, problems, err = configdir.Load(ctx, dir); err != nil {
			return nil, Loaded{}, err
		}
	}
	loaded := Loaded{Namespaces: objects.InNamespaces()}
	problems = slices.DeleteFunc(problems, func(p resource.Problem) bool {
		if !p.IsIgnored() {
			return false
		}
		loaded.Ignored++
		if namespace := p.Source.Namespace; namespace != "" && !slices.Contains(loaded.Namespaces, namespace) {
			loaded.Namespaces = append(loaded.Namespaces, namespace)
		}
		return true
	})
	slices.Sort(loaded.Namespaces)
	if dir != "" && objects.CountResources() == 0 {
		return nil, Loaded{},
			fmt.Errorf("no resources: the files in %s have none of landwaiter.dev; objects of other kinds: %d", dir, loaded.Ignored)
	}
	s, compiling, err := Open(ctx, objects, options)
	loaded.Problems = distinct(problems, compiling)
	return s, loaded, err
}

// MayAllow compiles objects without network access. The returned function reports whether
// some evidence could get an image allowed in a namespace; it returns false for an invalid
// image. Without an image it answers for any image, and without a namespace for any
// namespace.
func MayAllow(objects resource.Objects) func(namespace, name string) bool {
	s, _ := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(objects), nil)
	return func(namespace, name string) bool {
		var ref image.Reference
		if name != "" {
			var err error
			if ref, err = image.Parse(name); err != nil {
				return false
			}
		}
		if namespace != "" {
			return s.For(verify.Namespace(namespace)).MayAllow(ref)
		}
		return slices.ContainsFunc(s.Namespaces(), func(n verify.Namespace) bool { return s.For(n).MayAllow(ref) })
	}
}

// Watch applies the resources in dir, and every change, until ctx ends. It calls
// report with the problems after each change. It returns an error if dir cannot be
// read at the start.
func (s *Service) Watch(ctx context.Context, dir string, report func([]resource.Problem)) error {
	s.Reapply(report)
	return configdir.Watch(ctx, dir, func(objects resource.Objects, problems []resource.Problem) {
		report(distinct(problems, s.Apply(ctx, objects)))
	})
}

// distinct merges the problems of reading and compiling. It keeps one for an object
// that could not be read: such an object has a problem in both.
func distinct(reading, compiling []resource.Problem) []resource.Problem {
	return append(reading, slices.DeleteFunc(compiling, func(p resource.Problem) bool {
		return slices.ContainsFunc(reading, func(r resource.Problem) bool { return r.Source == p.Source })
	})...)
}

// Open returns a Service with the given objects, for a command that runs once. Its background work ends with ctx.
func Open(ctx context.Context, objects resource.Objects, options Options) (*Service, []resource.Problem, error) {
	options.Wait = true
	s, err := New(options, AnyNamespace{})
	if err != nil {
		return nil, nil, err
	}
	go func() { _ = s.Run(ctx) }() // fails only with Redis, which commands do not use
	return s, s.Apply(ctx, objects), nil
}

// Rehearse returns a decider for other objects, and their problems. Both share connections
// and caches, whose keys distinguish them. The resources in force in s stay.
func (s *Service) Rehearse(ctx context.Context, objects resource.Objects) (*Decider, []resource.Problem) {
	s.applying.Lock()
	defer s.applying.Unlock()
	levels := resolve.Group(objects)
	wanted := levels.Externals()
	for namespace, sources := range wanted {
		s.external.Want(namespace, slices.Concat(s.wanted[namespace], sources))
	}
	ctx, cancel := context.WithTimeout(ctx, s.firstFetch)
	defer cancel()
	s.external.Await(ctx)
	snapshot, problems := resolve.Empty(s.Outside()).Next(levels, s.known(wanted))
	set := &Set{}
	set.Swap(snapshot)
	return NewDecider(set, s.engine, AnyNamespace{}), problems
}
