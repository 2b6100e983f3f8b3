//go:build !e2e && !nightly

package evidence

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Only the deadline ends what hangs, so an answer before it waited for nothing.
func TestARepositoryThatHangsDoesNotCostTheFirstDeadline(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	e.onlyTheDeadlineEnds(t)
	hanging, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hanging.Close()) })
	hanging.SetIntercept(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	signed, stranger := e.signed(t, "app", "a"), e.signed(t, "other", "stranger")
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), func(o *resource.Objects) {
		for _, r := range o.Resources {
			if store, ok := r.(*v1beta1.ClusterStore); ok {
				store.Spec.Evidence = &v1beta1.Evidence{Repositories: []v1beta1.EvidenceRepository{{Repository: hanging.Host() + "/sigs"}}}
			}
		}
		store := &v1beta1.ClusterStore{}
		store.Spec.Registries, store.Spec.InsecurePlainHTTP = []string{hanging.Host()}, true
		store.Name = "hanging"
		o.Resources = append(o.Resources, store)
	}))
	answer := e.serve(t, 30*time.Second)("[team-a]" + signed.Reference.String())
	require.Empty(t, answer.SystemError)
	require.Len(t, answer.Items, 1)
	require.Empty(t, answer.Items[0].Error)

	answer = e.serve(t, time.Second)("[team-a]" + stranger.Reference.String())
	require.Empty(t, answer.Items, "a signature may be where nothing answers")
	require.Contains(t, answer.SystemError, "not finished in time: "+hanging.Host()+" did not answer in time; try again")
	// The pass may come before the request that hangs arrives; a deny waits for it.
	require.NotZero(t, hanging.Count())
}
