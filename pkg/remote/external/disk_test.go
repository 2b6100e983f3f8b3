package external

import (
	"context"
	"io/fs"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
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
	ctx, cancel := context.WithCancel(t.Context())
	f := New(Options{}, time.Now)
	source := Source{Kind: TUF, Address: address, Authority: authority, Root: string(root)}
	f.Want(verify.Cluster, []Source{source})
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) })
	f.Await(ctx)
	cancel()
	running.Wait()
	require.JSONEq(t, `{"trusted":"root"}`, string(f.Known([]Source{source})[source].Content))
	var written []string
	require.NoError(t, filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			written = append(written, path)
		}
		return err
	}))
	require.Empty(t, written)
}
