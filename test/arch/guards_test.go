package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// guard is code without which an incident of a class could happen here, and the test
// that fails if it is taken out.
type guard struct {
	class int
	test  string // as in the table
	edits []edit
}

// edit replaces text that stands in a file exactly once.
type edit struct{ file, old, new string }

// apply returns the edited content of the file.
func (e edit) apply(content string) (string, error) {
	if n := strings.Count(content, e.old); n != 1 {
		return "", fmt.Errorf("%s has %d times, instead of once:\n%s", e.file, n, e.old)
	}
	return strings.Replace(content, e.old, e.new, 1), nil
}

// mutated returns the content of each edited file without the guard.
func (g guard) mutated() (map[string]string, error) {
	files := map[string]string{}
	for _, e := range g.edits {
		content, ok := files[e.file]
		if !ok {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, fmt.Errorf("read a guard of %s: %w", g.test, err)
			}
			content = string(text)
		}
		changed, err := e.apply(content)
		if err != nil {
			return nil, fmt.Errorf("take out the guard of %s: %w", g.test, err)
		}
		files[e.file] = changed
	}
	return files, nil
}

// without is a guard of one edit.
func without(class int, test, file, old, replacement string) guard {
	return guard{class: class, test: test, edits: []edit{{file, old, replacement}}}
}
