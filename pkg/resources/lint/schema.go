package lint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// ReadSound reads resources from files, directories or standard input, and returns the number of
// objects of other kinds. Objects that need a namespace and name none get the given one. It refuses
// resources that an API server would refuse by the CRDs, and an object that is declared twice.
func ReadSound(ctx context.Context, namespace string, paths []string, stdin io.Reader) (objects resource.Objects, others int, err error) {
	files, err := configdir.Read(ctx, namespace, paths, stdin)
	if err != nil {
		return resource.Objects{}, 0, err
	}
	c, err := declared(ctx, files.Declarations)
	if err != nil {
		return resource.Objects{}, 0, err
	}
	var wrong []error
	for _, f := range c.report.Findings {
		if f.Severity == resource.Error {
			wrong = append(wrong, fmt.Errorf("%s:%d: %s", f.File, f.Line, f.Remedied()))
		}
	}
	if len(wrong) > 0 {
		return resource.Objects{}, 0, errors.Join(wrong...)
	}
	return files.Objects, c.report.Ignored, nil
}

// validated returns the errors of d's content by its schema.
func validated(ctx context.Context, schemas *schema.Set, d configdir.Declaration) ([]resource.Finding, error) {
	if d.JSON == nil {
		if d.Err != nil {
			return []resource.Finding{unreadable(d.Err)}, nil //nolint:nilerr // it is the finding
		}
		return nil, nil
	}
	kind, err := schemas.Of(d.Source.Kind)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(d.JSON, &object); err != nil {
		return []resource.Finding{unreadable(err)}, nil
	}
	unknown, errs := kind.Validate(ctx, object)
	found := unknownFields(kind, unknown, d.Err)
	for _, e := range errs {
		fault := schema.FaultOf(e)
		found = append(found, resource.Finding{Field: fault.Field, ID: string(policy.ReasonInvalid), Message: fault.Message, Fix: fault.Fix})
	}
	if d.Err != nil && (len(found) == 0 || givenTwice.MatchString(d.Err.Error())) {
		found = append(found, unreadable(d.Err))
	}
	return found, nil
}

// givenTwice matches the decoder's message about a duplicate key, which a schema cannot see.
var givenTwice = regexp.MustCompile(`key "([^"]*)" already set in map`)

var unknownInMetadata = regexp.MustCompile(`unknown field "(metadata\.[^"]+)"`)

// unknownFields returns findings for the fields that the schema does not have. decoding is
// the error of the strict decoder, which knows the fields of metadata.
func unknownFields(kind *schema.Schema, unknown []string, decoding error) (found []resource.Finding) {
	if decoding != nil {
		for _, match := range unknownInMetadata.FindAllStringSubmatch(decoding.Error(), -1) {
			unknown = append(unknown, match[1])
		}
	}
	for _, path := range unknown {
		message, fix := "there is no such field", "remove it"
		if lastName(path) == "namespace" && strings.HasPrefix(path, "spec.") && !kind.Namespaced {
			message = "references have no namespace: what cluster resources name is in the one of --cluster-resource-namespace, by default " +
				"Landwaiter's own"
			fix = "remove it, and keep what it names in that namespace"
		} else if near, ok := policy.Nearest(lastName(path), kind.Siblings(path)); ok {
			fix = "did you mean " + near + "?"
		}
		found = append(found, resource.Finding{Field: path, ID: string(policy.ReasonInvalid), Message: message, Fix: fix})
	}
	return found
}

func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }
