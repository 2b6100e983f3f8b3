package cel

import (
	"encoding/json"
	"fmt"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// errTime ends an evaluation that takes long although its cost is low.
var errTime = fmt.Errorf("the evaluation took longer than %s: %w", maxTime, ErrLimit)

// Step yields to others. It fails if the evaluation must end.
type Step func() error

// meter measures one evaluation.
type meter struct {
	step    Step // may be nil
	calls   int
	spent   time.Duration
	resumed time.Time
	err     error // why the evaluation ended early
}

// meterName is the variable of the meter. No expression can name it.
const meterName = "#meter"

// count counts a call. To end an evaluation, it panics as the library does.
func (m *meter) count() {
	if m.calls++; m.calls%stepEvery != 0 {
		return
	}
	m.spent += time.Since(m.resumed)
	if m.step != nil {
		m.err = m.step()
	}
	if m.err == nil && m.spent > maxTime {
		m.err = errTime
	}
	m.resumed = time.Now()
	if m.err != nil {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: m.err.Error()})
	}
}

// metered is a call that counts.
type metered struct{ interpreter.InterpretableCall }

// Exec counts the call and makes it.
func (c metered) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if value, ok := frame.ResolveName(meterName); ok {
		if m, ok := value.(*meter); ok {
			m.count()
		}
	}
	return c.InterpretableCall.Exec(frame)
}

func (c metered) Eval(vars interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(vars)) }

// inTexts is the overload of in with a list of constant texts.
const inTexts = "in_texts"

// plan makes each call count, and does not convert long texts into timestamps. A list of constant texts becomes a
// set: the library's own optimization does not charge for looking up a long text.
func plan(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	if call.Function() == operators.In && len(call.Args()) == 2 {
		if set := textsOf(call.Args()[1]); set != nil {
			call = interpreter.NewCall(call.ID(), call.Function(), inTexts, call.Args()[:1], func(values ...ref.Val) ref.Val {
				text, ok := values[0].(types.String)
				return types.Bool(ok && set[text])
			})
		}
	}
	if call.Function() == overloads.TypeConvertTimestamp && len(call.Args()) == 1 {
		call = interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), timestampOf)
	}
	return metered{call}, nil
}

// timestampOf converts a value into a timestamp. The library's error quotes the whole text, which takes ten
// times as long as reading it.
func timestampOf(values ...ref.Val) ref.Val {
	if text, ok := values[0].(types.String); ok && len(text) > maxTimestamp {
		return types.NewErr("a text of %d bytes is no timestamp", len(text))
	}
	return values[0].ConvertToType(types.TimestampType)
}

// textsOf returns the elements of a list of constant texts, nil for any other value.
func textsOf(i interpreter.InterpretableV2) map[types.String]bool {
	list, ok := i.(interpreter.InterpretableConstructor)
	if !ok || list.Type() != types.ListType {
		return nil
	}
	set := map[types.String]bool{}
	for _, element := range list.InitVals() {
		constant, ok := element.(interpreter.InterpretableConst)
		if !ok {
			return nil
		}
		text, ok := constant.Value().(types.String)
		if !ok {
			return nil
		}
		set[text] = true
	}
	return set
}

// costs charges each call for all the data that it may read.
type costs struct{}

// flat reports whether the time of a function does not grow with its arguments. All other functions,
// including new functions of later library versions, are charged by the size of all arguments.
func flat(function string) bool {
	switch function {
	case operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
		"__not_strictly_false__",
		operators.OptSelect, "dyn", "type", "optional.of", "optional.none", "optional.ofNonZeroValue", "hasValue", "value", "or", "orValue",
		"first", "last":
		return true
	}
	return false
}

