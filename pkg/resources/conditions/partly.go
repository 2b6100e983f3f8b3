package conditions

import (
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// partly describes the missing or broken Verifiers that a policy of the level names, and the rules that no image can
// pass because of them.
func (c conditions) partly(p compile.Policy) (names, rules []string) {
	if c.own == c.snapshot.Cluster() {
		return resolve.Partly(p, c.own.Verifiers)
	}
	return resolve.Partly(p, c.view.Verifiers)
}

// partlyDenies returns the condition Effective of a policy that is not broken itself, but names broken Verifiers.
func (c conditions) partlyDenies(p compile.Policy) Condition {
	names, rules := c.partly(p)
	denied, still := "images that only these could verify", stillMet
	if len(rules) > 0 {
		denied, still = "the images of "+compile.JoinNames(rules), stillDecide
	}
	return Condition{Reason: policy.ReasonDenies, Message: "Landwaiter cannot use Verifiers that the policy names (" +
		compile.JoinNames(names) + "), and denies " + denied +
		"; " + still + "; the condition Ready says why"}
}

// What a policy with broken Verifiers still does.
const (
	stillMet    = "other Verifiers can still satisfy its requirements"
	stillDecide = "its other rules still decide"
)
