package service

import (
	"context"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/resource"
)

// Load returns a Service with the resources in dir, for a command that runs once. Its
// background work ends with ctx. With an empty dir there are no resources. Load also
// returns the problems of reading and compiling.
func Load(ctx context.Context, dir string, options Options) (*Service, []resource.Problem, error) {
	options.Wait = true
	s, err := New(options)
	if err != nil {
		return nil, nil, err
	}
	var objects resource.Objects
	var problems []resource.Problem
	if dir != "" {
		if objects, problems, err = configdir.Load(dir); err != nil {
			return nil, nil, err
		}
	}
	go func() { _ = s.Run(ctx) }() // fails only with Redis, which commands do not use
	return s, distinct(problems, s.Apply(ctx, objects)), nil
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
