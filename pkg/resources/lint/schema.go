package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// CheckIn is [Check] with a namespace for objects that need one and name none, as kubectl apply does
// it.
func CheckIn(ctx context.Context, namespace string, paths []string, stdin io.Reader, problems func(resource.Objects) []resource.Problem) (Report, error) {
	files, err := configdir.ReadIn(ctx, namespace, paths, stdin)
	if err != nil {
		return Report{}, err
	}
	return check(ctx, files, paths, problems, false)
}

// ReadSound reads resources from files, directories or standard input, and returns the number of
// objects of other kinds. Objects that need a namespace and name none get the given one. It refuses
// resources that an API server would refuse by the CRDs, and an object that is declared twice.
func ReadSound(ctx context.Context, namespace string, paths []string, stdin io.Reader) (objects resource.Objects, others int, err error) {
	files, err := configdir.ReadIn(ctx, namespace, paths, stdin)
	if err != nil {
		return resource.Objects{}, 0, err
	}
	for _, d := range files.Declarations {
		switch {
		case d.Ignored:
			others++
		case d.Err != nil && d.JSON == nil:
			f := unreadable(d.Err)
			return resource.Objects{}, 0, fmt.Errorf("%s:%d: %s", d.File, cmp.Or(f.Line, d.Line), f.Remedied())
		}
	}
	findings, err := bySchema(ctx, files.Declarations)
	if err != nil {
		return resource.Objects{}, 0, err
	}
	var wrong []error
	for _, f := range findings {
		wrong = append(wrong, fmt.Errorf("%s:%d: %s", f.File, f.Line, f.Remedied()))
	}
	for _, p := range files.Problems { // such as an object that is declared twice
		if !p.IsIgnored() && len(wrong) == 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s", p.Source, p.Message))
		}
	}
	if len(wrong) > 0 {
		return resource.Objects{}, 0, errors.Join(wrong...)
	}
	return files.Objects, others, nil
}

// bySchema returns the errors with which an API server would refuse declarations by the CRDs of
// the resources.
func bySchema(ctx context.Context, declarations []configdir.Declaration) ([]resource.Finding, error) {
	schemas := schema.Embedded()
	c := checker{wrong: map[policy.ObjectRef]bool{}}
	for _, d := range declarations {
		if d.Ignored {
			continue
		}
		found, err := validated(ctx, schemas, d)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			c.add(d, f)
		}
	}
	return c.report.Findings, nil
}

// validated returns the errors of d's content by its schema.
func validated(ctx context.Context, schemas *schema.Set, d configdir.Declaration) ([]resource.Finding, error) {
	if d.JSON == nil {
		if d.Err != nil {
			return []resource.Finding{nearKind(unreadable(d.Err))}, nil //nolint:nilerr // it is the finding
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
		found = append(found, describe(e))
	}
	found = mistakenType(found, object)
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
			message = "references have no namespace: what cluster resources name is in the one of --cluster-resource-namespace, by default Landwaiter's own"
			fix = "remove it, and keep what it names in that namespace"
		} else if near, ok := policy.Nearest(lastName(path), kind.Siblings(path)); ok {
			fix = "did you mean " + near + "?"
		}
		found = append(found, resource.Finding{Field: path, ID: string(policy.ReasonInvalid), Message: message, Fix: fix})
	}
	return found
}

// unknownKind matches the message about a kind that landwaiter.dev does not have.
var unknownKind = regexp.MustCompile(`has no kind (\w+)$`)

// nearKind names the intended kind instead of all existing ones.
func nearKind(f resource.Finding) resource.Finding {
	if found := unknownKind.FindStringSubmatch(f.Message); found != nil {
		if near, ok := policy.Nearest(found[1], strings.Split(strings.TrimPrefix(f.Fix, "use one of "), ", ")); ok {
			f.Fix = "did you mean " + near + "?"
		}
	}
	return f
}

// needsField matches the rules that require a field for each type of Verifier.
var needsField = regexp.MustCompile(`^spec\.type (\w+) needs spec\.(\w+), and no other type may have it$`)

// mistakenType returns one finding instead of two if the field of another type is set: the
// object breaks the rules of both.
func mistakenType(found []resource.Finding, object map[string]any) []resource.Finding {
	spec, _ := object["spec"].(map[string]any)
	var own, other []string
	for _, f := range found {
		switch rule := needsField.FindStringSubmatch(f.Message); {
		case rule == nil:
		case rule[1] == spec["type"]:
			own = rule
		case other != nil:
			return found
		default:
			other = rule
		}
	}
	if own == nil || other == nil {
		return found
	}
	found = slices.DeleteFunc(found, func(f resource.Finding) bool { return needsField.MatchString(f.Message) })
	return append(found, resource.Finding{Field: "spec", ID: string(policy.ReasonInvalid), Message: fmt.Sprintf("its type is %s, but it has %s and not %s", own[1], other[2], own[2]),
		Fix: fmt.Sprintf("write type: %s, or %s instead of %s", other[1], own[2], other[2])})
}

func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// tooFew is the API server's message about a list that must not be empty.
const tooFew = "should have at least 1 items"

// describe turns an API server's error into a finding.
func describe(e *field.Error) resource.Finding {
	fault := schema.FaultOf(e)
	f := resource.Finding{Field: fault.Field, ID: string(policy.ReasonInvalid), Message: fault.Message, Fix: fault.Fix}
	if f.Message == tooFew {
		f.Message = "must have at least 1 entry"
	}
	return f
}
