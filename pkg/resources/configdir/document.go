package configdir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// document is one YAML document of a file, or one item of a list in it.
type document struct {
	file   string
	number int // from 1
	item   int // from 1; 0 for a whole document
	begin  int // line of the file at which text begins, from 1
	line   int // line at which the object begins
	text   []byte
}

func (d document) String() string {
	if d.item > 0 {
		return fmt.Sprintf("%s, document %d, item %d (line %d)", d.file, d.number, d.item, d.line)
	}
	return fmt.Sprintf("%s, document %d (line %d)", d.file, d.number, d.line)
}

// at prefixes err with the position of d. It drops a line number from the start of err that only repeats the
// position.
func (d document) at(err error) error {
	if text, repeats := strings.CutPrefix(err.Error(), fmt.Sprintf("line %d: ", d.line)); repeats {
		return fmt.Errorf("%s: %s", d, text)
	}
	return fmt.Errorf("%s: %w", d, err)
}

// split splits a file into its documents. It rejects characters that YAML treats
// as line breaks but editors do not show as such: a document could hide behind one.
func split(file string, content []byte) ([]document, error) {
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, maxFileBytes)
	}
	if !utf8.Valid(content) {
		return nil, fmt.Errorf("%s is not UTF-8 text", file)
	}
	text := string(bytes.TrimPrefix(content, []byte("\ufeff")))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if i := strings.IndexAny(text, "\r\u0085\u2028\u2029\ufeff"); i >= 0 {
		return nil, fmt.Errorf("%s line %d has the control character %+q; remove it or write it as an escape in double quotes",
			file, 1+strings.Count(text[:i], "\n"), []rune(text[i:])[0])
	}
	var documents []document
	var current strings.Builder
	begin := 1
	end := func(next int) {
		if !isBlank(current.String()) {
			documents = append(documents,
				document{file: file, number: len(documents) + 1, begin: begin, line: begin, text: []byte(current.String())})
		}
		current.Reset()
		begin = next
	}
	for i, line := range strings.SplitAfter(text, "\n") {
		switch {
		case hasMarker(line, "---"):
			end(i + 1)
			line = "   " + line[len("---"):] // the rest of the line is content, in the same column
		case hasMarker(line, "..."):
			end(i + 1)
			line = "   " + line[len("..."):]
		}
		current.WriteString(line)
		if len(documents) >= maxDocuments {
			return nil, fmt.Errorf("%s has more than %d documents", file, maxDocuments)
		}
	}
	end(0)
	return documents, nil
}

// hasMarker reports whether a line begins with a document marker (YAML 1.2.2,
// section 9.1.2). Markers also end block and quoted scalars.
func hasMarker(line, mark string) bool {
	rest, ok := strings.CutPrefix(line, mark)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\n"))
}

