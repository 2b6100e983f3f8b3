package lint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/config/crd"
	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// schemas validates objects as an API server does. It prepares the schema of a kind when
// an object of the kind comes.
type schemas struct {
	scheme *runtime.Scheme
	texts  map[string][]byte // definitions by kind
	ready  map[string]*schema
}

// schema is one definition as an API server works with it.
type schema struct {
	namespaced bool
	structural *structural.Structural
	validator  schemavalidation.SchemaValidator
	rules      *cel.Validator
}

func newSchemas() (*schemas, error) {
	s := &schemas{scheme: runtime.NewScheme(), texts: map[string][]byte{}, ready: map[string]*schema{}}
	install.Install(s.scheme)
	names, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := crd.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		kind := kindOf.FindSubmatch(text)
		if kind == nil {
			return nil, fmt.Errorf("CRD %s names no kind", name)
		}
		s.texts[string(kind[1])] = text
	}
	return s, nil
}

// kindOf matches spec.names.kind in a definition as controller-gen writes it.
var kindOf = regexp.MustCompile(`(?m)^    kind: (\w+)$`)

// forKind returns the schema of a kind.
func (s *schemas) forKind(kind string) (*schema, error) {
	if ready, ok := s.ready[kind]; ok {
		return ready, nil
	}
	made, err := s.make(kind)
	if err != nil {
		return nil, fmt.Errorf("CRD of kind %s: %w", kind, err)
	}
	s.ready[kind] = made
	return made, nil
}

func (s *schemas) make(kind string) (*schema, error) {
	var external apiextensionsv1.CustomResourceDefinition
	text, ok := s.texts[kind]
	if !ok {
		return nil, errors.New("there is none")
	}
	if err := yaml.UnmarshalStrict(text, &external); err != nil {
		return nil, err
	}
	s.scheme.Default(&external)
	var definition apiextensions.CustomResourceDefinition
	if err := s.scheme.Convert(&external, &definition, nil); err != nil {
		return nil, err
	}
	properties, err := apiextensions.GetSchemaForVersion(&definition, external.Spec.Versions[0].Name)
	if err != nil {
		return nil, err
	}
	made := &schema{namespaced: external.Spec.Scope == apiextensionsv1.NamespaceScoped}
	if made.structural, err = structural.NewStructural(properties.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if made.validator, _, err = schemavalidation.NewSchemaValidator(properties.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	made.rules = cel.NewValidator(made.structural, true, celconfig.PerCallLimit)
	return made, nil
}

// check returns what is wrong with the content of d.
func (s *schemas) check(ctx context.Context, d configdir.Declaration) ([]Finding, error) {
	if d.JSON == nil {
		if d.Err != nil {
			return []Finding{unreadable(d.Err)}, nil //nolint:nilerr // it is the finding
		}
		return nil, nil
	}
	kind, err := s.forKind(d.Source.Kind)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(d.JSON, &object); err != nil {
		return []Finding{unreadable(err)}, nil
	}
	found := kind.unknownFields(object, d.Err)
	for _, e := range kind.validate(ctx, object) {
		found = append(found, describe(e))
	}
	if d.Err != nil && (len(found) == 0 || givenTwice.MatchString(d.Err.Error())) {
		found = append(found, unreadable(d.Err))
	}
	return found, nil
}

// validate runs what an API server runs on create, in its order.
func (s *schema) validate(ctx context.Context, object map[string]any) field.ErrorList {
	pruning.Prune(object, s.structural, true)
	defaulting.Default(object, s.structural)
	errs := validation.ValidateObjectMetaAccessor(&unstructured.Unstructured{Object: object}, s.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, object, s.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if s.rules == nil || slices.ContainsFunc(errs, hidesRules) {
		return errs
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// hidesRules reports whether an API server does not evaluate rules after an error.
func hidesRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// givenTwice matches what decoders say of a key that a schema cannot see twice.
var givenTwice = regexp.MustCompile(`key "([^"]*)" already set in map`)

var unknownInMetadata = regexp.MustCompile(`unknown field "(metadata\.[^"]+)"`)

// unknownFields returns the fields of object that the schema does not have. decoding is
// the error of the strict decoder, which knows the fields of metadata.
func (s *schema) unknownFields(object map[string]any, decoding error) (found []Finding) {
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(object), s.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if decoding != nil {
		for _, match := range unknownInMetadata.FindAllStringSubmatch(decoding.Error(), -1) {
			unknown = append(unknown, match[1])
		}
	}
	for _, path := range unknown {
		fix := "remove it"
		if now, ok := renamed()[path]; ok {
			fix = "it is called " + now + " now"
		} else if near, ok := Nearest(lastName(path), s.siblings(path)); ok {
			fix = "did you mean " + near + "?"
		}
		found = append(found, Finding{Field: path, Reason: policy.ReasonInvalid, Message: "there is no such field", Fix: fix})
	}
	return found
}

// siblings returns the names of the fields that the schema has where path ends.
func (s *schema) siblings(path string) []string {
	at := s.structural
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, name := range steps[:max(0, len(steps)-1)] {
		next, ok := at.Properties[name]
		switch {
		case ok:
			at = &next
		case at.Items != nil:
			at = at.Items
		default:
			return nil
		}
	}
	var names []string
	for name := range at.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// describe puts an API server's error into a finding. It leaves the value out: it may be
// long, and the file has it.
func describe(e *field.Error) Finding {
	f := Finding{Field: e.Field, Reason: policy.ReasonInvalid, Message: strings.TrimPrefix(e.Detail, e.Field+" in body ")}
	if f.Field == "<nil>" {
		f.Field = ""
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		f.Message, f.Fix = "it is missing", "add it"
	case field.ErrorTypeNotSupported:
		f.Message, f.Fix = fmt.Sprintf("%q is not supported", fmt.Sprint(e.BadValue)), "use one of "+strings.TrimPrefix(e.Detail, "supported values: ")
		if now, ok := renamed()[fmt.Sprintf("%s: %v", e.Field, e.BadValue)]; ok {
			f.Fix = "it is called " + now + " now"
		}
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
