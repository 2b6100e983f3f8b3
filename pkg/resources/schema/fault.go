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
	case field.ErrorTypeForbidden:
		if f.Field == "metadata.namespace" {
			f.Message, f.Fix = "this kind is cluster-scoped and has no namespace", "remove it"
		}
	case field.ErrorTypeInvalid, field.ErrorTypeNotFound, field.ErrorTypeInternal:
	}
	if tooFew.MatchString(f.Message) {
		f.Fix = atLeast(f.Field)
	}
	if f.Field == "spec.until" && strings.HasPrefix(f.Message, "should match ") {
		f.Message, f.Fix = fmt.Sprintf("%.40q is not a time in RFC 3339", fmt.Sprint(e.BadValue)), "write a time such as 2026-12-31T18:00:00Z"
	}
	if f.Message == "" {
		f.Message = e.ErrorBody()
	}
	return f
}

var (
	// tooFew matches what an API server says of a list that is too short.
	tooFew = regexp.MustCompile(`^should have at least \d+ items$`)
	// requireOfRule matches the field that lists what a rule requires.
	requireOfRule = regexp.MustCompile(`^spec\.rules\[\d+\]\.require$`)
)

// atLeast says what to do about a list that is too short. A rule that requires nothing may be
// meant to check nothing.
func atLeast(path string) string {
	if requireOfRule.MatchString(path) {
		return "add one, or for images that need no check write action: Allow"
	}
	return "add one"
}

// wrongType matches what an API server says of a value of another type than the schema's.
var wrongType = regexp.MustCompile(`^must be of type (\w+): "(\w+)"$`)

// described has the words for the types of a schema.
func described(of string) string {
	switch of {
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "string":
		return "text"
	case "boolean":
		return "true or false"
	case "integer", "number":
		return "a number"
	}
	return "empty"
}

// typeMismatch says which type a value has and which it must have. YAML's words for true
// and false, and numbers, are text only in quotes.
func typeMismatch(message string) (problem, fix string) {
	found := wrongType.FindStringSubmatch(message)
	if found == nil {
		return message, ""
	}
	want, have := found[1], found[2]
	switch {
	case have == "null":
		fix = "give it a value, or remove it"
	case want == "array" && have == "object":
		fix = `write "- " before it`
	case want == "array":
		fix = "put it into [ ]"
	case want == "object" && have == "array":
		fix = `write its fields without "- " or [ ]`
	case want == "object":
		fix = "write its fields as name: value"
	case have == "object" || have == "array":
		fix = "write one value"
	case want == "string":
		fix = "put it into quotes"
	case have == "string" && (want == "integer" || want == "number"):
		fix = "write a number, without quotes"
	case have == "string" && want == "boolean":
		fix = "write true or false, without quotes"
	}
	if want == "integer" && have == "number" {
		return "it is a fraction and must be a whole number", "write a whole number"
	}
	return fmt.Sprintf("it is %s and must be %s", described(have), described(want)), fix
}
