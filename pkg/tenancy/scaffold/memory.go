package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// memory is the file system for kustomize. kustomize's own in-memory one refuses most names that git permits,
// such as those with a space. Paths begin at "/", and only the checker writes.
type memory struct {
	files   map[string][]byte // by the path without the leading slash
	folders map[string]bool
}

var _ filesys.FileSystem = (*memory)(nil)

func newMemory() *memory {
	return &memory{files: map[string][]byte{}, folders: map[string]bool{".": true}}
}

// put adds or replaces a file. It keeps content, which must not be nil or change.
func (m *memory) put(name string, content []byte) {
	m.files[name] = content
	for folder := path.Dir(name); !m.folders[folder]; folder = path.Dir(folder) {
		m.folders[folder] = true
	}
}

// within returns a path in the form of the maps.
func (m *memory) within(name string) string {
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
		return "."
	}
	return name
}

// CleanedAbs implements [filesys.FileSystem].
func (m *memory) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	switch at := m.within(name); {
	case m.folders[at]:
		return filesys.ConfirmedDir(path.Join("/", at)), "", nil
	case m.files[at] != nil:
		return filesys.ConfirmedDir(path.Join("/", path.Dir(at))), path.Base(at), nil
	default:
		return "", "", fmt.Errorf("open %s: %w", at, fs.ErrNotExist)
	}
}

// IsDir implements [filesys.FileSystem].
func (m *memory) IsDir(name string) bool { return m.folders[m.within(name)] }

// Exists implements [filesys.FileSystem].
func (m *memory) Exists(name string) bool { return m.IsDir(name) || m.files[m.within(name)] != nil }

// ReadFile implements [filesys.FileSystem].
func (m *memory) ReadFile(name string) ([]byte, error) {
	switch at := m.within(name); {
	case m.files[at] != nil:
		return append([]byte{}, m.files[at]...), nil
	case m.folders[at]:
		return nil, fmt.Errorf("read %s: it is a folder", at)
	default:
		return nil, fmt.Errorf("open %s: %w", at, fs.ErrNotExist)
	}
}

// A build calls none of the following.

// Create implements [filesys.FileSystem].
func (m *memory) Create(string) (filesys.File, error) { return nil, errors.ErrUnsupported }

// Open implements [filesys.FileSystem].
func (m *memory) Open(string) (filesys.File, error) { return nil, errors.ErrUnsupported }

// Mkdir implements [filesys.FileSystem].
func (m *memory) Mkdir(string) error { return errors.ErrUnsupported }

// MkdirAll implements [filesys.FileSystem].
func (m *memory) MkdirAll(string) error { return errors.ErrUnsupported }

// RemoveAll implements [filesys.FileSystem].
func (m *memory) RemoveAll(string) error { return errors.ErrUnsupported }

// ReadDir implements [filesys.FileSystem].
func (m *memory) ReadDir(string) ([]string, error) { return nil, errors.ErrUnsupported }

// Glob implements [filesys.FileSystem].
func (m *memory) Glob(string) ([]string, error) { return nil, errors.ErrUnsupported }

// WriteFile implements [filesys.FileSystem].
func (m *memory) WriteFile(string, []byte) error { return errors.ErrUnsupported }

// Walk implements [filesys.FileSystem].
func (m *memory) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }
