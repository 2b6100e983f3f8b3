package external

import (
	"io/fs"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoFetchWritesToDisk(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "TUF_ROOT", "SIGSTORE_ROOT_FILE"} {
		t.Setenv(name, home)
	}
	t.Chdir(home)
	files, root := repository(t, time.Now().Add(time.Hour), `{"trusted":"root"}`)
	address, authority := served(t, func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(text)
	})
	_, err := fetchTUF(t.Context(), Source{Kind: TUF, Address: address, Authority: authority, Root: string(root)})
	require.NoError(t, err)
	var written []string
	require.NoError(t, filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			written = append(written, path)
		}
		return err
	}))
	require.Empty(t, written)
}
