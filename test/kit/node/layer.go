package node

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// layerOf is a layer with one program at the root.
func layerOf(called string, program []byte) (v1.Layer, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := w.WriteHeader(&tar.Header{Name: called, Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	if _, err := w.Write(program); err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
	if err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	return layer, nil
}
