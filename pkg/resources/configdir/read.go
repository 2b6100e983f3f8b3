package configdir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Standard is the path of standard input in [Read].
const Standard = "-"

// EmptyInput says that standard input was empty. If the API server refuses a dry run, its long reason is in the lines
// before, where readers miss it.
const EmptyInput = "standard input has no object: the command before the pipe failed, or printed nothing; its error is above this line"

// standardInput is the name of standard input in results.
const standardInput = "standard input"

// Files is the content of files, with the positions of all objects.
type Files struct {
	Objects  resource.Objects
	Problems []resource.Problem
	// Declarations are sorted by file and line.
	Declarations []Declaration
	// Patches are files that were left out because kustomizations list them as patches, sorted by file.
	Patches []Patch
}

// Lenient returns the objects as if no resource had unknown fields, so that other errors are
// found as well. Duplicate objects stay broken.
func (f Files) Lenient() resource.Objects {
	declared := map[policy.ObjectRef][]Declaration{}
	for _, d := range f.Declarations {
		declared[d.Source] = append(declared[d.Source], d)
	}
	written := func(source policy.ObjectRef) v1beta1.Object {
		kind, ours := v1beta1.KindNamed(source.Kind)
		places := declared[source]
		if !ours || len(places) != 1 || places[0].JSON == nil {
			return nil
		}
		object := kind.New()
		if err := json.Unmarshal(places[0].JSON, object); err != nil || resource.Keep(object) != nil || resource.Oversized(object) != nil {
			return nil
		}
		created(object, time.Now())
		return object
	}
	objects := f.Objects
	objects.Broken, objects.Resources = nil, slices.Clone(objects.Resources)
	for i, object := range objects.Resources {
		if resource.Refused(object) == nil {
			continue
		}
		if made := written(resource.RefOf(object)); made != nil {
			objects.Resources[i] = made
		}
	}
	for _, broken := range f.Objects.Broken {
		if made := written(broken.Source); made != nil {
			objects.Resources = append(objects.Resources, made)
			continue
		}
		objects.Broken = append(objects.Broken, broken)
	}
	return objects
}

// Declaration is one object in a file, or a document that should be one.
type Declaration struct {
	// Source is the zero value if the object cannot be identified.
	Source policy.ObjectRef
	File   string
	Line   int // at which the object begins, from 1
	// JSON is the source text of a resource of landwaiter.dev. Other objects have none.
	JSON []byte
	// Ignored says that Landwaiter does not use the kind of the object. Foreign is then its
	// source text, which is not checked.
	Ignored bool
	Foreign []byte
	// Err says why the object cannot be identified, or its content cannot be read.
	Err error

	begin int
	node  *yamlv3.Node
}

// LineOf returns the line of a field such as spec.rules[0].images, or of the innermost
// enclosing field that exists.
func (d Declaration) LineOf(field string) int {
	line, node := d.Line, d.node
	for node != nil && field != "" {
		var name string
		if name, field = nextStep(field); name == "" {
			continue
		}
		next, at := step(node, name)
		if next == nil {
			break
		}
		node, line = next, d.begin+at.Line-1
	}
	return line
}

// nextStep cuts the first step off a path: a name, or an index in brackets.
func nextStep(path string) (name, rest string) {
	if strings.HasPrefix(path, "[") {
		name, rest, _ = strings.Cut(path[1:], "]")
		return name, strings.TrimPrefix(rest, ".")
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return path, ""
	}
	return path[:end], strings.TrimPrefix(path[end:], ".")
}

// step returns the node at a key or an index of node, and the node where that begins.
func step(node *yamlv3.Node, name string) (next, at *yamlv3.Node) {
	var index int
	switch node.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if resolved(node.Content[i]).Value == name {
				return resolved(node.Content[i+1]), node.Content[i]
			}
		}
	case yamlv3.SequenceNode:
		if _, err := fmt.Sscanf(name, "%d", &index); err == nil && index >= 0 && index < len(node.Content) {
			return resolved(node.Content[index]), node.Content[index]
		}
	case yamlv3.DocumentNode, yamlv3.ScalarNode, yamlv3.AliasNode:
	}
	return nil, nil
}

// Read reads files regardless of their names, directories as [Load] does, and standard input for
// the path [Standard]. It fails if one cannot be read. Unlike Load, it reports documents that
// cannot be identified in the result. It omits patches of kustomizations. Objects that need a
// namespace and name none are in the given one, as with kubectl apply; without one, that is an error.
func Read(ctx context.Context, namespace string, paths []string, stdin io.Reader) (Files, error) {
	d, err := newDecoder(true)
	if err != nil {
		return Files{}, err
	}
	d.namespace, d.accounts = namespace, namespace != ""
	return d.read(ctx, paths, stdin)
}

func (d *decoder) read(ctx context.Context, paths []string, stdin io.Reader) (Files, error) {
	texts, total := map[string][]byte{}, 0
	for _, name := range paths {
		found, err := readPath(name, stdin)
		if err != nil {
			return Files{}, err
		}
		for file, text := range found {
			if _, again := texts[file]; !again {
				total += len(text)
			}
			texts[file] = text
		}
		if total > maxTotalBytes {
			return Files{}, fmt.Errorf("the files are larger than %d bytes together", maxTotalBytes)
		}
	}
	left := leavePatches(texts)
	parsed := d.decodeAll(ctx, scan{files: texts})
	c, _ := fileIndex{}.collect(parsed)
	return Files{Objects: c.objects, Problems: c.problems, Declarations: declarations(parsed), Patches: left}, nil
}

// readPath returns the text of the files at a path.
func readPath(name string, stdin io.Reader) (map[string][]byte, error) {
	if name == Standard {
		text, err := readLimited(stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return map[string][]byte{standardInput: text}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		text, err := readFile(name)
		return map[string][]byte{filepath.Clean(name): text}, err
	}
	found, err := scanDir(name, nil)
	if err != nil {
		return nil, err
	}
	for _, failed := range slices.Sorted(maps.Keys(found.failed)) {
		err = errors.Join(err, fmt.Errorf("%s: %w", name, found.failed[failed]))
	}
	texts := make(map[string][]byte, len(found.files))
	for file, text := range found.files {
		texts[filepath.Join(name, file)] = text
	}
	return texts, err
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name) //nolint:gosec // whoever runs the program names it
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := readLimited(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

func readLimited(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = fmt.Errorf("it is larger than %d bytes", maxFileBytes)
	}
	return text, err
}

// declarations returns the declarations of files, sorted.
func declarations(parsed map[string][]entry) []Declaration {
	var all []Declaration
	for _, entries := range parsed {
		for _, e := range entries {
			d := Declaration{Source: e.source, File: e.file, Line: e.line, Ignored: e.ignored, begin: e.begin, node: e.node}
			if _, ours := v1beta1.KindNamed(e.source.Kind); ours && !e.ignored {
				d.JSON = e.json
			}
			if e.ignored {
				d.Foreign = e.json
			} else {
				d.Err = e.err
			}
			if e.node != nil && e.item == 0 && len(e.node.Content) > 0 {
				d.Line = e.begin + e.node.Content[0].Line - 1 // comments may precede the object
			}
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b Declaration) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Source.String(), b.Source.String()))
	})
	return all
}
