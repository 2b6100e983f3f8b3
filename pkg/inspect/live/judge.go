package live

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
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

// WithoutBreakGlass leaves break-glass out of s, for whoever does not know whether the server
// lets it count, and why. Where it would be in force now, a denial is then Undecided.
func (s *State) WithoutBreakGlass(why string, now time.Time) {
	s.unsure = map[verify.Namespace]string{}
	s.Objects.Namespaces = slices.Clone(s.Objects.Namespaces)
	for i := range s.Objects.Namespaces {
		n := &s.Objects.Namespaces[i]
		from, errFrom := time.Parse(time.RFC3339, n.Annotations[v1beta1.AnnotationBreakGlassFrom])
		until, errUntil := time.Parse(time.RFC3339, n.Annotations[v1beta1.AnnotationBreakGlassUntil])
		if errFrom == nil && errUntil == nil && !now.Before(from) && now.Before(until) {
			s.unsure[verify.Namespace(n.Name)] = why
		}
		n.Annotations = maps.Clone(n.Annotations)
		for _, key := range compile.BreakGlassAnnotations() {
			delete(n.Annotations, key)
		}
	}
}

// known returns a result as far as the person can know it. A denial is Undecided if an
// exception might lift it that the person may not read: break-glass is an annotation of
// the Namespace, and counts if the server says so.
func (s State) known(result verify.Result) verify.Result {
	if result.Verdict.Outcome() != policy.Denied {
		return result
	}
	what, why := "break-glass of Namespace "+string(result.Namespace), s.unsure[result.Namespace]
	if why == "" {
		i := slices.IndexFunc(s.Objects.Hidden, func(h resource.Hidden) bool { return lifts(h.Source, result.Namespace) })
		if i < 0 {
			return result
		}
		what, why = "an exception", s.Objects.Hidden[i].Why
	}
	denied := result.Verdict
	result.Verdict = policy.NotDecided(denied.Policy, "it is denied unless "+what+" allows it, and "+why+" (denied: "+denied.Reason+")")
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
