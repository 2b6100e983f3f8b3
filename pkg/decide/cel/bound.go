package cel

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Bytes returns an upper bound on the memory that a compiled expression keeps. It does not
// parse the expression.
func Bytes(text string) int {
	size := baseBytes + len(text)*bytesPerByte
	if strings.Contains(text, overloads.Matches) {
		size += RegexpBytes(maxPrograms)
	}
	return size
}

// checkGrowth refuses expressions that could make a value larger than their input: a short
// expression that doubles a value forty times takes all memory.
func checkGrowth(checked *celast.AST) error {
	var refused error
	refuse := func(why string) {
		if refused == nil {
			refused = errors.New(why)
		}
	}
	celast.PreOrderVisit(checked.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.CallKind:
			if e.AsCall().FunctionName() == operators.Add && slices.ContainsFunc(checked.GetOverloadIDs(e.ID()), joins) {
				refuse("the expression may add strings or lists; add numbers, durations and timestamps only, as in int(predicate.a) + 1")
			}
		case celast.ListKind:
			if slices.ContainsFunc(e.AsList().Elements(), func(element celast.Expr) bool { return element.Kind() != celast.LiteralKind }) {
				refuse("the expression has a list of something else than constants")
			}
		case celast.MapKind, celast.StructKind:
			refuse("the expression makes a map, which is not supported")
		case celast.UnspecifiedExprKind:
			refuse("the expression has a part of unknown kind")
		case celast.ComprehensionKind, celast.IdentKind, celast.LiteralKind, celast.SelectKind: // create no values
		}
	}))
	return refused
}

// computesKeys reports whether an expression looks something up by a key that is not constant.
func computesKeys(checked *celast.AST) (found bool) {
	celast.PreOrderVisit(checked.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		switch e.AsCall().FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			key := e.AsCall().Args()[len(e.AsCall().Args())-1]
			found = found || key.Kind() != celast.LiteralKind
		}
	}))
	return found
}

// readsTime reports whether an expression reads a variable that is a time.
func readsTime(checked *celast.AST, variables Variables) (found bool) {
	celast.PreOrderVisit(checked.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.IdentKind {
			kind, ok := variables[e.AsIdent()]
			found = found || ok && kind == Time
		}
	}))
	return found
}

// joins reports whether an overload of + concatenates strings, bytes or lists.
func joins(overload string) bool {
	return overload == overloads.AddString || overload == overloads.AddBytes || overload == overloads.AddList
}

// patterns maps each regular expression of an expression to its size in instructions.
type patterns map[string]int

// checkSize refuses a parsed expression that is large, loops deeply, or has regular
// expressions that are large or not constant. It returns the regular expressions.
func checkSize(parsed *celast.AST) (patterns, error) {
	found := patterns{}
	count, total := 0, 0
	var refused error
	var visit func(e celast.NavigableExpr, loops int)
	visit = func(e celast.NavigableExpr, loops int) {
		if e.Kind() == celast.ComprehensionKind {
			loops++
		}
		count++
		switch {
		case refused != nil:
			return
		case count > maxNodes:
			refused = fmt.Errorf("the expression has more than %d parts, macros written out; split it, into several requirements or Verifiers",
				maxNodes)
			return
		case loops > maxLoops:
			refused = fmt.Errorf("the expression nests all, exists and exists_one more than %d deep; split it, into several requirements "+
				"or Verifiers", maxLoops)
			return
		case e.Kind() == celast.CallKind && e.AsCall().FunctionName() == overloads.Matches:
			size, err := found.add(e.AsCall())
			if total += size; err == nil && total > maxPrograms {
				err = fmt.Errorf("the regular expressions of matches have %d instructions together, the limit is %d; repeat less, as in a+ for "+
					"a{1,1000}, or split the expression", total, maxPrograms)
			}
			refused = err
		}
		for _, child := range e.Children() {
			visit(child, loops)
		}
	}
	visit(celast.NavigateAST(parsed), 0)
	return found, refused
}

// add adds the regular expression of a call of matches and returns its size.
func (p patterns) add(call celast.CallExpr) (int, error) {
	args := call.Args()
	if len(args) == 0 || args[len(args)-1].Kind() != celast.LiteralKind {
		return 0, errors.New(`matches needs a constant regular expression in quotes, as in name.matches("^[a-z]+$")`)
	}
	text, ok := args[len(args)-1].AsLiteral().(types.String)
	if !ok {
		return 0, errors.New("matches needs a regular expression in quotes")
	}
	size, err := RegexpSize(string(text))
	if err != nil {
		return 0, fmt.Errorf("matches: %w", err)
	}
	p[string(text)] = size
	return size, nil
}

// cost is the cost of one match of a regular expression, in CEL's units: the library charges
// by the length of its text.
func (p patterns) cost(args []ref.Val) uint64 {
	if len(args) != 2 {
		return maxCost
	}
	text, isText := args[0].(types.String)
	pattern, isPattern := args[1].(types.String)
	size, known := p[string(pattern)]
	if !isText || !isPattern || !known {
		return maxCost
	}
	return 1 + uint64(len(text))*uint64(size)/stepsPerCost //nolint:gosec // both are lengths
}

// options make a program match only the regular expressions of p, at their actual cost.
func (p patterns) options() []celgo.ProgramOption {
	track := func(args []ref.Val, _ ref.Val) *uint64 {
		cost := p.cost(args)
		return &cost
	}
	var options []celgo.ProgramOption
	for _, overload := range []string{overloads.Matches, overloads.MatchesString} {
		options = append(options, celgo.CostTrackerOptions(interpreter.OverloadCostTracker(overload, track)),
			celgo.OptimizeRegex(&interpreter.RegexOptimization{Function: overloads.Matches, OverloadID: overload, RegexIndex: 1,
				Factory: p.matcher}))
	}
	return options
}

// matcher compiles a regular expression. Go cannot interrupt a match, so a match that would
// cost more than a whole evaluation may is refused before it starts.
func (p patterns) matcher(call interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return metered{interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(values ...ref.Val) ref.Val {
		if len(values) != 2 {
			return types.NoSuchOverloadErr()
		}
		text, ok := values[0].(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(values[0])
		}
		if p.cost([]ref.Val{text, types.String(pattern)}) >= maxCost {
			return types.WrapErr(fmt.Errorf("a text of %d bytes is too long for matches: %w", len(text), ErrLimit))
		}
		return types.Bool(compiled.MatchString(string(text)))
	})}, nil
}
