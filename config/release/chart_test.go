package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPackedChartHasTheChartsFiles(t *testing.T) {
	folder := os.DirFS(filepath.Join(root, "charts", "landwaiter"))
	packed, err := packChart(folder, "landwaiter", origin{created: noon})
	require.NoError(t, err)
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	archive, err := io.ReadAll(reader)
	require.NoError(t, err)
	var want, found []string
	require.NoError(t, fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if !entry.IsDir() {
			want = append(want, "landwaiter/"+name)
		}
		return err
	}))
	for _, header := range readHeaders(t, archive) {
		found = append(found, header.Name)
	}
	require.ElementsMatch(t, want, found)
	again, err := packChart(folder, "landwaiter", origin{created: noon})
	require.NoError(t, err)
	require.Equal(t, packed, again)
}

func TestPackedChartDoesNotDependOnTheCheckout(t *testing.T) {
	tree := func(mode fs.FileMode, modified time.Time) fs.FS {
		return fstest.MapFS{"Chart.yaml": {Data: []byte("x"), Mode: mode, ModTime: modified}, ".helmignore": {Data: []byte("# none\n*.swp\n\n")},
			"a.swp": {Data: []byte(modified.String())}}
	}
	first, err := packChart(tree(0o600, noon), "c", origin{created: noon})
	require.NoError(t, err)
	second, err := packChart(tree(0o755, noon.Add(time.Hour)), "c", origin{created: noon})
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func TestRefusesChartsThatHelmWouldPackOtherwise(t *testing.T) {
	for name, tree := range map[string]fstest.MapFS{
		"no list of ignored files": {"Chart.yaml": {}},
		"a pattern with a folder":  {".helmignore": {Data: []byte("files/x\n")}},
		"a pattern that excepts":   {".helmignore": {Data: []byte("!x\n")}},
		"a bad pattern":            {".helmignore": {Data: []byte("[\n")}},
		"a symbolic link":          {".helmignore": {}, "link": {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}},
	} {
		_, err := packChart(tree, "c", origin{created: noon})
		require.Error(t, err, name)
	}
}

func TestReleasedVersionIsTheOneThatTheChartInstalls(t *testing.T) {
	c := chart{Name: "landwaiter", Version: "1.0.0", AppVersion: "0.2.0"}
	for version, ok := range map[string]bool{"v0.2.0": true, "v0.2.1": false, "v0.2.0-rc.1": false, "v0.2.0-5-gabcdef": true, "abcdef-dirty": true} {
		require.Equal(t, ok, c.check(version) == nil, version)
	}
}

func TestRefusesAChartWithoutAVersion(t *testing.T) {
	for _, text := range []string{"", "name: x\nversion: 1.0.0\n", "{"} {
		_, err := readChart(fstest.MapFS{"Chart.yaml": {Data: []byte(text)}})
		require.Error(t, err, text)
	}
	_, err := readChart(os.DirFS(filepath.Join(root, "charts", "landwaiter")))
	require.NoError(t, err)
}
