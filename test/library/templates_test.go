package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// usesExternalData says which templates no suite can have, because gator has no external_data.
// Their tests are in Go.
var usesExternalData = regexp.MustCompile(`\bexternal_data\(`)

// template is a ConstraintTemplate as its file says.
type template struct {
	folder     string
	kind       string
	parameters object   // their schemas
	modules    []string // the template's own, then its libraries
}

// suite is a gator suite. The module in gator runs the same files with gator.
type suite struct {
	Tests []struct {
		Name, Template, Constraint string
		Invalid                    bool
		Cases                      []struct {
			Name, Object string
			Inventory    []string
			Assertions   []assertion
		}
	}
}

type assertion struct {
	Violations any
	Message    string
}

// holds says whether messages are what an assertion wants: "yes" is at least one.
func (a assertion) holds(messages []string) bool {
	matching := 0
	for _, message := range messages {
		if regexp.MustCompile(a.Message).MatchString(message) {
			matching++
		}
	}
	switch wanted := a.Violations.(type) {
	case float64:
		return matching == int(wanted)
	case bool:
		return wanted == (matching > 0)
	case string:
		return (wanted == "yes") == (matching > 0)
	default:
		return matching > 0
	}
}

// testCase is a case of a suite, ready to be evaluated.
type testCase struct {
	name       string
	first      bool // of the test with the plain sample
	twin       bool // of the case before it
	input      object
	parsed     ast.Value // the input
	inventory  storage.Store
	assertions []assertion
}

func load(t testing.TB, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), name)
}

func readTemplate(t testing.TB, folder string) template {
	t.Helper()
	var read struct {
		Metadata struct{ Name string }
		Spec     struct {
			CRD struct {
				Spec struct {
					Names      struct{ Kind string }
					Validation struct {
						OpenAPIV3Schema struct{ Properties object }
					}
				}
			}
			Targets []struct {
				Target string
				Code   []struct {
					Engine string
					Source struct {
						Version, Rego string
						Libs          []string
					}
				}
			}
		}
	}
	load(t, filepath.Join(root, folder, "template.yaml"), &read)
	kind := read.Spec.CRD.Spec.Names.Kind
	require.Equal(t, strings.ReplaceAll(folder, "-", ""), strings.ToLower(kind), "the kind is the folder's name")
	require.Equal(t, strings.ToLower(kind), read.Metadata.Name)
	require.Len(t, read.Spec.Targets, 1)
	require.Equal(t, "admission.k8s.gatekeeper.sh", read.Spec.Targets[0].Target)
	require.Len(t, read.Spec.Targets[0].Code, 1)
	code := read.Spec.Targets[0].Code[0]
	require.Equal(t, "Rego", code.Engine)
	require.Equal(t, "v1", code.Source.Version)
	return template{folder: folder, kind: kind, parameters: read.Spec.CRD.Spec.Validation.OpenAPIV3Schema.Properties,
		modules: append([]string{code.Source.Rego}, code.Source.Libs...)}
}

func allTemplates(t testing.TB) []template {
	t.Helper()
	paths, err := filepath.Glob(root + "/*/template.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var found []template
	for _, name := range paths {
		found = append(found, readTemplate(t, filepath.Base(filepath.Dir(name))))
	}
	return found
}

// templates are those that must have a suite.
func templates(t testing.TB) []template {
	t.Helper()
	return slices.DeleteFunc(allTemplates(t), func(s template) bool { return usesExternalData.MatchString(s.modules[0]) })
}

// parse returns the modules of a template.
func (s template) parse(t testing.TB) []*ast.Module {
	t.Helper()
	var parsed []*ast.Module
	for i, text := range s.modules {
		module, err := ast.ParseModuleWithOpts(fmt.Sprintf("%s-%d.rego", s.folder, i), text, ast.ParserOptions{RegoVersion: ast.RegoV1})
		require.NoError(t, err)
		parsed = append(parsed, module)
	}
	return parsed
}

// evaluator answers reviews with a template.
type evaluator struct {
	compiler *ast.Compiler
	query    ast.Body
}

var (
	evaluators = map[string]evaluator{} // by the template's folder
	suites     = map[string][]testCase{}
	reading    sync.Mutex
)

// evaluator returns that of the template, which all tests share.
func (s template) evaluator(t testing.TB) evaluator {
	t.Helper()
	reading.Lock()
	defer reading.Unlock()
	e, found := evaluators[s.folder]
	if !found {
		var err error
		e, err = newEvaluator(s.parse(t))
		require.NoError(t, err)
		evaluators[s.folder] = e
	}
	return e
}

func newEvaluator(modules []*ast.Module) (evaluator, error) {
	byName := map[string]*ast.Module{}
	for i, module := range modules {
		byName[fmt.Sprint(i)] = module
	}
	compiler := ast.NewCompiler()
	if compiler.Compile(byName); compiler.Failed() {
		return evaluator{}, fmt.Errorf("compile: %w", compiler.Errors)
	}
	query, err := ast.ParseBody(modules[0].Package.Path.String() + ".violation = result")
	return evaluator{compiler: compiler, query: query}, err
}

// messages evaluates a review. That there is no set of violations is an error.
func (e evaluator) messages(ctx context.Context, input ast.Value, store storage.Store) ([]string, error) {
	transaction, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the inventory: %w", err)
	}
	defer store.Abort(ctx, transaction)
	results, err := topdown.NewQuery(e.query).WithCompiler(e.compiler).WithStore(store).WithTransaction(transaction).WithInput(ast.NewTerm(input)).Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	if len(results) != 1 {
		return nil, errors.New("the template says nothing")
	}
	violations, ok := results[0]["result"].Value.(ast.Set)
	if !ok {
		return nil, errors.New("the violations are no set")
	}
	messages := []string{}
	for _, violation := range violations.Slice() {
		message, ok := violation.Get(ast.StringTerm("msg")).Value.(ast.String)
		if !ok {
			return nil, fmt.Errorf("%s has no message", violation)
		}
		messages = append(messages, string(message))
	}
	return messages, nil
}

