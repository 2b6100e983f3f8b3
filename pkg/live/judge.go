package live

import (
	"context"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Decider decides about images by the objects of a [State].
type Decider interface {
	Verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result
}

// Judging returns what decides as far as the person can know it.
func (s State) Judging(by Decider) Judge {
	return func(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
		return s.known(by.Verify(ctx, namespace, ref))
	}
}

// known returns a result as far as the person can know it. A denial is Undecided if an
// exception might lift it that the person may not read: break-glass is an annotation of
// the Namespace.
func (s State) known(result verify.Result) verify.Result {
	if result.Verdict.Outcome != policy.Denied {
		return result
	}
	i := slices.IndexFunc(s.Objects.Hidden, func(h resource.Hidden) bool { return lifts(h.Source, result.Namespace) })
	if i < 0 {
		return result
	}
	denied := result.Verdict
	result.Verdict = policy.Verdict{Outcome: policy.Undecided, Policy: denied.Policy,
		Reason: "it is denied unless an exception allows it, and " + s.Objects.Hidden[i].Why + " (denied: " + denied.Reason + ")"}
	return result
}

// lifts reports whether objects of this source can lift a denial in a namespace.
func lifts(source policy.ObjectRef, namespace verify.Namespace) bool {
	switch {
	case namespace == verify.Cluster:
		return strings.HasPrefix(source.Kind, "ClusterException")
	case source.Kind == "Namespace":
		return source.Name == string(namespace)
	}
	return strings.HasPrefix(source.Kind, "ClusterException") || strings.HasPrefix(source.Kind, "Exception")
}
