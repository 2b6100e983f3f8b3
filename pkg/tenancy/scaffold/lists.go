package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Edit adds an entry to a kustomization.yaml that people edit too.
type Edit struct {
	Path string
	// Resource and Patch are added to resources and patches, unless they are there. An empty
	// Patch adds none.
	Resource, Patch string
	// Initial is the text of a file that does not exist yet.
	Initial string
}

// apply returns the text with the entries. Everything else stays as it is, comments and
// order included: the text is only added to, never written anew from what was parsed.
func (e Edit) apply(text string) (string, error) {
	text, err := addEntry(text, "resources", e.Resource, e.Resource)
	if err != nil || e.Patch == "" {
		return text, err
	}
	return addEntry(text, "patches", "path: "+e.Patch, e.Patch)
}

// addEntry adds an entry at the end of a top-level list, unless the list has the value.
func addEntry(text, field, entry, value string) (string, error) {
	var whole yaml.Node
	if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
		return "", fmt.Errorf("it is not YAML: %w", err)
	}
	if len(whole.Content) != 1 || whole.Content[0].Kind != yaml.MappingNode {
		return "", fmt.Errorf("it is not one kustomization")
	}
	fields := whole.Content[0].Content
	at := -1
	for i := 0; i < len(fields); i += 2 {
		if fields[i].Value == field {
			at = i
		}
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if at < 0 {
		return text + field + ":\n- " + entry + "\n", nil
	}
	if has(fields[at+1], value) {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	if line := lines[fields[at].Line-1]; line == field+": []\n" || fields[at+1].Tag == "!!null" && strings.TrimSpace(line) == field+":" {
		lines[fields[at].Line-1] = field + ":\n- " + entry + "\n"
		return strings.Join(lines, ""), nil
	}
	if fields[at+1].Kind != yaml.SequenceNode || len(fields[at+1].Content) == 0 || fields[at+1].Style&yaml.FlowStyle != 0 {
		return "", fmt.Errorf("%s is not a list with one line for each entry: write it so, or add %q to it", field, value)
	}
	last := fields[at+1].Content[len(fields[at+1].Content)-1].Line - 1
	indent := lines[last][:len(lines[last])-len(strings.TrimLeft(lines[last], " "))]
	// The last entry goes on as long as lines are further in than its dash.
	after := last + 1
	for i := after; i < len(lines) && (strings.HasPrefix(lines[i], indent+" ") || strings.TrimSpace(lines[i]) == ""); i++ {
		if strings.TrimSpace(lines[i]) != "" {
			after = i + 1
		}
	}
	return strings.Join(slices.Insert(lines, after, indent+"- "+entry+"\n"), ""), nil
}

// has reports whether a list has a text, or a mapping whose path it is.
func has(list *yaml.Node, value string) bool {
	return slices.ContainsFunc(list.Content, func(entry *yaml.Node) bool {
		return entry.Kind == yaml.ScalarNode && entry.Value == value || textOf(entry, "path") == value
	})
}
