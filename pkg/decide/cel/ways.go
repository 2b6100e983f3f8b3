package cel

import (
	"regexp"
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Clue is a condition of an expression on one text.
type Clue struct {
	// Of names the text, such as "subject" or "claims.sourceRepositoryURI".
	Of string
	// Pattern is a regular expression in Go's syntax that whole texts match if they meet the condition.
	Pattern string
}

// maxWays and maxClues bound what [Ways] returns, and maxVisits how many conditions it looks at: those of a loop
// count for each of its constants, so that a loop in a loop has thousands of millions in a few lines.
const (
	maxWays   = 8
	maxClues  = 8
	maxVisits = 4096
)

// Ways returns conditions that meet an expression together, for at most 8 ways of meeting it, each with at most 8
// conditions. It only knows comparisons of a text with constants: whether a way suffices, only [Expression.Match] can
// say. It returns nil for what is no expression.
func Ways(text string, variables Variables) [][]Clue {
	environment, err := newEnvironment(variables)
	if err != nil || len(text) > maxExpression {
		return nil
	}
	parsed, issues := environment.Parse(text)
	if issues != nil && issues.Err() != nil {
		return nil
	}
	visits := maxVisits
	return (&explorer{left: &visits}).ways(parsed.NativeRep().Expr())
}

// explorer looks for ways of meeting conditions.
type explorer struct {
	left *int // how many conditions it may still look at
	// constants are variables of a loop with a known value.
	constants map[string]string
}

// ways returns the ways of meeting a condition.
func (x *explorer) ways(e celast.Expr) [][]Clue {
	if *x.left--; *x.left < 0 {
		return [][]Clue{nil}
	}
	if e.Kind() == celast.ComprehensionKind {
		return x.waysOfLoop(e.AsComprehension())
	} else if e.Kind() != celast.CallKind {
		return [][]Clue{nil}
	}
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]celast.Expr{call.Target()}, args...)
	}
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return both(x.ways(args[0]), x.ways(args[1]))
	case operators.LogicalOr:
		return either(x.ways(args[0]), x.ways(args[1]))
	case operators.Conditional:
		return either(both(x.ways(args[0]), x.ways(args[1])), x.ways(args[2]))
	case operators.In:
		return x.waysOfIn(args)
	}
	if len(args) != 2 {
		return [][]Clue{nil}
	}
	return [][]Clue{x.clue(call.FunctionName(), args[0], args[1])}
}

// both returns the ways of meeting two conditions, and either those of meeting one of them.
func both(one, two [][]Clue) (all [][]Clue) {
	for _, a := range one {
		for _, b := range two {
			if len(all) < maxWays {
				together := slices.Concat(a, b)
				all = append(all, together[:min(len(together), maxClues)])
			}
		}
	}
	return all
}

func either(one, two [][]Clue) [][]Clue {
	all := slices.Concat(one, two)
	return all[:min(len(all), maxWays)]
}

// waysOfIn returns the ways of being in a list.
func (x *explorer) waysOfIn(args []celast.Expr) (all [][]Clue) {
	if args[1].Kind() != celast.ListKind {
		return [][]Clue{nil}
	}
	for _, element := range args[1].AsList().Elements() {
		if len(all) == maxWays {
			break
		}
		all = append(all, x.clue(operators.Equals, args[0], element))
	}
	return all
}

// waysOfLoop returns the ways of exists over a list of constants.
func (x *explorer) waysOfLoop(loop celast.ComprehensionExpr) (all [][]Clue) {
	step := loop.LoopStep()
	if loop.IterRange().Kind() != celast.ListKind || step.Kind() != celast.CallKind || step.AsCall().FunctionName() != operators.LogicalOr {
		return [][]Clue{nil}
	}
	for _, element := range loop.IterRange().AsList().Elements() {
		if len(all) == maxWays || *x.left <= 0 {
			break
		}
		if value, ok := constant(element, x.constants); ok {
			of := explorer{left: x.left, constants: map[string]string{loop.IterVar(): value}}
			all = either(all, of.ways(step.AsCall().Args()[1]))
		}
	}
	return all
}

// clue returns the condition that a function or an operator puts on a text, none if it does not compare with a
// constant.
func (x *explorer) clue(function string, text, with celast.Expr) []Clue {
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
		return []Clue{{of, quoted}}
	case "startsWith":
		return []Clue{{of, quoted + ".*"}}
	case "endsWith":
		return []Clue{{of, ".*" + quoted}}
	case "contains":
		return []Clue{{of, ".*" + quoted + ".*"}}
	case "matches":
		return []Clue{{of, ".*(?:" + value + ").*"}}
	}
	return nil
}

// constant returns the value of a text that is the same for every signer.
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

// pathOf returns the names that lead to a value, "" if it is none of a variable.
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
