package external

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inDirectory writes a repository's files as a mirror on disk has them.
func inDirectory(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	return dir
}

func TestACopyOfARepositoryIsReadFromADirectoryAndVerified(t *testing.T) {
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	files, root := repository(t, expires, `{"trusted":"root"}`)
	expired, expiredRoot := repository(t, time.Now().Add(-time.Hour), `{}`)
	_, strange := repository(t, expires, `{}`)
	dir := inDirectory(t, files)
	for _, mirror := range []string{dir, "file://" + dir} {
		copied, err := CopyTUF(t.Context(), TUFRepository{Mirror: mirror, Root: string(root)})
		require.NoError(t, err)
		require.JSONEq(t, `{"trusted":"root"}`, string(copied.TrustedRoot))
		require.Equal(t, []TUFRole{{"root", 1, expires}, {"targets", 1, expires}, {"snapshot", 1, expires}, {"timestamp", 1, expires}}, copied.Roles)
		for i, renews := range []bool{true, true, false, false} {
			require.Equal(t, renews, copied.Roles[i].Renews())
		}
	}
	without := func(name string) map[string][]byte {
		less := map[string][]byte{}
		for file, text := range files {
			if file != name {
				less[file] = text
			}
		}
		return less
	}
	changed := without("")
	for name := range changed {
		if filepath.Base(filepath.Dir(name)) == "targets" {
			changed[name] = []byte(`{"trusted":"evil"}`)
		}
	}
	for name, c := range map[string]struct {
		from TUFRepository
		says string
	}{
		"changed":             {TUFRepository{Mirror: inDirectory(t, changed), Root: string(root)}, "not what its metadata says"},
		"expired":             {TUFRepository{Mirror: inDirectory(t, expired), Root: string(expiredRoot)}, "has expired"},
		"signed by another":   {TUFRepository{Mirror: dir, Root: string(strange)}, "not signed by the keys of its root"},
		"not Sigstore's":      {TUFRepository{Mirror: dir}, "TUF repository"},
		"without timestamp":   {TUFRepository{Mirror: inDirectory(t, without("/timestamp.json")), Root: string(root)}, `"timestamp.json" is missing from the copy`},
		"no directory":        {TUFRepository{Mirror: filepath.Join(dir, "nothing"), Root: string(root)}, "cannot be read"},
		"a file":              {TUFRepository{Mirror: filepath.Join(dir, "timestamp.json"), Root: string(root)}, "cannot be read"},
		"plain HTTP":          {TUFRepository{Mirror: "http://mirror.example.com", Root: string(root)}, "neither an https address nor a directory"},
		"a root that is none": {TUFRepository{Mirror: dir, Root: "{}"}, "malformed"},
	} {
		_, err := CopyTUF(t.Context(), c.from)
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestADirectoryGivesNothingThatLiesOutsideOfIt(t *testing.T) {
	files, root := repository(t, time.Now().Add(time.Hour), `{"trusted":"root"}`)
	outside := inDirectory(t, files)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(outside, "timestamp.json"), filepath.Join(dir, "timestamp.json")))
	_, err := CopyTUF(t.Context(), TUFRepository{Mirror: dir, Root: string(root)})
	require.ErrorContains(t, err, `"timestamp.json" of the TUF repository cannot be read`)
}

// The record of what was read is what the condition ExpiresSoon believes.
func TestATargetIsNeverTakenForARole(t *testing.T) {
	read := &recorded{from: files{os.DirFS(inDirectory(t, map[string][]byte{"targets/root.json": []byte("x"), "2.root.json": []byte("y")}))},
		files: map[string][]byte{}}
	for _, name := range []string{"/2.root.json", "/targets/root.json"} {
		_, err := read.DownloadFile(directoryAddress+name, 10, 0)
		require.NoError(t, err)
	}
	require.Equal(t, map[string][]byte{"root": []byte("y")}, read.files)
	_, err := read.DownloadFile(directoryAddress+"/targets/root.json", 0, 0)
	require.Error(t, err, "it is larger than the metadata says")
}
