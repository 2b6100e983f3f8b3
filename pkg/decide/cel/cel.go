// Package cel evaluates conditions in CEL (the Common Expression Language) over facts. It
// refuses expressions that could run long or make large values out of small ones, and sizes
// regular expressions, here and in identities. Its functions have no side effects.
package cel

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
)

// Expression is a compiled condition. It is safe for concurrent use.
type Expression struct {
	program  celgo.Program
	computed bool // it has keys that are not constant
	timed    bool
}

// ReadsTime reports whether the expression has a [Time] variable, so its result may change over time.
func (e *Expression) ReadsTime() bool { return e.timed }

// Kind is the type of a variable.
type Kind int

// The kinds of variables.
const (
	Any  Kind = iota // any JSON value, with numbers as [json.Number] or float64
	Text             // a string
	Time             // a [time.Time]
)

// Variables are the names and kinds of the variables of an expression.
type Variables map[string]Kind

// Compile compiles an expression over variables, with CEL's standard functions and
// optionals, and the macros has, all, exists and exists_one. It refuses expressions that
// are not of type bool, that could make large values, or that name a field that is not in fields. Errors name the
// position.
func Compile(text string, variables Variables, fields Fields) (*Expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("the expression is %d bytes long, the limit is %d; split it", len(text), maxExpression)
	}
	environment, err := newEnvironment(variables)
	if err != nil {
		return nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	parsed, issues := environment.Parse(text)
	if err := refusal(issues); err != nil {
		return nil, err
	}
	matched, err := checkSize(parsed.NativeRep())
	if err != nil {
		return nil, err
	}
	ast, issues := environment.Check(parsed)
	if err := refusal(issues); err != nil {
		return nil, err
	}
	if err := checkGrowth(ast.NativeRep()); err != nil {
		return nil, err
	}
	if err := fields.check(ast.NativeRep()); err != nil {
		return nil, err
	}
	if kind := ast.OutputType(); !kind.IsExactType(celgo.BoolType) && !kind.IsExactType(celgo.DynType) {
		return nil, fmt.Errorf("the expression is of type %s, it must be true or false", kind)
	}
	program, err := environment.Program(ast, append(matched.options(), costOptions()...)...)
	if err != nil {
		return nil, fmt.Errorf("the expression cannot be planned: %s", oneLine(err.Error()))
	}
	return &Expression{program, computesKeys(ast.NativeRep()), readsTime(ast.NativeRep(), variables)}, nil
}

// newEnvironment returns the environment of expressions over variables.
func newEnvironment(variables Variables) (*celgo.Env, error) {
	options := []celgo.EnvOption{
		// No extension libraries and no macros that make lists: some of them create large values
		// from small ones (lists.range, replace, map), and the cost limit misses that if types are
		// only known at run time.
		celgo.ParserRecursionLimit(maxNesting), celgo.ParserExpressionSizeLimit(maxExpression),
		celgo.CrossTypeNumericComparisons(true), celgo.OptionalTypes(),
		celgo.ClearMacros(),
		celgo.Macros(celgo.HasMacro, celgo.AllMacro, celgo.ExistsMacro, celgo.ReceiverMacro(operators.ExistsOne, 2, existsOne)),
	}
	for name, kind := range variables {
		options = append(options,
			celgo.Variable(name, map[Kind]*celgo.Type{Any: celgo.DynType, Text: celgo.StringType, Time: celgo.TimestampType}[kind]))
	}
	return celgo.NewEnv(options...)
}

// existsOne is the library's macro, except that a call replaces the constant loop condition: the meter counts
// calls.
func existsOne(eh celgo.MacroExprFactory, target celast.Expr, args []celast.Expr) (celast.Expr, *common.Error) {
	made, err := parser.MakeExistsOne(eh, target, args)
	if err != nil {
		return nil, err
	}
	loop := made.AsComprehension()
	return eh.NewComprehension(loop.IterRange(), loop.IterVar(), loop.AccuVar(), loop.AccuInit(),
		eh.NewCall(operators.NotStrictlyFalse, loop.LoopCondition()), loop.LoopStep(), loop.Result()), nil
}

// refusal returns the first issue with its position. The library's own text repeats the
// expression for each issue.
func refusal(issues *celgo.Issues) error {
	if issues == nil || len(issues.Errors()) == 0 {
		return nil
	}
	first := issues.Errors()[0]
	text := oneLine(first.Message)
	if first.Location.Line() < 1 { // a parser limit
		return fmt.Errorf("the expression is not valid CEL: %s", text)
	}
	return fmt.Errorf("the expression is not valid CEL: line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1, text)
}

// oneLine cuts a message of the library to [maxMessage] and one line: some quote the
// expression, or the values that it was evaluated for.
func oneLine(message string) string {
	message = strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
	return strings.Join(strings.FieldsFunc(message, func(r rune) bool { return !unicode.IsPrint(r) }), " ")
}

// ErrLimit says that an evaluation exceeds a limit. Its result is unknown.
var ErrLimit = errors.New("the expression takes more than it may")

// isLimit reports whether an error of the library is about a limit.
func isLimit(err error) bool {
	var cancelled interpreter.EvalCancelledError
	return errors.As(err, &cancelled) || errors.Is(err, ErrLimit)
}

// Match reports whether the expression is true for values, which has a value for every variable. It calls
// step, unless that is nil, between the steps of its work. It returns an error if a field is missing, if
// step fails, or, as [ErrLimit], if the values, the cost or the time exceed their limits. With an error
// there is no match.
func (e *Expression) Match(step Step, values map[string]any) (matched bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			matched, err = false, fmt.Errorf("the expression failed: %s", oneLine(fmt.Sprint(r)))
		}
	}()
	if step != nil {
		if err := step(); err != nil {
			return false, err
		}
	}
	m := &meter{resumed: time.Now(), step: step}
	all, known := map[string]any{meterName: m}, facts{computed: e.computed}
	for name, value := range values {
		if all[name], err = known.native(value); err != nil {
			return false, err
		}
	}
	result, _, err := e.program.Eval(all)
	switch {
	case m.err != nil:
		return false, m.err
	case isLimit(err):
		return false, fmt.Errorf("%s: %w", oneLine(err.Error()), ErrLimit)
	case err != nil:
		return false, errors.New(oneLine(err.Error()))
	}
	return isTrue(result)
}

func isTrue(result ref.Val) (bool, error) {
	value, ok := result.(types.Bool)
	if !ok {
		return false, errors.New("the expression is not a bool")
	}
	return bool(value), nil
}
