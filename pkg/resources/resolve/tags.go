package resolve

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Tags returns whether tags of images in a namespace are pinned. The nearest level with a policy
// about tags decides, and Pin wins within a level. A mandatory policy with Pin applies in every
// namespace. By default, tags stay.
func (s *Snapshot) Tags(namespace verify.Namespace) v1beta1.TagAction {
	if tagsOf(s.cluster.Mandatory) == v1beta1.TagActionPin {
		return v1beta1.TagActionPin
	}
	for _, l := range s.Chain(s.view(namespace)) {
		if said := tagsOf(slices.Concat(l.Policies, l.Mandatory)); said != "" {
			return said
		}
	}
	return v1beta1.TagActionLeave
}

// Pins compiles objects without the references of Verifiers, and reports whether tags are pinned in a
// namespace, as [Snapshot.Tags] does; "" is a namespace without rules of its own.
func Pins(o resource.Objects) func(namespace string) bool {
	s, _ := Empty(Nowhere()).Next(Group(o), nil)
	return func(namespace string) bool { return s.Tags(verify.Namespace(namespace)) == v1beta1.TagActionPin }
}

// tagsOf returns the setting for tags in the policies of one level, "" if there is none.
func tagsOf(policies []compile.Policy) (said v1beta1.TagAction) {
	for _, p := range policies {
		if p.Tags == v1beta1.TagActionPin {
			return p.Tags
		}
		if p.Tags != "" {
			said = p.Tags
		}
	}
	return said
}
