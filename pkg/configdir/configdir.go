// Package configdir reads resources from YAML and JSON files and watches them,
// so that Landwaiter works without the Kubernetes API: the kinds of
// landwaiter.dev, and the Namespaces, Secrets and ConfigMaps that they need. It
// judges no content: package tenant compiles what is read. It refuses to take
// something it cannot read for something that is not there: an object that is
// known but unreadable is handed on as broken, and denies. It refuses to guess a
// namespace, to follow links out of the directory, and to start with a file in
// which something cannot be identified.
package configdir

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/resource"
)

// Load reads all *.yaml, *.yml and *.json files in dir and in the directories
// below it; names that begin with a dot are skipped. An object whose content
// cannot be read is in Objects.Broken and has a Problem. The error says, with
// file and line, what cannot even be identified, or that dir cannot be read;
// then there are no objects.
func Load(dir string) (resource.Objects, []resource.Problem, error) {
	d, err := newDecoder()
	if err != nil {
		return resource.Objects{}, nil, err
	}
	s, err := scanDir(dir, nil)
	if err != nil {
		return resource.Objects{}, nil, err
	}
	c, _, err := first(d.all(s))
	return c.objects, c.problems, err
}

// all decodes what was found.
func (d *decoder) all(s scan) map[string]reading {
	readings := make(map[string]reading, len(s.files)+len(s.failed))
	for file, content := range s.files {
		readings[file] = d.file(file, content)
	}
	for path, err := range s.failed {
		readings[path] = reading{lost: []error{err}}
	}
	return readings
}

// first collects what there is to begin with. Nothing is known of what an
// unreadable document would have been, so it is refused.
func first(readings map[string]reading) (collection, memory, error) {
	var lost []error
	for _, path := range slices.Sorted(maps.Keys(readings)) {
		lost = append(lost, readings[path].lost...)
	}
	if more := len(lost) - maxReported; more > 0 {
		lost = append(lost[:maxReported], fmt.Errorf("and %d more", more))
	}
	if err := errors.Join(lost...); err != nil {
		return collection{}, nil, fmt.Errorf("read resources: %w", err)
	}
	c, m := memory{}.collect(readings)
	return c, m, nil
}
