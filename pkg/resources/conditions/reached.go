package conditions

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// maxCoverSteps bounds the search for unreachable rules: a few milliseconds for each level. A usual pair of patterns
// takes two steps.
const maxCoverSteps = 1 << 17

// placed is a rule with its position in a policy.
type placed struct {
	verify.Rule
	at string
}

// neverReached returns the rules of a level that no image reaches, because earlier ones match all of their images, by
// policy. It also returns such patterns of other rules. It considers all rules that are tried one after the other:
// those of a mandatory policy, and those of a level's other policies that deny, or that only warn, in the order of
// names. Rules of other levels do not count, because they differ between namespaces.
func neverReached(l *resolve.Level) map[policy.ObjectRef][]concern {
	found := map[policy.ObjectRef][]concern{}
	steps := maxCoverSteps
	for _, order := range triedTogether(l) {
		var earlier []placed
		for _, p := range order {
			for i, rule := range p.Rules {
				this := placed{rule, fmt.Sprintf("spec.rules[%d]", i)}
				covering := this.coveredBy(earlier, &steps)
				if len(covering) > 0 && !slices.Contains(covering, nil) {
					found[p.Source] = append(found[p.Source], this.unreached(covering))
					continue // it decides about no image, and hides no other rule
				}
				found[p.Source] = append(found[p.Source], this.unreachedPatterns(covering)...)
				earlier = append(earlier, this)
			}
		}
	}
	return found
}

// triedTogether returns the policies of a level whose rules are tried as one list, each list in the order of names. A
// policy that denies all images has no rules.
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

// coveredBy returns for each pattern of a rule the first earlier rule that matches all of its images, nil if none is
// known.
func (r placed) coveredBy(earlier []placed, steps *int) []*placed {
	covering := make([]*placed, len(r.Images))
	for n, pattern := range r.Images {
		by := slices.IndexFunc(earlier, func(e placed) bool {
			for _, wider := range e.Images {
				if wider.Covers(pattern, steps) {
					return true
				}
			}
			return false
		})
		if by >= 0 {
			covering[n] = &earlier[by]
		}
	}
	return covering
}

// unreached names the earlier rules that match the images of a rule.
func (r placed) unreached(covering []*placed) concern {
	var names []string
	for _, e := range covering {
		if name := r.named(e); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return concern{policy.ReasonRuleNeverReached, r.at, "no image reaches the rule, because earlier rules match all of its images: " +
		compile.JoinNames(names),
		"move it before " + r.named(covering[0]) + ", or remove it"}
}

// unreachedPatterns are the patterns of a rule whose images an earlier rule matches and treats differently. A
// repeated pattern misleads nobody.
func (r placed) unreachedPatterns(covering []*placed) (found []concern) {
	for i, by := range covering {
		if by != nil && !r.decidesAs(by) {
			found = append(found, concern{policy.ReasonRuleNeverReached, fmt.Sprintf("%s.images[%d]", r.at, i),
				"no image reaches the rule by this pattern, because an earlier rule matches all of its images: " + r.named(by),
				"move the pattern to a rule before " + r.named(by) + ", or remove it"})
		}
	}
	return found
}

// decidesAs reports whether two rules treat the images that they match in the same way. Conditions cannot be
// compared, so they count as different.
func (r placed) decidesAs(e *placed) bool {
	return r.Action == e.Action && r.IndexManifests == e.IndexManifests && reflect.DeepEqual(r.Require, e.Require)
}

// named describes an earlier rule, with its policy if that is not the policy of r.
func (r placed) named(e *placed) string {
	if e.Source == r.Source {
		return e.at
	}
	return e.at + " of " + e.Source.String()
}

// unreachedRules are the problems of the rules of a level that no image reaches.
func unreachedRules(l *resolve.Level) (found []resource.Problem) {
	for source, concerns := range neverReached(l) {
		found = append(found, problems(source, concerns)...)
	}
	return found
}
