package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func readHeaders(t *testing.T, archive []byte) []tar.Header {
	t.Helper()
	var found []tar.Header
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		found = append(found, *header)
	}
}

func TestArchivesTellNothingOfTheMachine(t *testing.T) {
	archive, err := pack(files{"b/c/run": {content: []byte("x"), executable: true}, "b/a": {content: []byte("yy")}, "z": {}}, true, noon)
	require.NoError(t, err)
	var found []string
	for _, h := range readHeaders(t, archive) {
		found = append(found, h.Name)
		require.Zero(t, h.Uid)
		require.Zero(t, h.Gid)
		require.Empty(t, h.Uname+h.Gname)
		require.True(t, h.ModTime.Equal(noon))
		require.Equal(t, map[bool]int64{true: 0o755, false: 0o644}[h.Typeflag == tar.TypeDir || h.Name == "b/c/run"], h.Mode, h.Name)
	}
	require.Equal(t, []string{"b/", "b/a", "b/c/", "b/c/run", "z"}, found, "sorted, folders before what is in them")
}

func TestPacksTheSameBytesInAnyOrder(t *testing.T) {
	names := []string{"a", "b/c", "b/d/e", "f"}
	var first []byte
	for range 20 { // maps are walked in another order each time
		contents := files{}
		for _, name := range names {
			contents[name] = file{content: []byte(name)}
		}
		archive, err := pack(contents, true, noon)
		require.NoError(t, err)
		if first == nil {
			first = archive
		}
		require.Equal(t, first, archive)
	}
	later, err := pack(files{"a": {content: []byte("a")}}, true, noon.Add(time.Second))
	require.NoError(t, err)
	require.NotEqual(t, first, later)
}

func TestCompressesWithoutANameAndATime(t *testing.T) {
	data := bytes.Repeat([]byte("landwaiter "), 1000)
	packed, err := compress(data)
	require.NoError(t, err)
	require.Less(t, len(packed), len(data))
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	require.Empty(t, reader.Name)
	require.True(t, reader.ModTime.IsZero())
	read, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, data, read)
}

func TestRefusesNamesThatDoNotFitAHeader(t *testing.T) {
	_, err := pack(files{string(bytes.Repeat([]byte("x"), 300)): {}}, false, noon)
	require.Error(t, err)
}
