package docs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/generated"
)

type schema = apiextensionsv1.JSONSchemaProps

// concept is a kind with its Cluster twin, or a kind without one.
type concept struct {
	name  string // of the first kind
	kinds []apiextensionsv1.CustomResourceDefinition
}

// concepts returns the kinds in the order of their table, each with its twin.
func concepts(t *testing.T) []concept {
	t.Helper()
	var found []concept
	for _, kind := range v1beta1.Kinds() {
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, "config/crd/landwaiter.dev_"+kind.Plural+".yaml")), &crd))
		require.Len(t, crd.Spec.Versions, 1, kind.Name)
		if i := slices.IndexFunc(found, func(c concept) bool { return "Cluster"+c.name == kind.Name }); i >= 0 {
			found[i].kinds = append(found[i].kinds, crd)
			continue
		}
		found = append(found, concept{kind.Name, []apiextensionsv1.CustomResourceDefinition{crd}})
	}
	return found
}

func (c concept) title() string {
	var names []string
	for _, kind := range c.kinds {
		names = append(names, kind.Spec.Names.Kind)
	}
	return strings.Join(names, " and ")
}

func (c concept) page() string { return "docs/reference/" + strings.ToLower(c.name) + ".md" }

// anchor returns the anchor of a field, such as verifier-spec-cosign-keys-inline. A field that
// both twins have, or only one, has the same: it stays if the other gets the field.
func (c concept) anchor(path string) string {
	return strings.ToLower(c.name + "-" + strings.NewReplacer("[]", "", "{}", "", ".", "-").Replace(path))
}

// row is a field, as each kind of a concept has it.
type row struct {
	path     string
	schemas  []*schema // by kind, nil if the kind lacks the field
	required []bool
	inside   bool // it is in a field that a kind lacks
}

// any returns the field of the first kind that has it.
func (r row) any() *schema {
	for _, s := range r.schemas {
		if s != nil {
			return s
		}
	}
	return nil
}

// within returns the fields directly below a row, those that are required first.
func (r row) within() []row {
	names := map[string]bool{}
	inner := make([]*schema, len(r.schemas))
	path := r.path
	for i, s := range r.schemas {
		if s == nil {
			continue
		}
		inner[i], path = unwrapped(r.path, s)
		for name := range inner[i].Properties {
			names[name] = true
		}
	}
	var rows []row
	for _, name := range slices.Sorted(maps.Keys(names)) {
		field := row{path + "." + name, make([]*schema, len(inner)), make([]bool, len(inner)), slices.Contains(inner, nil)}
		for i, s := range inner {
			if s == nil {
				continue
			}
			if property, ok := s.Properties[name]; ok {
				field.schemas[i], field.required[i] = &property, slices.Contains(s.Required, name)
			}
		}
		rows = append(rows, field)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		switch needed := slices.Contains(a.required, true); {
		case needed == slices.Contains(b.required, true):
			return 0
		case needed:
			return -1
		}
		return 1
	})
	return rows
}

// all returns the fields below a row, each followed by those below it. Conditions are
// Kubernetes' own type, which the page on conditions explains.
func (r row) all() (rows []row) {
	for _, field := range r.within() {
		rows = append(rows, field)
		if field.path != "status.conditions" {
			rows = append(rows, field.all()...)
		}
	}
	return rows
}

// unwrapped returns the schema of the items of lists and the values of maps, and their path.
func unwrapped(path string, s *schema) (*schema, string) {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return unwrapped(path+"[]", s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return unwrapped(path+"{}", s.AdditionalProperties.Schema)
	}
	return s, path
}

// root returns spec or status of a concept.
func (c concept) root(name string) row {
	r := row{path: name, schemas: make([]*schema, len(c.kinds)), required: make([]bool, len(c.kinds))}
	for i, kind := range c.kinds {
		if property, ok := kind.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[name]; ok {
			r.schemas[i] = &property
		}
	}
	return r
}

// reference returns the generated part of the page of a concept, below its introduction.
func (c concept) reference() string {
	b := &strings.Builder{}
	b.WriteString("\n## API\n\n`make generate` writes this part from the CRDs. [The promise](api-promise.md) says what may change.\n\n")
	b.WriteString("| kind | scope | short name | category | description |\n|---|---|---|---|---|\n")
	for _, kind := range c.kinds {
		names := kind.Spec.Names
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", names.Kind, kind.Spec.Scope, quoted(names.ShortNames), quoted(names.Categories),
			generated.Cell(kind.Spec.Versions[0].Schema.OpenAPIV3Schema.Description))
	}
	fmt.Fprintf(b, "\nThe API version is `%s/%s`. ", c.kinds[0].Spec.Group, c.kinds[0].Spec.Versions[0].Name)
	b.WriteString("In a path, `[]` stands for an entry of a list and `{}` for a key of a map. A rule is quoted by what the API server says when it is broken.\n")
	if len(c.kinds) > 1 {
		c.differences(b)
	}
	c.spec(b)
	b.WriteString("\n## status\n\nLandwaiter writes the status. [Conditions](conditions.md) explains types and reasons.\n\n")
	c.table(b, c.root("status").all())
	c.columns(b)
	return b.String()
}

