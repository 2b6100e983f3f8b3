package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"
)

// file is one regular file of an archive.
type file struct {
	content    []byte
	executable bool
}

// files maps a slash-separated path without a leading slash to its file.
type files map[string]file

// fileMode and its neighbours are the only modes in an archive: those of the checkout
// depend on the umask of whoever made it.
const (
	fileMode    = 0o644
	programMode = 0o755
	folderMode  = 0o755
)

// pack returns a tar archive of the files and, with folders, of the folders that they
// are in. The same files give the same bytes: sorted, owned by root, all of one time.
func pack(contents files, folders bool, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	written := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		if folders {
			if err := packFolders(archive, path.Dir(name), written, modified); err != nil {
				return nil, err
			}
		}
		f := contents[name]
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(f.content)), Mode: fileMode, ModTime: modified, Format: tar.FormatUSTAR}
		if f.executable {
			header.Mode = programMode
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	return out.Bytes(), nil
}

// packFolders writes a folder after those that it is in, each once.
func packFolders(archive *tar.Writer, folder string, written map[string]bool, modified time.Time) error {
	if folder == "." || written[folder] {
		return nil
	}
	if err := packFolders(archive, path.Dir(folder), written, modified); err != nil {
		return err
	}
	written[folder] = true
	header := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: folderMode, ModTime: modified, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("pack %s: %w", folder, err)
	}
	return nil
}

// compress returns data as gzip, without a name and a time in its header. The bytes
// depend on the version of Go, which a release fixes.
func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := writer.Write(data); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}
