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

// scan is a snapshot of the directory. Paths are relative to it.
type scan struct {
	files  map[string][]byte
	failed map[string]error // files and subdirectories that cannot be read
}

// errChanging means that a mounted volume was swapped during every scan.
var errChanging = errors.New("the directory changes while it is read")

// scanDir reads all YAML and JSON files. It calls onDir, if not nil, with the path
// of each directory before reading it. The error concerns the directory as a whole.
func scanDir(dir string, onDir func(path string)) (scan, error) {
	root, err := os.OpenRoot(dir)
	if info, unknown := os.Stat(dir); unknown == nil && !info.IsDir() {
		return scan{}, fmt.Errorf("%s is not a directory: give the directory that has the file", dir)
	}
	if err != nil {
		return scan{}, fmt.Errorf("open the directory with resources: %w", err)
	}
	defer func() { _ = root.Close() }()
	for range scanAttempts {
		s := scanner{root: root, onDir: onDir, scan: scan{files: map[string][]byte{}, failed: map[string]error{}}, mounts: map[string]string{}}
		if err = s.dir(".", nil); err != nil {
			return scan{}, fmt.Errorf("read %s: %w", dir, err)
		}
		if _, err := os.Stat(dir); err != nil {
			return scan{}, fmt.Errorf("read the directory with resources: %w", err) // removed during the scan
		}
		if s.stable() {
			return s.scan, nil
		}
	}
	return scan{}, fmt.Errorf("read %s: %w", dir, errChanging)
}

type scanner struct {
	scan
	root    *os.Root // refuses to follow symbolic links out of the directory
	onDir   func(string)
	entries int
	bytes   int
	mounts  map[string]string // targets of the ..data links
}

// dataLink is the symbolic link that kubelet swaps when a mounted ConfigMap or
// Secret changes. Visible files link through it to the hidden directory of the
// current version.
const dataLink = "..data"

// stable reports whether no mounted volume was swapped since the scan began.
func (s *scanner) stable() bool {
	for link, before := range s.mounts {
		if now, err := s.root.Readlink(link); err != nil || now != before {
			return false
		}
	}
	return true
}

// dir reads one directory; within are its parent directories.
func (s *scanner) dir(name string, within []fs.FileInfo) error {
	info, err := s.root.Stat(name)
	switch {
	case err != nil:
		return s.fail(name, err)
	case len(within) > maxDepth:
		return s.fail(name, fmt.Errorf("directories are nested deeper than %d", maxDepth))
	case slices.ContainsFunc(within, func(outer fs.FileInfo) bool { return os.SameFile(outer, info) }):
		return s.fail(name, errors.New("the link leads back to a directory that contains it"))
	}
	if s.onDir != nil {
		s.onDir(name)
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

// list returns the names in a directory, at most maxEntries+1.
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

// entry reads a file or a subdirectory.
func (s *scanner) entry(name string, within []fs.FileInfo) error {
	if _, err := s.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil // removed since the directory was listed
	}
	info, err := s.root.Stat(name)
	switch {
	case err != nil && !isResource(name):
		// A link that is dangling or leads out of the directory may represent a directory with
		// resources.
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
	// Without O_NONBLOCK, opening a named pipe would block.
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
	return readLimited(file)
}

// fail records that name cannot be read. It returns the error if that is the root
// directory.
func (s *scanner) fail(name string, err error) error {
	var cause *fs.PathError // drop its path, which our message contains
	if errors.As(err, &cause) {
		err = fmt.Errorf("%s: %w", cause.Op, cause.Err)
	}
	if name == "." {
		return err
	}
	s.failed[name] = fmt.Errorf("%s: %w", name, err)
	return nil
}

// digest returns a hash of the scan's content.
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