// spec writes a table of the fields of spec that have none below them, and one for each that has.
func (c concept) spec(b *strings.Builder) {
	spec := c.root("spec")
	var plain []row
	type section struct {
		head   row
		fields []row
	}
	var sections []section
	for _, field := range spec.within() {
		plain = append(plain, field)
		if below := field.all(); len(below) > 0 {
			sections = append(sections, section{field, below})
		}
	}
	b.WriteString("\n## spec\n\n")
	for _, rule := range c.rules(spec) {
		b.WriteString("- " + rule + "\n")
	}
	if len(c.rules(spec)) > 0 {
		b.WriteString("\n")
	}
	c.table(b, plain)
	for _, s := range sections {
		fmt.Fprintf(b, "\n### %s\n\n", s.head.path)
		c.table(b, s.fields)
	}
}

func (c concept) table(b *strings.Builder, rows []row) {
	b.WriteString("| field | type | required or default | meaning |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| <a id=\"%s\"></a>`%s` | %s | %s | %s |\n", c.anchor(r.path), r.path, generated.Cell(c.each(r, typeOf)), generated.Cell(c.need(r)),
			generated.Cell(c.meaning(r)))
	}
}

// each returns what is said of a field in both kinds, or in each.
func (c concept) each(r row, say func(*schema) string) string {
	var said []string
	texts := map[string]bool{}
	for i, s := range r.schemas {
		if s != nil {
			texts[say(s)] = true
			said = append(said, "In a "+c.kinds[i].Spec.Names.Kind+": "+say(s))
		}
	}
	if len(texts) == 1 {
		return say(r.any())
	}
	return strings.Join(said, " ")
}

// need says whether a field is required, or what its default is.
func (c concept) need(r row) string {
	var in []string
	present := 0
	for i, s := range r.schemas {
		if s != nil {
			present++
		}
		if r.required[i] && s.Default == nil {
			in = append(in, c.kinds[i].Spec.Names.Kind)
		}
	}
	switch fallback := c.each(r, defaultOf); {
	case len(in) == present && present > 0:
		return "required"
	case len(in) > 0:
		return "required in a " + strings.Join(in, " and a ")
	default:
		return fallback
	}
}

// meaning says what a field is for, which kind has it, and its rules.
func (c concept) meaning(r row) string {
	var parts []string
	for i, s := range r.schemas {
		if s == nil && !r.inside {
			others := slices.Delete(slices.Clone(c.kinds), i, i+1)
			parts = append(parts, "**"+others[0].Spec.Names.Kind+" only.**")
		}
	}
	name := strings.TrimSuffix(r.path[strings.LastIndex(r.path, ".")+1:], "[]")
	parts = append(parts, c.each(r, func(s *schema) string {
		first, rest, _ := strings.Cut(strings.Join(strings.Fields(s.Description), " "), " ")
		if strings.EqualFold(first, name) { // a comment in Go begins with the name there
			first = "`" + name + "`"
		}
		return strings.TrimSpace(first + " " + rest)
	}))
	for _, rule := range c.rules(r) {
		parts = append(parts, "Rule: "+rule)
	}
	return strings.Join(parts, " ")
}

// rules returns what the schema demands of a field as a whole, in CEL, by its message.
func (c concept) rules(r row) []string {
	var order []string
	in := map[string][]string{}
	for i, s := range r.schemas {
		if s == nil {
			continue
		}
		inner, _ := unwrapped("", s)
		rules := slices.Clone(s.XValidations)
		if inner != s {
			rules = append(rules, inner.XValidations...)
		}
		for _, rule := range rules {
			text := sentence(rule)
			if in[text] == nil {
				order = append(order, text)
			}
			in[text] = append(in[text], c.kinds[i].Spec.Names.Kind)
		}
	}
	for i, text := range order {
		if len(in[text]) < len(c.kinds) && r.any() != nil && !slices.Contains(r.schemas, nil) {
			order[i] = "In a " + strings.Join(in[text], " and a ") + ": " + text
		}
	}
	return order
}

