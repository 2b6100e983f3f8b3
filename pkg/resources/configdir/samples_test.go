package configdir_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// closed is a registry that is never called.
type closed struct{ verify.Registry }

func TestSamplesLoadAndCompileWithoutProblems(t *testing.T) {
	objects, problems, err := configdir.Load(t.Context(), written.Samples(t, "../../../config/samples", time.Now().Add(time.Hour)))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Empty(t, objects.Broken)
	snapshot, problems := resolve.Empty(resolve.Outside{Registry: func(registry.Access) verify.Registry { return closed{} },
		Revocation: func(verify.Namespace) http.RoundTripper { return http.DefaultTransport }}).Next(resolve.Group(objects), nil)
	require.Empty(t, problems)
	for namespace, tiers := range map[verify.Namespace][]string{
		verify.Cluster: {"signed-by-platform", "platform-mandatory"},
		"team-a":       {"releases", "platform-mandatory"},
		"team-b":       {"releases", "platform-mandatory"},
		"team-c":       {"signed-by-platform", "platform-mandatory"},

		"iris-green-web": {"releases", "platform-mandatory"}, "iris-green-dev-1": {"releases", "platform-mandatory"},
	} {
		var names []string
		for _, tier := range snapshot.For(namespace).Tiers {
			require.Empty(t, tier.Judge.Why())
			names = append(names, tier.Source.Name)
		}
		require.Equal(t, tiers, names, "namespace %q", namespace)
	}
	require.Len(t, snapshot.For("batch").Exceptions, 1)
	require.Len(t, snapshot.For("team-a").Exceptions, 1)
}
