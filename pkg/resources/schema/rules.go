package schema

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rule is one of x-kubernetes-validations. Its values have no types before it is evaluated: a
// mistake in one is an error then, and refuses the object.
type rule struct {
	program cel.Program // nil for one about a change
	message string
	at      string // the field that it is about, below the value; may be empty
}

// self is what a rule calls the value that it is about.
const self = "self"

// interruptEvery is after how many steps of a loop a rule looks whether its context has ended.
const interruptEvery = 100

// reserved matches a field whose name is a word of CEL, as rules in CRDs have it.
var reserved = regexp.MustCompile(`\.__([a-z]+)__`)

func (c compiler) rule(of *apiextensionsv1.ValidationRule) (rule, error) {
	if of.MessageExpression != "" || of.Reason != nil || of.OptionalOldSelf != nil {
		return rule{}, fmt.Errorf("rule %s: it has what is not evaluated here", of.Rule)
	}
	made := rule{message: of.Message, at: strings.TrimPrefix(of.FieldPath, ".")}
	if strings.Contains(of.Rule, "oldSelf") {
		return made, nil
	}
	ast, issues := c.env.Compile(reserved.ReplaceAllString(of.Rule, ".$1"))
	if issues.Err() != nil {
		return rule{}, fmt.Errorf("rule %s: %w", of.Rule, issues.Err())
	}
	program, err := c.env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(maxRuleCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return rule{}, fmt.Errorf("rule %s: %w", of.Rule, err)
	}
	made.program = program
	return made, nil
}

// judgement is what the rules of one object come to.
type judgement struct {
	broken field.ErrorList
	left   uint64 // of the cost that they may have
	over   bool   // whether it was too little, and no further rule is evaluated
}

// judge evaluates the rules of n and of what is below it, in the order of fields' names.
func (n *node) judge(ctx context.Context, value any, path *field.Path, j *judgement) {
	if n == nil || value == nil {
		return
	}
	for _, r := range n.rules {
		if j.over {
			return
		}
		r.judge(ctx, value, path, j)
	}
	for _, all := range n.allOf {
		all.judge(ctx, value, path, j)
	}
	switch value := value.(type) {
	case []any:
		for i, inner := range value {
			n.items.judge(ctx, inner, path.Index(i), j)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if at := n.properties[name]; at != nil {
				at.judge(ctx, value[name], path.Child(name), j)
			} else {
				n.additional.judge(ctx, value[name], path.Key(name), j)
			}
		}
	}
}

func (r rule) judge(ctx context.Context, value any, path *field.Path, j *judgement) {
	said, details, err := r.program.ContextEval(ctx, map[string]any{self: value})
	cost := uint64(maxRuleCost)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	if cost > j.left {
		j.over = true
		j.broken = append(j.broken, field.Invalid(path, "", "its rules cost too much to evaluate"))
		return
	}
	j.left -= cost
	switch {
	case err != nil:
		j.broken = append(j.broken, field.Invalid(path, "", fmt.Sprintf("%v evaluating rule: %s", err, r.message)))
	case said != types.True:
		if r.at != "" {
			path = path.Child(r.at)
		}
		j.broken = append(j.broken, field.Invalid(path, "", r.message))
	}
}
