package cel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Fields lists the fields that objects can have. The zero value lists none.
type Fields struct {
	// Of has the names of all fields of objects, by the path of the object: "signer" is the variable, "signer.claims"
	// one of its fields, and "findings[]" each entry of a list. An object without an entry can have any field.
	Of map[string][]string
	// Nearest returns the most likely intended name for a misspelt one.
	Nearest func(misspelt string, names []string) (string, bool)
}

// check refuses an expression that reads or tests a field that its object never has: with has it would always be
// false, and without it an error that only shows when an image is judged.
func (f Fields) check(checked *celast.AST) error {
	reader := fieldReader{fields: f, source: checked.SourceInfo()}
	scope := map[string]string{}
	for at := range f.Of {
		name, _, _ := strings.Cut(strings.TrimSuffix(at, entry), ".")
		scope[name] = name
	}
	reader.read(checked.Expr(), scope)
	return reader.refused
}

// entry is the suffix of the path of a list's entries.
const entry = "[]"

// fieldReader tracks objects with known fields through an expression.
type fieldReader struct {
	fields  Fields
	source  *celast.SourceInfo
	refused error // the first error
}

// read returns the path of an expression's value, "" if its fields are not known. Scope has the paths of
// variables.
func (r *fieldReader) read(e celast.Expr, scope map[string]string) string {
	switch e.Kind() {
	case celast.IdentKind:
		return scope[e.AsIdent()]
	case celast.SelectKind:
		return r.field(e, r.read(e.AsSelect().Operand(), scope), e.AsSelect().FieldName())
	case celast.CallKind:
		return r.call(e, scope)
	case celast.ComprehensionKind:
		loop := e.AsComprehension()
		over := r.read(loop.IterRange(), scope)
		r.read(loop.AccuInit(), scope)
		outer, inner := maps.Clone(scope), maps.Clone(scope)
		inner[loop.IterVar()] = r.entryOf(over)
		inner[loop.AccuVar()], outer[loop.AccuVar()] = "", ""
		r.read(loop.LoopCondition(), inner)
		r.read(loop.LoopStep(), inner)
		r.read(loop.Result(), outer)
	case celast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.read(element, scope)
		}
	case celast.LiteralKind, celast.MapKind, celast.StructKind, celast.UnspecifiedExprKind: // the last three are refused
	}
	return ""
}

// call returns the path of a call's result.
func (r *fieldReader) call(e celast.Expr, scope map[string]string) string {
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]celast.Expr{call.Target()}, args...)
	}
	places := make([]string, len(args))
	for i, arg := range args {
		places[i] = r.read(arg, scope)
	}
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		if key := args[len(args)-1]; key.Kind() == celast.LiteralKind {
			if name, ok := key.AsLiteral().(types.String); ok {
				return r.field(e, places[0], string(name))
			}
		}
		return r.entryOf(places[0])
	case "first", "last":
		return r.entryOf(places[0])
	case "optional.of", "optional.ofNonZeroValue", "value", "or", "orValue":
		return places[0]
	}
	return ""
}

// entryOf returns the path of a list's entries.
func (r *fieldReader) entryOf(list string) string {
	if _, known := r.fields.Of[list+entry]; known {
		return list + entry
	}
	return ""
}

// field returns the path of a field, and refuses a field that the object never has.
func (r *fieldReader) field(e celast.Expr, object, name string) string {
	if object == "" {
		return ""
	}
	fields, known := r.fields.Of[object]
	switch {
	case r.entryOf(object) != "":
		r.refuse(e, fmt.Sprintf("%s is a list, and has no field %s; ask for one of its entries, as in %s.exists(x, x.%s == …)", object, name,
			object, r.fields.Of[object+entry][0]))
	case known && !slices.Contains(fields, name):
		fix := "its fields are " + strings.Join(fields, ", ")
		if near, ok := r.fields.Nearest(name, fields); ok {
			fix = "did you mean " + near + "?"
		}
		if list, ok := strings.CutSuffix(object, entry); ok {
			object = "an entry of " + list
		}
		r.refuse(e, fmt.Sprintf("%s has no field %.64s; %s", object, name, fix))
	}
	if _, known := r.fields.Of[object+"."+name]; known {
		return object + "." + name
	}
	return ""
}

func (r *fieldReader) refuse(e celast.Expr, why string) {
	if r.refused != nil {
		return
	}
	if at := r.source.GetStartLocation(e.ID()); at.Line() > 0 {
		why = fmt.Sprintf("line %d, column %d: %s", at.Line(), at.Column()+1, why)
	}
	r.refused = errors.New(oneLine("the expression is not valid: " + why))
}
