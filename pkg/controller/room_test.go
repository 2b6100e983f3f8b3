package controller

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
)

func TestWhatIsKeptOfTheSecretsOfANamespaceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset(secret("team-b", "key", "1"))
		var sources []policy.ObjectRef
		for i := range maxReferences {
			large := secret("team-a", fmt.Sprintf("s%03d", i), "1")
			large.Data["key"] = bytes.Repeat([]byte("x"), 1_000_000)
			_, err := clients.CoreV1().Secrets("team-a").Create(t.Context(), large, metav1.CreateOptions{})
			require.NoError(t, err)
			sources = append(sources, secretSource("team-a", large.Name))
		}
		w := watching(t, clients)
		other := []policy.ObjectRef{secretSource("team-b", "key")}
		w.set.Want("team-a", sources)
		w.set.Want("team-b", other)
		kept := func(sources []policy.ObjectRef) (o resource.Objects, size int) {
			synctest.Wait()
			w.fill(&o, sources)
			require.Len(t, o.Secrets, len(sources)-len(o.Broken), "none counts as missing")
			for i := range o.Secrets {
				size += len(o.Secrets[i].Data["key"])
			}
			return o, size
		}
		o, size := kept(sources)
		require.LessOrEqual(t, size, 4<<20)
		require.Len(t, o.Secrets, 4)
		require.Equal(t, policy.ReasonLimitExceeded, o.Broken[0].Reason)
		require.ErrorContains(t, o.Broken[0].Err, "it has 976 KiB, and the Secrets, ConfigMaps and ServiceAccounts of namespace team-a that resources name may take 4096 KiB together")
		refused := []policy.ObjectRef{o.Broken[0].Source, o.Broken[1].Source}
		o, _ = kept(other)
		require.Len(t, o.Secrets, 1)

		w.set.Want("team-a", refused)
		time.Sleep(2 * time.Minute)
		o, _ = kept(refused)
		require.Len(t, o.Secrets, 2, "they are read again, and there is room for them now")
		w.set.Want("team-a", nil)
		w.set.Want("team-b", nil)
		synctest.Wait()
		require.Empty(t, w.room.taken)
	})
}
