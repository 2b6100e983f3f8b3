package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

func TestCountsAgreeWithReports(t *testing.T) {
	keys := inlineKey(string(newKey(t).PEM))
	const broken = "type: PublicKeys\nsource: {inline: rubbish}"
	snapshot, _ := compiled(objects(t, namespace("team-a", "1"), namespace("team-b", "2"), namespace("empty", "3"),
		object("TrustStore", "team-a", "keys", broken), object("TrustStore", "team-a", "more", keys), object("Verifier", "team-a", "release", cosignVerifier),
		object("TrustStore", "team-b", "keys", keys), object("Verifier", "team-b", "release", cosignVerifier),
		object("ClusterTrustStore", "", "keys", keys), object("ClusterQuota", "", "q", "namespaces: [team-a]"),
		object("ClusterVerificationPolicy", "", "p", policySpec("{anyOf: [gone]}"))))
	for _, namespace := range snapshot.Namespaces() {
		counts := snapshot.Counts(namespace)
		found := map[string]compile.Count{}
		for kind := range counts {
			found[kind] = compile.Count{}
		}
		for source, report := range snapshot.Reports(namespace) {
			count := found[source.Kind]
			count.All++
			if !report.Ready.True {
				count.NotReady++
			}
			found[source.Kind] = count
		}
		require.Equal(t, found, counts, namespace.Label())
	}
	require.Equal(t, compile.Count{All: 2, NotReady: 1}, snapshot.Counts("team-a")["TrustStore"])
	require.Equal(t, compile.Count{All: 1, NotReady: 1}, snapshot.Counts("team-a")["Verifier"], "its trust store is broken")
	require.Equal(t, compile.Count{All: 1}, snapshot.Counts("team-b")["Verifier"])
	require.Equal(t, compile.Count{All: 1, NotReady: 1}, snapshot.Counts("")["ClusterVerificationPolicy"], "found when it is linked")
	require.Equal(t, compile.Count{All: 1, NotReady: 1}, snapshot.Counts("")["ClusterQuota"])
	require.Contains(t, snapshot.Counts("empty"), "Store", "a kind of which there is none")
	require.NotContains(t, snapshot.Counts("empty"), "ClusterStore")
	require.Nil(t, snapshot.Counts("team-z"))
}
