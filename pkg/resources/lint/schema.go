package lint

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// validated returns what is wrong with the content of d by its schema.
func validated(ctx context.Context, schemas *schema.Set, d configdir.Declaration) ([]Finding, error) {
	if d.JSON == nil {
		if d.Err != nil {
			return []Finding{unreadable(d.Err)}, nil //nolint:nilerr // it is the finding
		}
		return nil, nil
	}
	kind, err := schemas.Of(d.Source.Kind)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(d.JSON, &object); err != nil {
		return []Finding{unreadable(err)}, nil
	}
	found := unknownFields(kind, object, d.Err)
	for _, e := range kind.Validate(ctx, object) {
		found = append(found, describe(e))
	}
	if d.Err != nil && (len(found) == 0 || givenTwice.MatchString(d.Err.Error())) {
		found = append(found, unreadable(d.Err))
	}
	return found, nil
}

// givenTwice matches what decoders say of a key that a schema cannot see twice.
var givenTwice = regexp.MustCompile(`key "([^"]*)" already set in map`)

var unknownInMetadata = regexp.MustCompile(`unknown field "(metadata\.[^"]+)"`)

// unknownFields returns the fields of object that the schema does not have. decoding is
// the error of the strict decoder, which knows the fields of metadata.
func unknownFields(kind *schema.Schema, object map[string]any, decoding error) (found []Finding) {
	unknown := kind.Unknown(object)
	if decoding != nil {
		for _, match := range unknownInMetadata.FindAllStringSubmatch(decoding.Error(), -1) {
			unknown = append(unknown, match[1])
		}
	}
	for _, path := range unknown {
		message, fix := "there is no such field", "remove it"
		if was, ok := formerly(object, path); ok {
			fix = was
		} else if parent, name := parentOf(object, path); parent != nil && name == "namespace" && strings.HasPrefix(path, "spec.") && !kind.Namespaced {
			message, fix = gone, goneFix
		} else if near, ok := Nearest(lastName(path), kind.Siblings(path)); ok {
			fix = "did you mean " + near + "?"
		}
		found = append(found, Finding{Field: path, Reason: policy.ReasonInvalid, Message: message, Fix: fix})
	}
	return found
}

func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// describe puts an API server's error into a finding. What was renamed is named.
func describe(e *field.Error) Finding {
	fault := schema.FaultOf(e)
	f := Finding{Field: fault.Field, Reason: policy.ReasonInvalid, Message: fault.Message, Fix: fault.Fix}
	if now, ok := revalued()[fmt.Sprintf("%s: %v", e.Field, e.BadValue)]; ok && e.Type == field.ErrorTypeNotSupported {
		f.Fix = "it is called " + now + " now"
	}
	return f
}