// cases are the cases of a template's suite, as gator makes reviews of them. All tests share them.
func (s template) cases(t testing.TB) []testCase {
	t.Helper()
	reading.Lock()
	defer reading.Unlock()
	if suites[s.folder] == nil {
		suites[s.folder] = s.readCases(t)
	}
	return suites[s.folder]
}

func (s template) readCases(t testing.TB) []testCase {
	t.Helper()
	var read suite
	folder := filepath.Join(root, s.folder)
	load(t, filepath.Join(folder, "suite.yaml"), &read)
	var found []testCase
	for _, test := range read.Tests {
		require.Equal(t, "template.yaml", test.Template)
		var constraint struct {
			Kind string
			Spec struct{ Parameters object }
		}
		load(t, filepath.Join(folder, test.Constraint), &constraint)
		require.Equal(t, s.kind, constraint.Kind, test.Constraint)
		for _, c := range test.Cases {
			var reviewed object
			load(t, filepath.Join(folder, c.Object), &reviewed)
			made := testCase{name: test.Name + ": " + c.Name, first: test.Constraint == "samples/constraint.yaml", assertions: c.Assertions}
			known := inventory(t, folder, c.Inventory)
			made.ask(object{"review": reviewOf(reviewed), "parameters": orEmpty(constraint.Spec.Parameters)}, known)
			found = append(found, made)
			if live, ok := made.live(t, known); ok {
				found = append(found, live)
			}
		}
	}
	require.NotEmpty(t, found)
	return append(found, beyondGator(s.folder)...)
}

// ask sets what is evaluated.
func (c *testCase) ask(input, known object) {
	c.input, c.parsed, c.inventory = input, ast.MustInterfaceToValue(input), stored(known)
}

// live is a case as Gatekeeper 3.22 and later evaluates it: the namespace is in the review, and
// not in the inventory. gator cannot do that.
func (c testCase) live(t testing.TB, known object) (testCase, bool) {
	t.Helper()
	without, input := copiedObject(t, known), copiedObject(t, c.input)
	review, _ := input["review"].(object)
	cluster, _ := without["cluster"].(object)
	version, _ := cluster["v1"].(object)
	namespaces, _ := version["Namespace"].(object)
	namespace, found := namespaces[fmt.Sprint(review["namespace"])]
	if !found {
		return testCase{}, false
	}
	delete(namespaces, fmt.Sprint(review["namespace"]))
	review["namespaceObject"] = namespace
	c.twin = true
	c.name += ", with its namespace in the review"
	c.ask(input, without)
	return c, true
}

func orEmpty(value object) object {
	if value == nil {
		return object{}
	}
	return value
}

// reviewOf is the review of an object that exists, or that which an AdmissionReview has, as gator
// makes it.
func reviewOf(given object) object {
	if request, ok := given["request"].(object); ok {
		review := object{"operation": "", "oldObject": nil, "namespace": "", "namespaceObject": object{}}
		for key, value := range request {
			review[key] = value
		}
		if review["operation"] == "DELETE" && review["object"] == nil {
			review["object"] = review["oldObject"] // as Gatekeeper does
		}
		return review
	}
	metadata, _ := given["metadata"].(object)
	group, version, found := strings.Cut(fmt.Sprint(given["apiVersion"]), "/")
	if !found {
		group, version = "", group
	}
	namespace, _ := metadata["namespace"].(string)
	return object{"kind": object{"group": group, "version": version, "kind": given["kind"]}, "name": metadata["name"], "namespace": namespace,
		"operation": "", "object": given, "oldObject": nil, "userInfo": object{}, "namespaceObject": object{}}
}

// stored is data.inventory.
func stored(inventory object) storage.Store {
	return inmem.NewFromObjectWithOpts(object{"inventory": inventory}, inmem.OptReturnASTValuesOnRead(true))
}

// inventory is data.inventory with the objects of files.
func inventory(t testing.TB, folder string, files []string) object {
	t.Helper()
	made := object{}
	put := func(value any, path ...string) {
		at := made
		for _, key := range path[:len(path)-1] {
			if at[key] == nil {
				at[key] = object{}
			}
			at = at[key].(object) //nolint:forcetypeassert // made above
		}
		at[path[len(path)-1]] = value
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(string(text), -1) {
			var given object
			require.NoError(t, yaml.Unmarshal([]byte(document), &given))
			if given == nil {
				continue
			}
			metadata, ok := given["metadata"].(object)
			require.True(t, ok, name)
			if namespace, ok := metadata["namespace"].(string); ok {
				put(given, "namespace", namespace, fmt.Sprint(given["apiVersion"]), fmt.Sprint(given["kind"]), fmt.Sprint(metadata["name"]))
				continue
			}
			put(given, "cluster", fmt.Sprint(given["apiVersion"]), fmt.Sprint(given["kind"]), fmt.Sprint(metadata["name"]))
		}
	}
	return made
}

// copied is a deep copy.
func copied(from any) any {
	switch from := from.(type) {
	case object:
		to := make(object, len(from))
		for key, value := range from {
			to[key] = copied(value)
		}
		return to
	case []any:
		to := make([]any, len(from))
		for i, value := range from {
			to[i] = copied(value)
		}
		return to
	default:
		return from
	}
}

func copiedObject(t testing.TB, from object) object {
	t.Helper()
	to, ok := copied(from).(object)
	require.True(t, ok)
	return to
}
