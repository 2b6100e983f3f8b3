package resolve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestCountsAgreeWithReports(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	const broken = "type: PublicKeys\nsource: {inline: rubbish}"
	snapshot, _ := written.Compiled(
		written.AsRead(t, written.Objects(t, written.Namespace("team-a", "1"), written.Namespace("team-b", "2"), written.Namespace("empty", "3"),
			written.Object("TrustStore", "team-a", "keys", broken), written.Object("TrustStore", "team-a", "more", keys),
			written.Object("Verifier", "team-a", "release", written.CosignVerifier),
			written.Object("TrustStore", "team-b", "keys", keys), written.Object("Verifier", "team-b", "release", written.CosignVerifier),
			written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterQuota", "", "q", "namespaces: [team-a]"),
			written.Object("ClusterVerificationPolicy", "", "p", written.PolicySpec("{anyOf: [gone]}")))))
	for _, namespace := range snapshot.Namespaces() {
		counts := snapshot.Counts(namespace)
		found := map[string]resolve.Count{}
		for kind := range counts {
			found[kind] = resolve.Count{}
		}
		for source, report := range conditions.Reports(snapshot, namespace) {
			count := found[source.Kind]
			count.All++
			if !report.Ready.True {
				count.NotReady++
			}
			found[source.Kind] = count
		}
		require.Equal(t, found, counts, namespace.Label())
	}
	require.Equal(t, resolve.Count{All: 2, NotReady: 1}, snapshot.Counts("team-a")["TrustStore"])
	require.Equal(t, resolve.Count{All: 1, NotReady: 1}, snapshot.Counts("team-a")["Verifier"], "its trust store is broken")
	require.Equal(t, resolve.Count{All: 1}, snapshot.Counts("team-b")["Verifier"])
	require.Equal(t, resolve.Count{All: 1, NotReady: 1}, snapshot.Counts("")["ClusterVerificationPolicy"], "found when it is linked")
	require.Equal(t, resolve.Count{All: 1, NotReady: 1}, snapshot.Counts("")["ClusterQuota"])
	require.Contains(t, snapshot.Counts("empty"), "Store", "a kind of which there is none")
	require.NotContains(t, snapshot.Counts("empty"), "ClusterStore")
	require.Nil(t, snapshot.Counts("team-z"))
}
