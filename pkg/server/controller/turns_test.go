package controller

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestAFewObjectsAreReadForTheFirstTimeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan string, 1000)
		reading, read := map[string]int{}, make(chan struct{})
		follow := fewAtFirst(func(ctx context.Context, source policy.ObjectRef, report func(watched)) {
			begun <- source.Namespace
			<-read
			report(watched{})
			report(watched{}) // again does nothing
			<-ctx.Done()      // it is watched on
		})
		watching, stop := context.WithCancel(t.Context())
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
					follow(watching, policy.ObjectRef{Namespace: namespace}, func(watched) {})
					ended <- struct{}{}
				}()
			}
			counted()
			require.LessOrEqual(t, reading[namespace], 2, "the others find room")
		}
		require.Equal(t, 8, counted())

		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			follow(ctx, policy.ObjectRef{Namespace: "team-f"}, func(watched) { t.Error("it was read") })
			ended <- struct{}{}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.Len(t, ended, 1, "who is not needed any more does not wait")
		close(read)
		require.Equal(t, len(namespaces)*maxReferences, counted())
		stop()
		synctest.Wait()
		require.Len(t, ended, 1+len(namespaces)*maxReferences)
	})
}
