package service

import (
	"context"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/resource"
)

// Load returns a Service with the resources in dir in force, for a command that
// runs once: its background work ends with ctx. With an empty dir there are no
// resources. The problems are those of reading and of compiling.
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
	go func() { _ = s.Run(ctx) }() // it only fails with Redis, which a command does not use
	return s, distinct(problems, s.Apply(ctx, objects)), nil
}

// Watch keeps the resources in dir in force until ctx ends, and calls report with
// the problems after each change. It returns an error if dir cannot be read at the
// start.
func (s *Service) Watch(ctx context.Context, dir string, report func([]resource.Problem)) error {
	s.Reapply(report)
	return configdir.Watch(ctx, dir, func(objects resource.Objects, problems []resource.Problem) {
		report(distinct(problems, s.Apply(ctx, objects)))
	})
}

// distinct joins the problems of reading and of compiling. An object that could
// not be read has one in both.
func distinct(reading, compiling []resource.Problem) []resource.Problem {
	return append(reading, slices.DeleteFunc(compiling, func(p resource.Problem) bool {
		return slices.ContainsFunc(reading, func(r resource.Problem) bool { return r.Source == p.Source })
	})...)
}
