package service

import (
	"context"
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Warm is Verify at low priority ([verify.Engine.Warm]). An image in a namespace that
// is not in the snapshot is Undecided.
func (d *Decider) Warm(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := d.currentConfig(namespace)
	if err != nil {
		return verify.Unanswered(namespace, ref, err)
	}
	return d.engine.Warm(ctx, config, ref)
}

// Refresh is Warm that bypasses the cache ([verify.Engine.Refresh]).
func (d *Decider) Refresh(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := d.currentConfig(namespace)
	if err != nil {
		return verify.Unanswered(namespace, ref, err)
	}
	return d.engine.Refresh(ctx, config, ref)
}

// currentConfig returns the configuration of a namespace in the snapshot. It does not
// look up or wait for others.
func (d *Decider) currentConfig(namespace verify.Namespace) (*verify.Config, error) {
	snapshot := d.set.Snapshot()
	switch {
	case snapshot == nil:
		return nil, ErrNotReady
	case !d.covers(snapshot, namespace):
		return nil, fmt.Errorf("namespace %s is not in the snapshot: %w", namespace, ErrNotReady)
	}
	return snapshot.For(namespace), nil
}

// Generation names the rules, the trust material and the exceptions in force of a namespace,
// "" if it is not in the snapshot. Another one may give other answers.
func (d *Decider) Generation(namespace verify.Namespace) string {
	config, err := d.currentConfig(namespace)
	if err != nil {
		return ""
	}
	return d.engine.Revision(config)
}
