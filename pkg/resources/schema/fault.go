package schema

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fault is an error of [Schema.Validate] in words.
type Fault struct {
	// Field is its path, such as spec.rules[0].images; empty for the whole object.
	Field   string
	Message string
	// Fix says what to do; empty if Message does.
	Fix string
}

// String returns the fault as one line.
func (f Fault) String() string {
	text := f.Message
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}

// FaultOf puts an API server's error into words. It leaves most values out: they may be long,
// and the object has them.
func FaultOf(e *field.Error) Fault {
	f := Fault{Field: e.Field, Message: strings.TrimPrefix(e.Detail, e.Field+" in body ")}
	if f.Field == "<nil>" {
		f.Field = ""
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		f.Message, f.Fix = "it is missing", "add it"
	case field.ErrorTypeNotSupported:
		f.Message, f.Fix = fmt.Sprintf("%q is not supported", fmt.Sprint(e.BadValue)), "use one of "+strings.TrimPrefix(e.Detail, "supported values: ")
	case field.ErrorTypeDuplicate:
		f.Message, f.Fix = "it is given twice", "remove one"
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		f.Fix = "shorten it"
	case field.ErrorTypeTypeInvalid:
		f.Message, f.Fix = typeMismatch(f.Message)
	case field.ErrorTypeInvalid, field.ErrorTypeNotFound, field.ErrorTypeForbidden, field.ErrorTypeInternal:
	}
	if f.Field == "spec.until" && strings.HasPrefix(f.Message, "should match ") {
		f.Message, f.Fix = fmt.Sprintf("%.40q is not a time in RFC 3339", fmt.Sprint(e.BadValue)), "write a time such as 2026-12-31T18:00:00Z"
	}
	if f.Message == "" {
		f.Message = e.ErrorBody()
	}
	return f
}

// wrongType matches what an API server says of a value of another type than the schema's.
var wrongType = regexp.MustCompile(`^must be of type (\w+): "(\w+)"$`)

// typeMismatch says which type a value has and which it must have. YAML's words for true
// and false, and numbers, are text only in quotes.
func typeMismatch(message string) (problem, fix string) {
	found := wrongType.FindStringSubmatch(message)
	if found == nil {
		return message, ""
	}
	want, have := found[1], found[2]
	switch {
	case want == "string" && have != "object" && have != "array":
		fix = "put it into quotes"
	case have == "string" && (want == "integer" || want == "number"):
		fix = "write a number, without quotes"
	case have == "string" && want == "boolean":
		fix = "write true or false, without quotes"
	}
	return fmt.Sprintf("it is of type %s and must be of type %s", have, want), fix
}
