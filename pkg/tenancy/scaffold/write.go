package scaffold

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Result is the result for a file.
type Result string

// The results.
const (
	Created   Result = "created"
	Changed   Result = "changed"
	Unchanged Result = "unchanged"
	// Edited is a file that a person wrote or changed, and that stays.
	Edited Result = "edited"
	// Stale is a file that an earlier run generated and this one does not.
	Stale Result = "no longer generated"
)

// Outcome is the result for one file.
type Outcome struct {
	Path   string `json:"path"`
	Result Result `json:"result"`
}

// EditedError lists the files that a person edited. Nothing was written.
type EditedError struct {
	Files []EditedFile
}

// EditedFile is a file that a person edited, and of which there is a new version.
type EditedFile struct {
	Path string
	// Undone are the differing lines, in the form of a diff: those that --force would remove,
	// and those that it would write.
	Undone []string
}

// Error names each file once, with what --force would undo.
func (e *EditedError) Error() string {
	var text strings.Builder
	text.WriteString("nothing was written: there is a new version of files that somebody edited; commit yours, replace them with --force, " +
		"and bring back what you need; --force would take away (-) and write (+)")
	for i, file := range e.Files {
		if i == maxNamed {
			fmt.Fprintf(&text, "\n%d more files, edited", len(e.Files)-maxNamed)
			break
		}
		fmt.Fprintf(&text, "\n%s, edited:", file.Path)
		for _, line := range file.Undone {
			text.WriteString("\n" + line)
		}
	}
	return text.String()
}

// RefusedError says why a tree may not be written, with any [WriteOptions]. Nothing was written.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// maxNamed bounds the files that a message names.
const maxNamed = 8

// maxExisting bounds a file that is compared with the generated one.
const maxExisting = 4 << 20

// WriteOptions configure how a tree is written.
type WriteOptions struct {
	// Force replaces files that a person edited.
	Force bool
	// DryRun only says what would be done.
	DryRun bool
}

// Write writes the tree into the folder dir. It only replaces files that are unchanged since
// an earlier run. A file that a person edited stays while the tree has no new version of it;
// if it has one, and Force is not set, Write writes nothing and returns an [EditedError].
// Windows line ends do not count as an edit. Write never writes outside of dir, whatever
// symbolic links are in it, and replaces each file atomically.
func Write(dir string, tree Tree, o WriteOptions) ([]Outcome, error) {
	if err := tree.sort(); err != nil {
		return nil, err
	}
	if !o.DryRun {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("make the folder of the tree: %w", err)
		}
	}
	if err := reachesFlux(dir, tree); err != nil {
		return nil, err
	}
	outcomes, edited, err := plan(dir, tree, o.Force)
	if err != nil {
		return nil, err
	}
	if err := tree.staysWithin(outcomes, edited); err != nil {
		return nil, err
	}
	if len(edited) > 0 {
		return outcomes, &EditedError{Files: edited}
	}
	lists, texts, err := planEdits(dir, tree)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) && o.DryRun {
		return slices.Concat(outcomes, lists), nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the folder of the tree: %w", err)
	}
	defer func() { _ = root.Close() }() // files are closed by themselves
	if !o.DryRun {
		w := writer{root: root}
		defer w.close()
		for i, file := range tree.Files {
			if err := w.put(outcomes[i], file.Stamped(tree.By), file.Executable); err != nil {
				return nil, err
			}
		}
		for i, text := range texts {
			if err := w.put(lists[i], text, false); err != nil {
				return nil, err
			}
		}
	}
	stale, err := staleFiles(root, tree)
	return slices.Concat(outcomes, lists, stale), err
}

// planEdits returns the texts of the lists with the entries of the tree. A list without
// others' edits keeps a hash that says so.
func planEdits(dir string, tree Tree) (outcomes []Outcome, texts []string, err error) {
	for _, edit := range tree.Edits {
		result := Changed
		present, err := readExisting(dir, edit.Path)
		if errors.Is(err, fs.ErrNotExist) {
			present, result, err = File{Path: edit.Path, Text: edit.Initial}.Stamped("platform init"), Created, nil
		}
		if err != nil {
			return nil, nil, err
		}
		text, err := edit.apply(present)
		if err != nil {
			return nil, nil, fmt.Errorf("add to the list %s: %w", edit.Path, err)
		}
		if s := readStamp(present); s.intact {
			_, rest, _ := strings.Cut(text, "\n")
			text = File{Path: edit.Path, Text: rest}.Stamped(s.by)
		}
		if text == present && result == Changed {
			result = Unchanged
		}
		outcomes, texts = append(outcomes, Outcome{Path: edit.Path, Result: result}), append(texts, text)
	}
	return outcomes, texts, nil
}

// openTree opens the folder of a tree to read it, nil if there is none. Done closes it.
func openTree(dir string) (root *os.Root, done func(), err error) {
	root, err = os.OpenRoot(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, func() {}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("open the folder of the tree: %w", err)
	}
	return root, func() { _ = root.Close() }, nil // nothing was written
}

