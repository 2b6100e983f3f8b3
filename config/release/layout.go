package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layout is an OCI image layout before it is written.
type layout struct {
	blobs
	entries []ocispec.Descriptor // of index.json
}

func newLayout() *layout { return &layout{blobs: blobs{}} }

// tag lists a manifest in index.json under a tag.
func (l *layout) tag(d ocispec.Descriptor, tag string) {
	d.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
	l.entries = append(l.entries, d)
}

// list lists a manifest that has no tag.
func (l *layout) list(d ocispec.Descriptor) { l.entries = append(l.entries, d) }

// files returns the layout's files: OCI image specification 1.1, "Image Layout".
func (l *layout) files() files {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: l.entries}
	all := files{ocispec.ImageIndexFile: {content: encode(index)},
		ocispec.ImageLayoutFile: {content: encode(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})}}
	for d, data := range l.blobs {
		all[path.Join(ocispec.ImageBlobsDir, d.Algorithm().String(), d.Encoded())] = file{content: data}
	}
	return all
}

// writeFolder writes the layout as a folder, in place of the layout that is there. It
// refuses to replace a folder that is something else.
func (l *layout) writeFolder(folder string) error {
	if err := clear(folder); err != nil {
		return err
	}
	return l.files().write(folder)
}

// clear removes an OCI image layout, and nothing else.
func clear(folder string) error {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return fmt.Errorf("write an image layout: %w", err)
	}
	if _, err := os.Stat(filepath.Join(folder, ocispec.ImageLayoutFile)); err != nil {
		return fmt.Errorf("%s exists and is no image layout: remove it, or name another folder", folder)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove the old image layout: %w", err)
	}
	return nil
}

// writeFile writes a file, and the folder that it is in.
func writeFile(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), folderMode); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(name, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
