// Package configdir reads resources from YAML and JSON files and watches them,
// so that Landwaiter works without the Kubernetes API: the kinds of
// landwaiter.dev, and the Namespaces, Secrets, ConfigMaps and ServiceAccounts that they reference.
// It validates resources by the CRDs, as an API server does; package compile checks what
// they mean. It refuses to treat an unreadable object as a missing one: such an object is
// reported as broken, and denies. It refuses to guess a namespace, to follow links out of the directory,
// and to start with a file that contains a document it cannot identify.
package configdir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Load reads all *.yaml, *.yml and *.json files in dir and in its subdirectories; it skips
// names that begin with a dot. An object whose content cannot be read is in Objects.Broken
// and has a Problem. Load returns an error and no objects if dir cannot be read or a document
// cannot be identified; the error names the file and line.
func Load(ctx context.Context, dir string) (resource.Objects, []resource.Problem, error) {
	d, err := newDecoder(false)
	if err != nil {
		return resource.Objects{}, nil, err
	}
	s, err := scanDir(dir, nil)
	if err != nil {
		return resource.Objects{}, nil, err
	}
	c, _, err := initial(d.decodeAll(ctx, s))
	return c.objects, c.problems, err
}

// decodeAll decodes all files of a scan.
func (d *decoder) decodeAll(ctx context.Context, s scan) map[string][]entry {
	parsed := make(map[string][]entry, len(s.files)+len(s.failed))
	for file, content := range s.files {
		parsed[file] = d.file(ctx, file, content)
	}
	for path, err := range s.failed {
		parsed[path] = unreadable(path, err)
	}
	return parsed
}

// initial collects the first load. It fails if a document cannot be identified: there is no
// earlier load that tells which object to mark broken.
func initial(parsed map[string][]entry) (collection, fileIndex, error) {
	var failures []error
	for _, path := range slices.Sorted(maps.Keys(parsed)) {
		for _, e := range parsed[path] {
			if e.lost() {
				failures = append(failures, e.said())
			}
		}
	}
	if more := len(failures) - maxReported; more > 0 {
		failures = append(failures[:maxReported], fmt.Errorf("and %d more", more))
	}
	if err := errors.Join(failures...); err != nil {
		return collection{}, nil, fmt.Errorf("read resources: %w", err)
	}
	c, index := fileIndex{}.collect(parsed)
	return c, index, nil
}
