package conditions

import (
	"fmt"
	"maps"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// maxCoverSteps bounds the search for rules that are never reached: a few milliseconds for each level. A usual pair of
// patterns takes two steps.
const maxCoverSteps = 1 << 17

// placed is a rule with its place in a policy.
type placed struct {
	verify.Rule
	at string
}

// neverReached returns the rules of a level that no image reaches, because earlier ones match all of their images, by
// policy. It looks at all rules that are tried one after the other: those of a mandatory policy, and those of a
// level's other policies that deny, or that only warn, in the order of names. Rules of other levels do not
// count, because other namespaces may have other rules.
func neverReached(l *resolve.Level) map[policy.ObjectRef][]concern {
	found := map[policy.ObjectRef][]concern{}
	steps := maxCoverSteps
	for _, order := range triedTogether(l) {
		var earlier []placed
		for _, p := range order {
			for i, rule := range p.Rules {
				this := placed{rule, fmt.Sprintf("spec.rules[%d]", i)}
				if by := this.coveredBy(earlier, &steps); len(by) > 0 {
					found[p.Source] = append(found[p.Source], this.unreached(by))
					continue // it decides about no image, and hides no other rule
				}
				earlier = append(earlier, this)
			}
		}
	}
	return found
}

// triedTogether returns the policies of a level whose rules are tried as one list, each list in the order of names. What
// denies all images has no rules.
func triedTogether(l *resolve.Level) [][]compile.Policy {
	var deciding, warning []compile.Policy
	for _, p := range l.Policies {
		if p.Decides() {
			deciding = append(deciding, p)
		} else {
			warning = append(warning, p)
		}
	}
	orders := [][]compile.Policy{deciding, warning}
	for _, p := range l.Mandatory {
		orders = append(orders, []compile.Policy{p})
	}
	return orders
}

// coveredBy returns earlier rules that match all images of a rule, none if some image is not known to be matched.
func (r placed) coveredBy(earlier []placed, steps *int) []placed {
	covering := map[int]bool{}
	for _, pattern := range r.Images {
		by := slices.IndexFunc(earlier, func(e placed) bool {
			for _, wider := range e.Images {
				if wider.Covers(pattern, steps) {
					return true
				}
			}
			return false
		})
		if by < 0 {
			return nil
		}
		covering[by] = true
	}
	return compile.MapSlice(slices.Sorted(maps.Keys(covering)), func(i int) placed { return earlier[i] })
}

// unreached says which rules match the images of a rule before it.
func (r placed) unreached(by []placed) concern {
	names := compile.MapSlice(by, func(e placed) string {
		if e.Source == r.Source {
			return e.at
		}
		return e.at + " of " + e.Source.String()
	})
	c := concern{policy.ReasonRuleNeverReached, r.at, "no image reaches the rule, because earlier rules match all of its images: " + compile.JoinNames(names),
		"move it before them, or remove it"}
	if by[0].Source != r.Source {
		c.fix = "move it into that policy before the rule there, or remove it"
	}
	return c
}

// unreachedRules are the problems of the rules of a level that no image reaches.
func unreachedRules(l *resolve.Level) (found []resource.Problem) {
	for source, concerns := range neverReached(l) {
		found = append(found, problems(source, concerns)...)
	}
	return found
}