// differences lists the fields that one twin lacks, and what is said of others in one only.
func (c concept) differences(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Differences between %s\n\n", c.title())
	lines := 0
	add := func(format string, args ...any) { fmt.Fprintf(b, "- "+format+"\n", args...); lines++ }
	spec := c.root("spec")
	for _, r := range slices.Concat([]row{spec}, spec.all(), c.root("status").all()) {
		missing := slices.Index(r.schemas, nil)
		switch {
		case r.inside:
		case missing >= 0:
			other := c.kinds[1-missing].Spec.Names.Kind
			add("[`%s`](#%s): only a %s has it.", r.path, c.anchor(r.path), other)
		default:
			for _, rule := range c.rules(r) {
				if strings.HasPrefix(rule, "In a ") {
					add("`%s`: %s", r.path, rule)
				}
			}
			if r.path != "spec" && (r.required[0] != r.required[1] || bounds(r.schemas[0]) != bounds(r.schemas[1])) {
				add("[`%s`](#%s) has other bounds.", r.path, c.anchor(r.path))
			}
		}
	}
	for _, kind := range c.kinds {
		for _, rule := range kind.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations {
			path := strings.TrimPrefix(rule.FieldPath, ".")
			article := "a"
			if strings.HasPrefix(kind.Spec.Names.Kind, "E") {
				article = "an"
			}
			add("In %s %s, [`%s`](#%s): %s", article, kind.Spec.Names.Kind, path, c.anchor(path), sentence(rule))
		}
	}
	if lines == 0 {
		b.WriteString("They have the same fields.\n")
	}
}

func bounds(s *schema) string { return typeOf(s) + defaultOf(s) }

// columns writes what kubectl get prints.
func (c concept) columns(b *strings.Builder) {
	b.WriteString("\n## Columns of kubectl get\n\n| column | field | of | only with `-o wide` |\n|---|---|---|---|\n")
	var order []apiextensionsv1.CustomResourceColumnDefinition
	of := map[apiextensionsv1.CustomResourceColumnDefinition][]string{}
	for _, kind := range c.kinds {
		for _, column := range kind.Spec.Versions[0].AdditionalPrinterColumns {
			if of[column] == nil {
				order = append(order, column)
			}
			of[column] = append(of[column], kind.Spec.Names.Kind)
		}
	}
	for _, column := range order {
		fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", column.Name, generated.Cell(column.JSONPath), quoted(of[column]),
			map[bool]string{true: "yes", false: "no"}[column.Priority > 0])
	}
}

func TestTheReferenceOfEachKindIsUpToDate(t *testing.T) {
	for _, c := range concepts(t) {
		require.NoError(t,
			generated.Check(filepath.Join(root, c.page()), "<!-- generated by make generate: fields -->", "<!-- end of generated text -->", c.reference()+"\n"))
	}
}

// The introduction of each page is by hand: it has the title, and an example of each kind that
// TestResourcesInDocumentsAreInForceOnAnyDay compiles.
func TestThePageOfEachKindHasAnExample(t *testing.T) {
	for _, c := range concepts(t) {
		introduction, _, found := strings.Cut(read(t, c.page()), "<!-- generated by make generate: fields -->")
		require.True(t, found, c.page())
		require.True(t, strings.HasPrefix(introduction, "# "+c.title()+"\n"), c.page())
		for _, kind := range c.kinds {
			require.Contains(t, introduction, "\nkind: "+kind.Spec.Names.Kind+"\n", c.page())
		}
		require.Contains(t, slices.Concat(withResources()...), c.page())
	}
}

// The reference prints what the types say, so each field has a comment, and each rule a message.
func TestEveryFieldAndRuleSaysWhatItMeans(t *testing.T) {
	for _, c := range concepts(t) {
		for _, r := range slices.Concat(c.root("spec").all(), c.root("status").all()) {
			if !strings.HasSuffix(r.path, "[].name") && !strings.HasSuffix(r.path, "[].key") {
				require.NotEmpty(t, r.any().Description, "%s: %s", c.title(), r.path)
			}
			for _, rule := range r.any().XValidations {
				require.NotEmpty(t, rule.Message, "%s: a rule of %s has no message", c.title(), r.path)
			}
		}
	}
}

func TestEachFieldHasAnAnchorOfItsOwn(t *testing.T) {
	anchors := map[string]bool{}
	for _, c := range concepts(t) {
		for _, r := range slices.Concat(c.root("spec").all(), c.root("status").all()) {
			require.False(t, anchors[c.anchor(r.path)], "the anchor %s is there twice", c.anchor(r.path))
			anchors[c.anchor(r.path)] = true
		}
	}
}
