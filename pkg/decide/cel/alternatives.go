package cel

import (
	"regexp"
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Comparison is a condition on one text of an expression.
type Comparison struct {
	// Of names the text, such as "subject" or "claims.sourceRepositoryURI".
	Of string
	// Pattern is a regular expression in Go's syntax that whole texts match if they meet the condition.
	Pattern string
}

// Bounds of [Alternatives]. maxVisits limits the conditions that it visits: it visits those in a loop once for each
// constant, so a few lines of nested loops would otherwise be billions of visits.
const (
	maxAlternatives = 8
	maxComparisons  = 8
	maxVisits       = 4096
)

// Alternatives returns up to 8 lists of up to 8 comparisons. Meeting all comparisons of one list may meet the
// expression; only [Expression.Match] can tell, because Alternatives only understands comparisons of a text with
// constants. It returns nil if text is not an expression.
func Alternatives(text string, variables Variables) [][]Comparison {
	environment, err := newEnvironment(variables)
	if err != nil || len(text) > maxExpression {
		return nil
	}
	parsed, issues := environment.Parse(text)
	if issues != nil && issues.Err() != nil {
		return nil
	}
	visits := maxVisits
	return (&explorer{left: &visits}).alternatives(parsed.NativeRep().Expr())
}

// explorer finds the alternatives of conditions.
type explorer struct {
	left *int // how many conditions it may still look at
	// constants are variables of a loop with a known value.
	constants map[string]string
}

// alternatives returns the alternatives of a condition.
func (x *explorer) alternatives(e celast.Expr) [][]Comparison {
	if *x.left--; *x.left < 0 {
		return [][]Comparison{nil}
	}
	if e.Kind() == celast.ComprehensionKind {
		return x.alternativesOfLoop(e.AsComprehension())
	} else if e.Kind() != celast.CallKind {
		return [][]Comparison{nil}
	}
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]celast.Expr{call.Target()}, args...)
	}
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return both(x.alternatives(args[0]), x.alternatives(args[1]))
	case operators.LogicalOr:
		return either(x.alternatives(args[0]), x.alternatives(args[1]))
	case operators.Conditional:
		return either(both(x.alternatives(args[0]), x.alternatives(args[1])), x.alternatives(args[2]))
	case operators.In:
		return x.alternativesOfIn(args)
	}
	if len(args) != 2 {
		return [][]Comparison{nil}
	}
	return [][]Comparison{x.comparison(call.FunctionName(), args[0], args[1])}
}

// both returns the alternatives of a conjunction.
func both(one, two [][]Comparison) (all [][]Comparison) {
	for _, a := range one {
		for _, b := range two {
			if len(all) < maxAlternatives {
				together := slices.Concat(a, b)
				all = append(all, together[:min(len(together), maxComparisons)])
			}
		}
	}
	return all
}

// either returns the alternatives of a disjunction.
func either(one, two [][]Comparison) [][]Comparison {
	all := slices.Concat(one, two)
	return all[:min(len(all), maxAlternatives)]
}

// alternativesOfIn returns one alternative for each element of a list.
func (x *explorer) alternativesOfIn(args []celast.Expr) (all [][]Comparison) {
	if args[1].Kind() != celast.ListKind {
		return [][]Comparison{nil}
	}
	for _, element := range args[1].AsList().Elements() {
		if len(all) == maxAlternatives {
			break
		}
		all = append(all, x.comparison(operators.Equals, args[0], element))
	}
	return all
}

// alternativesOfLoop returns the alternatives of exists over a list of constants.
func (x *explorer) alternativesOfLoop(loop celast.ComprehensionExpr) (all [][]Comparison) {
	step := loop.LoopStep()
	if loop.IterRange().Kind() != celast.ListKind || step.Kind() != celast.CallKind || step.AsCall().FunctionName() != operators.LogicalOr {
		return [][]Comparison{nil}
	}
	for _, element := range loop.IterRange().AsList().Elements() {
		if len(all) == maxAlternatives || *x.left <= 0 {
			break
		}
		if value, ok := constant(element, x.constants); ok {
			of := explorer{left: x.left, constants: map[string]string{loop.IterVar(): value}}
			all = either(all, of.alternatives(step.AsCall().Args()[1]))
		}
	}
	return all
}

// comparison returns the condition that a function or an operator puts on a text. It returns nil unless the other
// operand is a constant.
func (x *explorer) comparison(function string, text, with celast.Expr) []Comparison {
	value, ok := constant(with, x.constants)
	if !ok && function == operators.Equals {
		text, with = with, text
		value, ok = constant(with, x.constants)
	}
	of := pathOf(text)
	if !ok || of == "" {
		return nil
	}
	quoted := regexp.QuoteMeta(value)
	switch function {
	case operators.Equals:
		return []Comparison{{of, quoted}}
	case "startsWith":
		return []Comparison{{of, quoted + ".*"}}
	case "endsWith":
		return []Comparison{{of, ".*" + quoted}}
	case "contains":
		return []Comparison{{of, ".*" + quoted + ".*"}}
	case "matches":
		return []Comparison{{of, ".*(?:" + value + ").*"}}
	}
	return nil
}

// constant returns the value of a text that does not depend on the signer.
func constant(e celast.Expr, constants map[string]string) (string, bool) {
	if e.Kind() == celast.IdentKind {
		value, ok := constants[e.AsIdent()]
		return value, ok
	} else if e.Kind() != celast.LiteralKind {
		return "", false
	}
	value, ok := e.AsLiteral().(types.String)
	return string(value), ok
}

// pathOf returns the dotted path from a variable to a value, "" for other values.
func pathOf(e celast.Expr) string {
	object, name := e, ""
	switch e.Kind() { //nolint:exhaustive // no other kind has a name
	case celast.IdentKind:
		return e.AsIdent()
	case celast.SelectKind:
		object, name = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case celast.CallKind:
		switch call := e.AsCall(); call.FunctionName() {
		case "orValue", "value":
			return pathOf(call.Target())
		case operators.Index, operators.OptIndex, operators.OptSelect:
			object = call.Args()[0]
			name, _ = constant(call.Args()[1], nil)
		}
	}
	if name == "" {
		return ""
	}
	if path := pathOf(object); path != "" {
		return path + "." + name
	}
	return ""
}
