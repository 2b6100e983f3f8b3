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

// document is one YAML document of a file.
type document struct {
	file   string
	number int // from 1
	line   int // first line in the file, from 1
	text   []byte
}

func (d document) String() string {
	return fmt.Sprintf("%s, document %d (line %d)", d.file, d.number, d.line)
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
			documents = append(documents, document{file: file, number: len(documents) + 1, line: begin, text: []byte(current.String())})
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

// toJSON converts a document as kubectl does. It inspects the text first, because
// the conversion drops duplicate keys and trailing content. duplicate is set if a
// key appears twice, or err if that leaves the object's identity ambiguous.
func (d document) toJSON() (json []byte, duplicate, err error) {
	if err = inspect(d.text); err != nil {
		return nil, nil, d.rewriteError(err)
	}
	if json, err = yaml.YAMLToJSON(d.text); err != nil {
		return nil, nil, d.rewriteError(err)
	}
	if _, duplicate = yaml.YAMLToJSONStrict(d.text); duplicate != nil {
		duplicate = d.rewriteError(duplicate)
	}
	return json, duplicate, nil
}

// inspect rejects text that is not exactly one mapping of bounded size, with at
// most one apiVersion, kind, name and namespace each.
func inspect(text []byte) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var root, more yamlv3.Node
	if err := decoder.Decode(&root); err != nil {
		return err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end of the object; separate objects by a line with ---")
	}
	budget := maxNodes
	if err := checkSize(&root, 0, &budget); err != nil {
		return err
	}
	top := root.Content[0]
	if top.Kind != yamlv3.MappingNode {
		return errors.New("it is not a mapping with apiVersion, kind and metadata")
	}
	if err := checkUnique(top, "apiVersion", "kind", "metadata"); err != nil {
		return err
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != "metadata" {
			continue
		}
		metadata := top.Content[i+1]
		if metadata.Kind == yamlv3.AliasNode {
			metadata = metadata.Alias
		}
		return checkUnique(metadata, "name", "namespace")
	}
	return nil
}

// checkSize bounds the number and nesting of nodes. It counts a node each time an
// alias repeats it.
func checkSize(node *yamlv3.Node, depth int, budget *int) error {
	*budget--
	switch {
	case *budget < 0:
		return fmt.Errorf("it has more than %d values, counting what aliases repeat", maxNodes)
	case depth > maxNesting:
		return fmt.Errorf("it is nested deeper than %d", maxNesting)
	case node.Style&yamlv3.TaggedStyle != 0:
		return fmt.Errorf("line %d: the tag %s is not supported; remove it", node.Line, node.Tag)
	case node.Kind == yamlv3.AliasNode:
		return checkSize(node.Alias, depth+1, budget)
	}
	for _, child := range node.Content {
		if err := checkSize(child, depth+1, budget); err != nil {
			return err
		}
	}
	return nil
}

// checkUnique rejects a mapping in which one of keys appears twice. It rejects
// merge keys too, since they may add one of keys.
func checkUnique(mapping *yamlv3.Node, keys ...string) error {
	seen := map[string]bool{}
	for i := 0; i < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		if key.Kind == yamlv3.AliasNode {
			key = key.Alias
		}
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
)

// rewriteError converts line numbers of the document to those of the file, and
// removes quoted values: the document may be a Secret.
func (d document) rewriteError(err error) error {
	text := anchorName.ReplaceAllString(err.Error(), "unknown anchor")
	text = lineNumber.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(s, "line "))
		return fmt.Sprintf("line %d", n+d.line-1)
	})
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "yaml: ", "")
	return errors.New(strings.TrimPrefix(text, "error converting YAML to JSON: "))
}