// CallCost returns the cost of a call.
func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	switch {
	case flat(function) || len(args) == 0:
	case function == operators.Equals || function == operators.NotEquals:
		cost += smaller(args)
	case function == "size":
		if _, ok := args[0].(traits.Lister); !ok {
			if _, ok := args[0].(traits.Mapper); !ok {
				cost += sizeOf(args[0], maxCost)
			}
		}
	case function == operators.Index || function == operators.OptIndex:
		cost += sizeOf(args[len(args)-1], maxCost)
	case function == operators.In && len(args) == 2:
		if _, ok := args[1].(traits.Mapper); ok {
			args = args[:1] // it looks up a key
		}
		fallthrough
	default:
		if _, ok := args[0].(types.Timestamp); ok && len(args) == 2 {
			if _, ok := args[1].(types.String); ok {
				cost += zoneCost
			}
		}
		for _, arg := range args {
			cost += sizeOf(arg, maxCost)
		}
	}
	return &cost
}

// smaller returns the size of the smallest value, without reading the larger ones further.
func smaller(values []ref.Val) uint64 {
	for most := uint64(2); ; most *= 4 {
		for _, value := range values {
			if size := sizeOf(value, most); size < most || most > maxCost {
				return size
			}
		}
	}
}

// sizeOf returns the size of a value with all its content, in CEL's units. It stops counting at most.
func sizeOf(value any, most uint64) uint64 {
	size := uint64(1)
	add := func(inner any) bool {
		if size < most {
			size += sizeOf(inner, most-size)
		}
		return size < most
	}
	switch value := value.(type) {
	case string:
		size += uint64(len(value)) / bytesPerCost
	case types.String:
		size += uint64(len(value)) / bytesPerCost
	case types.Bytes:
		size += uint64(len(value)) / bytesPerCost
	case []any:
		for _, element := range value {
			if !add(element) {
				break
			}
		}
	case map[string]any:
		for name, element := range value {
			if !add(name) || !add(element) {
				break
			}
		}
	case *types.Optional:
		if value.HasValue() {
			add(value.GetValue())
		}
	case traits.Mapper, traits.Lister:
		switch native := value.(ref.Val).Value().(type) {
		case []any, map[string]any:
			return sizeOf(native, most)
		}
		for it := value.(traits.Iterable).Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if !add(key) {
				break
			}
			if m, ok := value.(traits.Mapper); ok && !add(m.Get(key)) {
				break
			}
		}
	}
	return min(size, most)
}

// options make a program count, charge and stop.
func costOptions() []celgo.ProgramOption {
	return []celgo.ProgramOption{celgo.CustomDecoratorV2(plan), celgo.CostTracking(costs{}), celgo.CostLimit(maxCost)}
}

// facts counts the values of one evaluation while it converts them.
type facts struct {
	computed bool // the expression computes keys
	size     int
}

// add counts one value with the given bytes of text.
func (f *facts) add(bytes int) error {
	if f.computed && bytes > maxKey {
		return fmt.Errorf("a text of %d bytes is too long for an expression with computed keys, the limit is %d; use constant keys, as in "+
			"predicate.a: %w", bytes, maxKey, ErrLimit)
	}
	if f.size += 1 + bytes/bytesPerCost; f.size > maxValues {
		return fmt.Errorf("the values are too large for an expression: more than %d, where each value and each %d bytes of text count as one: %w",
			maxValues, bytesPerCost, ErrLimit)
	}
	return nil
}

// native converts JSON numbers to CEL's: integers to int, others to double.
func (f *facts) native(value any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(value))
		for name, inner := range value {
			if err := f.add(len(name)); err != nil {
				return nil, err
			}
			converted, err := f.native(inner)
			if err != nil {
				return nil, err
			}
			made[name] = converted
		}
		return made, f.add(0)
	case []any:
		made := make([]any, len(value))
		for i, inner := range value {
			converted, err := f.native(inner)
			if err != nil {
				return nil, err
			}
			made[i] = converted
		}
		return made, f.add(0)
	case string:
		return value, f.add(len(value))
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole, f.add(0)
		}
		if float, err := value.Float64(); err == nil {
			return float, f.add(0)
		}
		return value.String(), f.add(len(value))
	}
	return value, f.add(0)
}
