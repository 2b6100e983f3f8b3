package tenant

import (
	"context"
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Warm is Verify at low priority ([verify.Engine.Warm]). An image in a namespace that
// is not in the snapshot is Undecided.
func (s *Service) Warm(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := s.currentConfig(namespace)
	if err != nil {
		return verify.Unanswered(namespace, ref, err)
	}
	return s.engine.Warm(ctx, config, ref)
}

// Refresh is Warm that bypasses the cache ([verify.Engine.Refresh]).
func (s *Service) Refresh(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := s.currentConfig(namespace)
	if err != nil {
		return verify.Unanswered(namespace, ref, err)
	}
	return s.engine.Refresh(ctx, config, ref)
}

// currentConfig returns the configuration of a namespace in the snapshot. It does not
// look up or wait for others.
func (s *Service) currentConfig(namespace verify.Namespace) (*verify.Config, error) {
	snapshot := s.set.Snapshot()
	switch {
	case snapshot == nil:
		return nil, ErrNotReady
	case !s.covers(snapshot, namespace):
		return nil, fmt.Errorf("namespace %s is not in the snapshot: %w", namespace, ErrNotReady)
	}
	return snapshot.For(namespace), nil
}

// Generation names the rules, the trust material and the exceptions in force of a namespace,
// "" if it is not in the snapshot. Another one may give other answers.
func (s *Service) Generation(namespace verify.Namespace) string {
	config, err := s.currentConfig(namespace)
	if err != nil {
		return ""
	}
	return s.engine.Revision(config)
}
