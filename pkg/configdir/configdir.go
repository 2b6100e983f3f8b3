// Package configdir reads resources from files instead of from an API server,
// and watches them. It decodes strictly, guesses no namespace, and lets no object
// vanish because its file became unreadable: such an object denies where it
// applied. What resources mean is not decided here.
package configdir

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/tenant"
)

// file is one file as it was last read.
type file struct {
	sum     [sha256.Size]byte
	err     error // it could not be read
	content content
}

// directory is what is known of a directory.
type directory struct {
	path  string
	files map[string]*file
	// dirs are the directories that were seen, to be watched.
	dirs []string
}

// Load reads every *.yaml, *.yml and *.json file below dir once, hidden ones left
// out. Objects whose content is not understood are in Objects.Broken and in the
// problems; the error is for directories that cannot be read, and for documents
// that do not tell which object they are.
func Load(dir string) (tenant.Objects, []tenant.Problem, error) {
	d := &directory{path: dir}
	if _, err := d.read(); err != nil {
		return tenant.Objects{}, nil, err
	}
	if err := d.firstError(); err != nil {
		return tenant.Objects{}, nil, err
	}
	objects, problems := d.assemble()
	return objects, problems, nil
}

// firstError returns why some file is not fully understood.
func (d *directory) firstError() error {
	for _, name := range d.names() {
		if err := errors.Join(d.files[name].err, d.files[name].content.unreadable); err != nil {
			return fmt.Errorf("read resources from %s: %w", d.path, err)
		}
	}
	return nil
}

func (d *directory) names() []string { return slices.Sorted(maps.Keys(d.files)) }

// read reads all files again and reports whether anything changed. A file that
// is no longer fully understood keeps a place for every object that it gave
// before.
func (d *directory) read() (changed bool, err error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return false, fmt.Errorf("read resources: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	names, dirs, err := list(root.FS())
	if err != nil {
		return false, fmt.Errorf("read resources from %s: %w", d.path, err)
	}
	files := make(map[string]*file, len(names))
	total := 0
	for _, name := range names {
		data, readErr := readFile(root, name)
		if total += len(data); total > maxTotalBytes {
			return false, fmt.Errorf("read resources from %s: the files hold more than %d bytes", d.path, maxTotalBytes)
		}
		earlier := d.files[name]
		f := &file{sum: sha256.Sum256(data), err: readErr}
		if earlier != nil && earlier.sum == f.sum && fmt.Sprint(earlier.err) == fmt.Sprint(f.err) {
			files[name] = earlier
			continue
		}
		changed = true
		if readErr == nil {
			f.content = decode(name, data)
		}
		f.keepPlaces(earlier)
		files[name] = f
	}
	changed = changed || len(files) != len(d.files) || d.files == nil
	d.files, d.dirs = files, dirs
	return changed, nil
}

// keepPlaces makes what the file gave before, and does not give now, deny, if the
// file is not fully understood.
func (f *file) keepPlaces(earlier *file) {
	why := errors.Join(f.err, f.content.unreadable)
	if why == nil || earlier == nil {
		return
	}
	given := map[policy.Source]bool{}
	for _, o := range f.content.objects {
		given[o.source] = true
	}
	for _, b := range f.content.broken {
		given[b.Source] = true
	}
	keep := func(source policy.Source) {
		if !given[source] {
			given[source] = true
			f.content.broken = append(f.content.broken, tenant.Broken{Source: source, Err: why})
		}
	}
	for _, o := range earlier.content.objects {
		keep(o.source)
	}
	for _, b := range earlier.content.broken {
		keep(b.Source)
	}
}

// assemble joins all files. An object that is declared twice is broken: there is
// no telling which one was meant.
func (d *directory) assemble() (tenant.Objects, []tenant.Problem) {
	var objects tenant.Objects
	var problems []tenant.Problem
	declaredIn := map[policy.Source][]string{}
	for _, name := range d.names() {
		for _, o := range d.files[name].content.objects {
			declaredIn[o.source] = append(declaredIn[o.source], name)
		}
		for _, b := range d.files[name].content.broken {
			declaredIn[b.Source] = append(declaredIn[b.Source], name)
		}
	}
	broken := map[policy.Source]error{}
	for _, name := range d.names() {
		f := d.files[name]
		if err := errors.Join(f.err, f.content.unreadable); err != nil {
			problems = append(problems, tenant.Problem{Source: policy.Source{Kind: "File", Name: name}, Reason: "Unreadable", Message: err.Error()})
		}
		problems = append(problems, f.content.ignored...)
		for _, b := range f.content.broken {
			broken[b.Source] = errors.Join(broken[b.Source], b.Err)
		}
		for _, o := range f.content.objects {
			if files := declaredIn[o.source]; len(files) > 1 {
				broken[o.source] = fmt.Errorf("it is declared more than once, in %s", strings.Join(files, " and "))
				continue
			}
			o.add(&objects)
		}
	}
	for _, source := range slices.SortedFunc(maps.Keys(broken), func(a, b policy.Source) int { return strings.Compare(a.String(), b.String()) }) {
		objects.Broken = append(objects.Broken, tenant.Broken{Source: source, Err: broken[source]})
		problems = append(problems, tenant.Problem{Source: source, Reason: "Unreadable", Message: broken[source].Error()})
	}
	return objects, problems
}

// list finds the files to read and the directories that they may be in.
func list(tree fs.FS) (files, dirs []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(path.Base(name), ".") && name != "."
		switch {
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir():
			if strings.Count(name, "/") >= maxDepth {
				return fmt.Errorf("%s is more than %d directories deep", name, maxDepth)
			}
			dirs = append(dirs, name)
		case hidden:
		case slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)):
			files = append(files, name)
			if len(files) > maxFiles {
				return fmt.Errorf("there are more than %d files", maxFiles)
			}
		}
		return nil
	})
	return files, dirs, err
}

// readFile reads one file. Links are followed within the directory, as a mounted
// ConfigMap needs it, and never out of it.
func readFile(root *os.Root, name string) (data []byte, err error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxFileBytes)
	}
	return data, err
}