// plan compares the tree with the existing files. The outcomes are in the order of the files.
func plan(dir string, tree Tree, force bool) (outcomes []Outcome, edited []EditedFile, err error) {
	root, done, err := openTree(dir)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	for _, file := range tree.Files {
		result, undone, err := compare(root, tree, file)
		if err != nil {
			return nil, nil, err
		}
		if result == Edited && force {
			result = Changed
		}
		if result == Edited && undone != nil {
			edited = append(edited, EditedFile{file.Path, undone})
		}
		outcomes = append(outcomes, Outcome{Path: file.Path, Result: result})
	}
	return outcomes, edited, nil
}

// compare returns the result for a file. If it was edited, and the tree has a version other
// than the edited one, compare also returns what --force would undo. Without a root there are
// no files.
func compare(root *os.Root, tree Tree, file File) (result Result, undone []string, err error) {
	if root == nil {
		return Created, nil, nil
	}
	present, err := readIn(root, file.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return Created, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	found, generated := readStamp(present), file.Stamped(tree.By)
	switch {
	case file.Seed || present == generated:
		return Unchanged, nil, nil
	case found.intact, file.Settings:
		return Changed, nil, nil
	case file.Tenant:
		if same, taken := takenOver(present, generated); taken && same {
			return Edited, nil, nil
		} else if taken {
			return Changed, nil, nil
		}
	}
	if found.sum != "" && found.sum == readStamp(generated).sum {
		return Edited, nil, nil
	}
	if found.sum != "" && slices.Equal(linesOf(present), linesOf(generated)) {
		return Changed, nil, nil // somebody has made the same change
	}
	return Edited, differences(present, generated), nil
}

// takenOver reports whether the generated file has everything in the file of a Tenant, from
// which it was derived, and whether both describe the same Tenant.
func takenOver(present, generated string) (same, taken bool) {
	before, one := onlyTenant(present)
	after, other := onlyTenant(generated)
	if !one || !other || !equality.Semantic.DeepEqual(before.ObjectMeta, after.ObjectMeta) {
		return false, false
	}
	return equality.Semantic.DeepEqual(before.Spec, after.Spec), true
}

// onlyTenant returns the Tenant of a text that contains nothing else.
func onlyTenant(text string) (tenant v1beta1.Tenant, ok bool) {
	documents, err := parse([]byte(text))
	if err != nil || len(documents) != 1 {
		return tenant, false
	}
	return tenant, yaml.UnmarshalStrict([]byte(text), &tenant) == nil && tenant.Kind == v1beta1.KindTenant
}

// readExisting reads a regular file of the tree in dir, and nothing outside of it. It refuses links:
// replacing one would replace the link, and its target is not part of the tree. Git for Windows
// writes other line ends.
func readExisting(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("open the folder of the tree: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	return readIn(root, name)
}

func readIn(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file: move it away", name)
	}
	if info.Size() > maxExisting {
		return "", fmt.Errorf("%s has more than %d bytes: no file of the tree is that large; move it away", name, maxExisting)
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n"), nil
}

// writer writes files of a tree. It keeps the last folder open: a path is opened folder by folder.
type writer struct {
	root   *os.Root
	folder *os.Root // nil before the first file
	name   string
}

func (w *writer) close() {
	if w.folder != nil {
		_ = w.folder.Close() // files are closed by themselves
	}
}

// enter creates and opens the folder of a file, unless it is already open.
func (w *writer) enter(name string) error {
	if w.folder != nil && w.name == name {
		return nil
	}
	if err := w.root.MkdirAll(name, 0o755); err != nil {
		return fmt.Errorf("make the folder %s: %w", name, err)
	}
	folder, err := w.root.OpenRoot(name)
	if err != nil {
		return fmt.Errorf("open the folder %s: %w", name, err)
	}
	w.close()
	w.folder, w.name = folder, name
	return nil
}

// put writes a file that is created or changed to a temporary name and renames it, so that
// nobody sees a partial file.
func (w *writer) put(outcome Outcome, text string, executable bool) error {
	if outcome.Result != Created && outcome.Result != Changed {
		return nil
	}
	mode := fs.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	if err := w.enter(path.Dir(outcome.Path)); err != nil {
		return err
	}
	temporary := ".landwaiter-" + rand.Text()
	err := w.folder.WriteFile(temporary, []byte(text), mode)
	if err == nil {
		err = w.folder.Rename(temporary, path.Base(outcome.Path))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", outcome.Path, err), w.folder.RemoveAll(temporary))
	}
	return nil
}

// staleFiles lists files of the same command that this run did not generate.
func staleFiles(root *os.Root, tree Tree) ([]Outcome, error) {
	generated := map[string]bool{}
	for _, file := range tree.Files {
		generated[file.Path] = true
	}
	var stale []Outcome
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("look for files that are no longer generated: %w", err)
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case !entry.Type().IsRegular() || generated[name] || !tree.mayWrite(name):
			return nil
		}
		by, err := generatedBy(root, name)
		if err == nil && (by == tree.By || tree.owns(name)) {
			stale = append(stale, Outcome{Path: name, Result: Stale})
		}
		return err
	})
	return stale, err
}

// generatedBy only reads the first lines of a file.
func generatedBy(root *os.Root, name string) (string, error) {
	file, err := root.Open(name)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return readStamp(strings.ReplaceAll(string(head[:n]), "\r\n", "\n")).by, nil
}
