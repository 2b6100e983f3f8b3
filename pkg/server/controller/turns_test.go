package controller

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestAFewObjectsAreReadForTheFirstTimeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSecretWatches(nil, nil, func(verify.Namespace) {}).turns
		begun := make(chan string, 1000)
		reading, read := map[string]int{}, make(chan struct{})
		ended := make(chan struct{}, 1000)
		counted := func() (all int) {
			synctest.Wait()
			for len(begun) > 0 {
				reading[<-begun]++
			}
			for _, n := range reading {
				all += n
			}
			return all
		}
		namespaces := []string{"team-a", "team-b", "team-c", "team-d", "team-e"}
		for _, namespace := range namespaces {
			for range maxReferences {
				go func() {
					turn, err := w.Take(t.Context(), namespace)
					if err == nil {
						begun <- namespace
						<-read
						turn.Leave()
						turn.Leave() // again does nothing
					}
					ended <- struct{}{}
				}()
			}
			counted()
			require.LessOrEqual(t, reading[namespace], 2, "the others find room")
		}
		require.Equal(t, 8, counted())

		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := w.Take(ctx, "team-f")
			if err != nil {
				ended <- struct{}{}
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.Len(t, ended, 1, "who is not needed any more does not wait")
		close(read)
		require.Equal(t, len(namespaces)*maxReferences, counted())
		require.Len(t, ended, 1+len(namespaces)*maxReferences)
	})
}
