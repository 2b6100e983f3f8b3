package tenant

import (
	"context"
	"fmt"
	"time"

	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Finder tells whether a namespace exists, by asking whoever keeps namespaces.
// Its error means that nobody knows. It is safe for concurrent use.
type Finder interface {
	Exists(ctx context.Context, namespace verify.Namespace) (bool, error)
}

// catchUp is how long a namespace that exists may take to be in the snapshot:
// its objects are on their way to us while the first pod is asked for.
const (
	catchUp     = time.Second
	catchUpStep = 5 * time.Millisecond
)

// Service answers for images by namespace: the snapshot in force says what is
// demanded, the engine whether it holds.
type Service struct {
	set    *Set
	engine *verify.Engine
	finder Finder
}

// NewService returns a Service over the snapshots of set. With a finder, a namespace
// that the snapshot does not have is looked for, and denied unless it exists;
// with nil, it simply declares nothing.
func NewService(set *Set, engine *verify.Engine, finder Finder) *Service {
	return &Service{set: set, engine: engine, finder: finder}
}

// Verify decides whether ref may be used in namespace. It never fails; before
// the first snapshot everything is Undecided.
func (s *Service) Verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := s.config(ctx, namespace)
	if err == nil {
		return s.engine.Verify(ctx, config, ref)
	}
	return unanswered(namespace, ref, err)
}

// unanswered is the result where err says why it is not known what applies.
func unanswered(namespace verify.Namespace, ref image.Reference, err error) verify.Result {
	verdict := policy.Verdict{Outcome: policy.Undecided, Reason: err.Error()}
	if verify.IsPermanent(err) {
		verdict.Outcome = policy.Denied
	}
	return verify.Result{Namespace: namespace, Reference: ref, Digest: ref.Digest, Verdict: verdict}
}

// Recall answers as Verify does if the answer is known, and else reports false. It
// waits for nothing.
func (s *Service) Recall(namespace verify.Namespace, ref image.Reference) (verify.Result, bool) {
	config, err := s.declared(namespace)
	if err != nil {
		return verify.Result{}, false
	}
	return s.engine.Recall(config, ref)
}

// declares reports whether snapshot says what applies in a namespace.
func (s *Service) declares(snapshot *compile.Snapshot, namespace verify.Namespace) bool {
	return namespace == verify.Cluster || s.finder == nil || snapshot.Has(namespace)
}

// Resolve returns ref pinned to the digest that its tag names now. The error is
// a [verify.PermanentError] if asking again would give the same answer.
func (s *Service) Resolve(ctx context.Context, namespace verify.Namespace, ref image.Reference) (image.Reference, error) {
	config, err := s.config(ctx, namespace)
	if err != nil {
		return image.Reference{}, err
	}
	return s.engine.Resolve(ctx, config, ref)
}

// config returns what applies in a namespace. A namespace is never taken to
// declare nothing only because its objects have not arrived.
func (s *Service) config(ctx context.Context, namespace verify.Namespace) (*verify.Config, error) {
	snapshot := s.set.Snapshot()
	switch {
	case snapshot == nil:
		return nil, ErrNotReady
	case s.declares(snapshot, namespace):
		return snapshot.For(namespace), nil
	}
	exists, err := s.finder.Exists(ctx, namespace)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for namespace %s: %w", namespace, err)
	case !exists:
		return nil, verify.Permanent(policy.ReasonNamespaceNotFound, fmt.Errorf("namespace %s does not exist", namespace))
	}
	return s.await(ctx, namespace)
}

// await waits until the snapshot has a namespace that exists.
func (s *Service) await(ctx context.Context, namespace verify.Namespace) (*verify.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	ticker := time.NewTicker(catchUpStep)
	defer ticker.Stop()
	for {
		if snapshot := s.set.Snapshot(); snapshot.Has(namespace) {
			return snapshot.For(namespace), nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("namespace %s is new: %w", namespace, ErrNotReady)
		}
	}
}
