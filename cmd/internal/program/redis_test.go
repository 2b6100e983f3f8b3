package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/remote/cache"
)

func TestChangedFilesOfTheConnectionToRedisAreUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	write := func(url string) { // as the kubelet does: all of it at once
		require.NoError(t, os.WriteFile(file+".new", []byte(url+"\n"), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	write("redis://user:one@redis.example.com")
	flags := Redis{urlFile: file, first: cache.Connection{URL: "redis://user:one@redis.example.com"}}
	ctx, cancel := context.WithCancel(t.Context())
	used, failed, ended := make(chan string, 1000), make(chan error, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		flags.Follow(ctx, time.Millisecond, func(c cache.Connection) error {
			if c.URL == "broken" {
				return errors.New("it cannot be used")
			}
			used <- c.URL
			return nil
		}, func(err error) { failed <- err })
	}()
	for n, got := 0, ""; got == ""; n++ { // it may read the file after the first change
		write(fmt.Sprintf("redis://user:two-%d@redis.example.com", n))
		select {
		case got = <-used:
			require.Contains(t, got, "two-")
		case <-time.After(100 * time.Millisecond):
		}
	}
	write("broken")
	require.ErrorContains(t, <-failed, "it cannot be used")
	require.NoError(t, os.Remove(file))
	require.ErrorContains(t, <-failed, "--redis-url-file")
	write("redis://user:three@redis.example.com")
	for got := ""; got != "redis://user:three@redis.example.com"; {
		got = <-used
	}
	cancel()
	<-ended
	(&Redis{url: "redis://redis.example.com"}).Follow(t.Context(), 0, nil, nil) // has no file, and returns
}
