//go:build nightly

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/content"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// unpack pulls the image of this architecture, and unpacks its layers as a container
// runtime does.
func unpack(t *testing.T, registry *fixture.Registry, index ocispec.Descriptor) imageOnDisk {
	t.Helper()
	source, err := registry.Repository(t.Context(), repository)
	require.NoError(t, err)
	read := func(d ocispec.Descriptor, into any) {
		text, err := content.FetchAll(t.Context(), source, d)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, into))
	}
	var images ocispec.Index
	read(index, &images)
	require.Len(t, images.Manifests, 1)
	require.Equal(t, runtime.GOARCH, images.Manifests[0].Platform.Architecture)
	var manifest ocispec.Manifest
	read(images.Manifests[0], &manifest)
	var config ocispec.Image
	read(manifest.Config, &config)
	unpacked := imageOnDisk{rootfs: filepath.Join(t.TempDir(), "rootfs"), config: config.Config}
	require.NoError(t, os.Mkdir(unpacked.rootfs, 0o755))
	for i, layer := range manifest.Layers {
		packed, err := content.FetchAll(t.Context(), source, layer)
		require.NoError(t, err)
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
		archive, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.Equal(t, config.RootFS.DiffIDs[i], digest.FromBytes(archive))
		unpackLayer(t, archive, unpacked.rootfs)
	}
	return unpacked
}

func unpackLayer(t *testing.T, archive []byte, rootfs string) {
	t.Helper()
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(header.Name), header.Name)
		name := filepath.Join(rootfs, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			require.NoError(t, os.Mkdir(name, header.FileInfo().Mode()))
		case tar.TypeReg:
			file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode())
			require.NoError(t, err)
			_, err = io.Copy(file, reader)
			require.NoError(t, err)
			require.NoError(t, file.Close())
		default:
			t.Fatalf("%s is of type %q", header.Name, header.Typeflag)
		}
	}
}
