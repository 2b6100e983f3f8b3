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
	"syscall"
)

// scan is what is in the directory at one moment. Paths are relative to it.
type scan struct {
	files  map[string][]byte
	failed map[string]error // files and directories below that cannot be read
}

// errTorn means that a mounted volume was swapped during a scan.
var errTorn = errors.New("the directory changes while it is read")

// scanDir reads all YAML and JSON files. entering, if not nil, is called with
// the path of each directory before that is read. The error is about the
// directory as a whole.
func scanDir(dir string, entering func(path string)) (scan, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return scan{}, fmt.Errorf("open the directory with resources: %w", err)
	}
	defer func() { _ = root.Close() }()
	for range scanAttempts {
		s := scanner{root: root, entering: entering, scan: scan{files: map[string][]byte{}, failed: map[string]error{}}, mounts: map[string]string{}}
		if err = s.dir(".", nil); err != nil {
			return scan{}, fmt.Errorf("read %s: %w", dir, err)
		}
		if _, err := os.Stat(dir); err != nil {
			return scan{}, fmt.Errorf("read the directory with resources: %w", err) // it was removed meanwhile
		}
		if s.whole() {
			return s.scan, nil
		}
	}
	return scan{}, fmt.Errorf("read %s: %w", dir, errTorn)
}

type scanner struct {
	scan
	root     *os.Root // symbolic links that lead out of it cannot be opened
	entering func(string)
	entries  int
	bytes    int
	mounts   map[string]string // where each ..data link led
}

// dataLink is what kubelet swaps when a mounted ConfigMap or Secret changes: the
// visible files lead through it to a hidden directory of the current version.
const dataLink = "..data"

// whole reports whether no mounted volume was swapped since the scan began.
func (s *scanner) whole() bool {
	for link, before := range s.mounts {
		if now, err := s.root.Readlink(link); err != nil || now != before {
			return false
		}
	}
	return true
}

// dir reads one directory; within are the directories that it is in.
func (s *scanner) dir(name string, within []fs.FileInfo) error {
	info, err := s.root.Stat(name)
	switch {
	case err != nil:
		return s.fail(name, err)
	case len(within) > maxDepth:
		return s.fail(name, fmt.Errorf("directories are nested deeper than %d", maxDepth))
	case slices.ContainsFunc(within, func(outer fs.FileInfo) bool { return os.SameFile(outer, info) }):
		return s.fail(name, errors.New("the link leads back to a directory that it is in"))
	}
	if s.entering != nil {
		s.entering(name)
	}
	if target, err := s.root.Readlink(path.Join(name, dataLink)); err == nil {
		s.mounts[path.Join(name, dataLink)] = target
	}
	names, err := s.list(name)
	if err != nil {
		return s.fail(name, err)
	}
	if s.entries += len(names); s.entries > maxEntries {
		return fmt.Errorf("there are more than %d files and directories", maxEntries)
	}
	slices.Sort(names)
	for _, entry := range names {
		if strings.HasPrefix(entry, ".") {
			continue
		}
		if err := s.entry(path.Join(name, entry), append(slices.Clip(within), info)); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names in a directory, at most one more than are allowed.
func (s *scanner) list(name string) ([]string, error) {
	dir, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(maxEntries + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// entry reads a file, or goes down into a directory.
func (s *scanner) entry(name string, within []fs.FileInfo) error {
	if _, err := s.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil // removed since the directory was listed
	}
	info, err := s.root.Stat(name)
	switch {
	case err != nil && !isResource(name):
		// A link to nowhere or to the outside: it may stand for a directory of files.
		return s.fail(name, err)
	case err == nil && info.IsDir():
		return s.dir(name, within)
	case !isResource(name):
		return nil
	}
	if err == nil {
		var content []byte
		if content, err = s.read(name); err == nil {
			s.files[name] = content
			s.bytes += len(content)
		}
	}
	if s.bytes > maxTotalBytes {
		return fmt.Errorf("the files are larger than %d bytes together", maxTotalBytes)
	}
	if err != nil {
		return s.fail(name, err)
	}
	return nil
}

func isResource(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

func (s *scanner) read(name string) ([]byte, error) {
	// Without O_NONBLOCK a named pipe would be waited for.
	file, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(content) > maxFileBytes {
		err = fmt.Errorf("it is larger than %d bytes", maxFileBytes)
	}
	return content, err
}

// fail notes what cannot be read; for the directory itself that is the end.
func (s *scanner) fail(name string, err error) error {
	var cause *fs.PathError // its path is repeated in ours
	if errors.As(err, &cause) {
		err = fmt.Errorf("%s: %w", cause.Op, cause.Err)
	}
	if name == "." {
		return err
	}
	s.failed[name] = fmt.Errorf("%s: %w", name, err)
	return nil
}

// digest identifies what was found.
func (s scan) digest() (sum [sha256.Size]byte) {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		fmt.Fprintf(hash, "file %q %d\n", name, len(s.files[name]))
		hash.Write(s.files[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.failed)) {
		fmt.Fprintf(hash, "failed %q %q\n", name, s.failed[name].Error())
	}
	hash.Sum(sum[:0])
	return sum
}