// isBlank reports whether a document has only comments and white space.
func isBlank(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

// parsedObject is a parsed document, or an item of a list.
type parsedObject struct {
	json []byte
	node *yamlv3.Node // the mapping from which json was made
	// duplicate is set if a key appears twice.
	duplicate error
}

// parse converts a document to JSON as kubectl does. It inspects the text first,
// because the conversion drops duplicate keys and trailing content. It fails if that
// leaves the object's identity ambiguous.
func (d document) parse() (c parsedObject, err error) {
	if c.node, err = inspect(d.text); err != nil {
		return parsedObject{}, d.rewriteError(err)
	}
	if c.json, err = yaml.YAMLToJSON(d.text); err != nil {
		return parsedObject{}, d.rewriteError(err)
	}
	if _, c.duplicate = yaml.YAMLToJSONStrict(d.text); c.duplicate != nil {
		c.duplicate = d.rewriteError(c.duplicate)
	}
	return c, nil
}

// inspect rejects text that is not exactly one mapping of bounded size, with at
// most one apiVersion, kind, name and namespace each. It returns the mapping.
func inspect(text []byte) (*yamlv3.Node, error) {
	if n := marks(text); n > maxMarks {
		return nil, fmt.Errorf("it has %d characters that may begin a value, the limit is %d; split it", n, maxMarks)
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var root, more yamlv3.Node
	if err := decoder.Decode(&root); err != nil {
		return nil, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the end of the object; separate objects by a line with ---")
	}
	left := budget{nodes: maxNodes, bytes: maxExpanded}
	if err := left.take(&root, 0); err != nil {
		return nil, err
	}
	top := root.Content[0]
	if top.Kind != yamlv3.MappingNode {
		return nil, errors.New("it is not a mapping with apiVersion, kind and metadata")
	}
	return top, checkIdentity(top)
}

// marks counts the characters that may begin a node. Each begins two at most.
func marks(text []byte) (n int) {
	for _, mark := range []string{",", ":", "-", "?", "[", "{"} {
		n += bytes.Count(text, []byte(mark))
	}
	return n
}

// checkIdentity rejects an object in which a field that identifies it appears twice.
func checkIdentity(object *yamlv3.Node) error {
	if err := checkUnique(object, "apiVersion", "kind", "metadata"); err != nil {
		return err
	}
	if metadata := value(object, "metadata"); metadata != nil {
		return checkUnique(metadata, "name", "namespace")
	}
	return nil
}

// value returns the value of a key of a mapping, nil if it is missing.
func value(mapping *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Kind == yamlv3.MappingNode && resolved(mapping.Content[i]).Value == key {
			return resolved(mapping.Content[i+1])
		}
	}
	return nil
}

// resolved returns the target of an alias, and any other node itself.
func resolved(node *yamlv3.Node) *yamlv3.Node {
	if node.Kind == yamlv3.AliasNode {
		return node.Alias
	}
	return node
}

// budget bounds the nodes of a document, and the bytes of its values. It counts a node
// each time an alias repeats it.
type budget struct{ nodes, bytes int }

func (b *budget) take(node *yamlv3.Node, depth int) error {
	b.nodes--
	b.bytes -= len(node.Value)
	switch {
	case b.nodes < 0:
		return fmt.Errorf("it has more than %d values, counting what aliases repeat", maxNodes)
	case b.bytes < 0:
		return fmt.Errorf("its values have more than %d bytes, counting what aliases repeat", maxExpanded)
	case depth > maxNesting:
		return fmt.Errorf("it is nested deeper than %d", maxNesting)
	case node.Style&yamlv3.TaggedStyle != 0:
		return fmt.Errorf("line %d: the tag %s is not supported; remove it", node.Line, node.Tag)
	case node.Kind == yamlv3.AliasNode:
		return b.take(node.Alias, depth+1)
	}
	for _, child := range node.Content {
		if err := b.take(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// checkUnique rejects a mapping in which one of keys appears twice. It also rejects merge
// keys, since they may add one of keys.
func checkUnique(mapping *yamlv3.Node, keys ...string) error {
	seen := map[string]bool{}
	for i := 0; i < len(mapping.Content); i += 2 {
		key := resolved(mapping.Content[i])
		switch {
		case key.Value == "<<":
			return fmt.Errorf("line %d: a merge key (<<) is not supported here; write the fields out", key.Line)
		case seen[key.Value] && slices.Contains(keys, key.Value):
			return fmt.Errorf("line %d: %s is given twice", key.Line, key.Value)
		}
		seen[key.Value] = true
	}
	return nil
}

var (
	lineNumber = regexp.MustCompile(`line (\d+)`)
	anchorName = regexp.MustCompile(`unknown anchor '[^']*'`)
	// tabIndented matches a tab in the indentation of a line.
	tabIndented = regexp.MustCompile(`(?m)^ *\t`)
)

// noToken is the parser's message for a tab in the indentation, among others.
const noToken = "found character that cannot start any token"

// rewriteError converts line numbers of the document to those of the file, and
// removes quoted values: the document may be a Secret.
func (d document) rewriteError(err error) error {
	text := anchorName.ReplaceAllString(err.Error(), "unknown anchor")
	text = lineNumber.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(s, "line "))
		return fmt.Sprintf("line %d", n+d.begin-1)
	})
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "yaml: ", "")
	text = strings.TrimPrefix(text, "error converting YAML to JSON: ")
	if strings.HasSuffix(text, noToken) && tabIndented.Match(d.text) {
		text += ": YAML must not be indented with tabs; use spaces"
	}
	return errors.New(text)
}
