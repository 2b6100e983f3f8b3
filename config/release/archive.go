package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
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
	add := func(header tar.Header, content []byte) error {
		header.Size, header.ModTime, header.Format = int64(len(content)), modified, tar.FormatUSTAR
		err := archive.WriteHeader(&header)
		if err == nil {
			_, err = archive.Write(content)
		}
		if err != nil {
			return fmt.Errorf("pack %s: %w", header.Name, err)
		}
		return nil
	}
	written := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		for i, r := range name {
			folder := name[:i+1]
			if !folders || r != '/' || written[folder] {
				continue
			}
			written[folder] = true
			if err := add(tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: folderMode}, nil); err != nil {
				return nil, err
			}
		}
		f, mode := contents[name], int64(fileMode)
		if f.executable {
			mode = programMode
		}
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, f.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	return out.Bytes(), nil
}

// compress returns data as gzip, without a name and a time in its header. The bytes
// depend on the version of Go, which a release fixes.
func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = writer.Write(data)
		err = errors.Join(err, writer.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}
