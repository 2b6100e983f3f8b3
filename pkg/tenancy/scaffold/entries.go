package scaffold

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fieldOf returns the fields of a kustomization with their values, and the index of one; -1 if it is
// missing.
func fieldOf(text, field string) (fields []*yaml.Node, at int, err error) {
	var whole yaml.Node
	if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
		return nil, 0, fmt.Errorf("it is not YAML: %w", err)
	}
	if len(whole.Content) != 1 || whole.Content[0].Kind != yaml.MappingNode {
		return nil, 0, errors.New("it is not one kustomization")
	}
	fields, at = whole.Content[0].Content, -1
	for i := 0; i < len(fields); i += 2 {
		if fields[i].Value == field {
			at = i
		}
	}
	return fields, at, nil
}

// withoutEntry removes an entry that [addEntry] added. Everything else stays.
func withoutEntry(text, field, entry, value string) (string, error) {
	fields, at, err := fieldOf(text, field)
	if err != nil || at < 0 || !has(fields[at+1], value) {
		return text, err
	}
	lines := strings.SplitAfter(text, "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "- "+entry })
	if i < 0 || i+1 < len(lines) && deeper(lines[i+1], lines[i]) {
		return "", fmt.Errorf("%s names %q in a way that cannot be changed here: take the entry off the list", field, value)
	}
	lines = slices.Delete(lines, i, i+1)
	if len(fields[at+1].Content) == 1 {
		lines[fields[at].Line-1] = field + ": []\n"
	}
	return strings.Join(lines, ""), nil
}

// deeper reports whether a line is indented more than another.
func deeper(line, than string) bool {
	indent := than[:len(than)-len(strings.TrimLeft(than, " "))]
	return strings.HasPrefix(line, indent+" ")
}
