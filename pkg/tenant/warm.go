package tenant

import (
	"context"
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Warm is Verify at low priority ([verify.Engine.Warm]), for namespaces that the
// snapshot has: nobody is asked for another, it is Undecided.
func (s *Service) Warm(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := s.declared(namespace)
	if err != nil {
		return unanswered(namespace, ref, err)
	}
	return s.engine.Warm(ctx, config, ref)
}

// Refresh is Warm that finds out anew what is cached ([verify.Engine.Refresh]).
func (s *Service) Refresh(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := s.declared(namespace)
	if err != nil {
		return unanswered(namespace, ref, err)
	}
	return s.engine.Refresh(ctx, config, ref)
}

// Account returns who pays for the work of a namespace.
func (s *Service) Account(namespace verify.Namespace) verify.Account {
	if config, err := s.declared(namespace); err == nil && config.Account != "" {
		return config.Account
	}
	return namespace.Account()
}

// declared is what applies in a namespace that the snapshot has.
func (s *Service) declared(namespace verify.Namespace) (*verify.Config, error) {
	snapshot := s.set.Snapshot()
	switch {
	case snapshot == nil:
		return nil, ErrNotReady
	case !s.declares(snapshot, namespace):
		return nil, fmt.Errorf("namespace %s is not in force: %w", namespace, ErrNotReady)
	}
	return snapshot.For(namespace), nil
}
