package conditions

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// maxCoverSteps bounds the search for rules that are never reached: a few milliseconds for each level. A usual pair of
// patterns takes two steps.
const maxCoverSteps = 1 << 17

// placedPattern is a pattern of a rule, with the place of the rule.
type placedPattern struct {
	pattern image.Pattern
	source  policy.ObjectRef
	rule    string
}

// neverReached returns the rules of a level that no image reaches, because earlier ones match all of their images, by
// policy. It looks at all rules that are tried one after the other: those of a mandatory policy, and those of a
// level's other policies that deny, or that only warn, in the order of names. Rules of other levels do not
// count, because other namespaces may have other rules.
func neverReached(l *resolve.Level) map[policy.ObjectRef][]concern {
	found := map[policy.ObjectRef][]concern{}
	steps := maxCoverSteps
	for _, order := range triedTogether(l) {
		var earlier []placedPattern
		for _, p := range order {
			for i, rule := range p.Rules {
				at := fmt.Sprintf("spec.rules[%d]", i)
				if by := covering(rule.Images, earlier, &steps); len(by) > 0 {
					found[p.Source] = append(found[p.Source], unreached(p.Source, at, by))
					continue // it decides about no image, and hides no other rule
				}
				for _, pattern := range rule.Images {
					earlier = append(earlier, placedPattern{pattern, p.Source, at})
				}
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

// covering returns patterns that match all images of a rule, at least one for each of its own, none if some image is
// not known to be matched.
func covering(images []image.Pattern, earlier []placedPattern, steps *int) []placedPattern {
	var by []placedPattern
	for _, pattern := range images {
		at := slices.IndexFunc(earlier, func(e placedPattern) bool { return e.pattern.Covers(pattern, steps) })
		if at < 0 {
			return nil
		}
		if !slices.ContainsFunc(by, func(e placedPattern) bool { return e.source == earlier[at].source && e.rule == earlier[at].rule }) {
			by = append(by, earlier[at])
		}
	}
	return by
}

// unreached says which rules match the images of a rule before it.
func unreached(source policy.ObjectRef, at string, by []placedPattern) concern {
	names := compile.MapSlice(by, func(e placedPattern) string {
		if e.source == source {
			return e.rule
		}
		return e.rule + " of " + e.source.String()
	})
	c := concern{policy.ReasonRuleNeverReached, at, "no image reaches the rule, because earlier rules match all of its images: " + compile.JoinNames(names),
		"move it before them, or remove it"}
	if by[0].source != source {
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
