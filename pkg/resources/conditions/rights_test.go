package conditions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestReadySaysWhoElseMayReplaceWhatATrustStoreTrusts(t *testing.T) {
	pem := string(written.NewKey(t).PEM)
	const inSecret = "type: PublicKeys\nsource: {secretKeyRef: {name: keys, key: cosign.pub}}"
	const clusters = "type: PublicKeys\nsource: {secretKeyRef: {name: keys, key: cosign.pub}}"
	snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"), written.Secret("team-a", "keys", "cosign.pub", pem),
		written.Object("TrustStore", "team-a", "open", inSecret), written.Object("TrustStore", "team-a", "closed", written.InlineKey(pem)),
		written.Object("TrustStore", "team-a", "broken", "type: PublicKeys\nsource: {secretKeyRef: {name: gone, key: cosign.pub}}"),
		written.Object("ClusterTrustStore", "", "clusters", clusters)))

	open := written.ReportOn(t, snapshot, "TrustStore team-a/open").Ready
	require.True(t, open.True, "the resource works as it stands")
	require.Contains(t, open.Message, "role edit, can change Secret team-a/keys, which spec.source.secretKeyRef names, and so replace the keys")
	require.Contains(t, open.Message, "use spec.source.inline")
	for _, other := range []string{"TrustStore team-a/closed", "TrustStore team-a/broken", "ClusterTrustStore clusters"} {
		require.NotContains(t, written.ReportOn(t, snapshot, other).Ready.Message, "role edit", other)
	}
}

func TestEntriesOfPullSecretsThatAreIgnoredAreNamed(t *testing.T) {
	snapshot, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
		written.Secret("team-a", "one", ".dockerconfigjson",
			`{"auths":{"r.example.com":{"username":"u","password":"p"},"s.example.com":{"auth":"hunter2"}},"credsStore":"desktop"}`),
		written.Secret("team-a", "two", ".dockerconfigjson", `{"auths":{}}`),
		written.Secret("team-a", "three", ".dockerconfigjson", `{"auths":{"r.exmaple.com":{"username":"u","password":"hunter2"}}}`),
		written.Object("Store", "team-a", "s", "registries: [r.example.com]\nimagePullSecrets: [{name: one}, {name: two}, {name: three}]")))
	require.Empty(t, problems)
	ready := written.ReportOn(t, snapshot, "Store team-a/s").Ready
	require.True(t, ready.True)
	for _, said := range []string{
		`spec.imagePullSecrets[0]: Secret team-a/one: entry "s.example.com" is ignored: auth is not`,
		"spec.imagePullSecrets[0]: Secret team-a/one: credsStore and credHelpers are ignored",
		"spec.imagePullSecrets[1]: Secret team-a/two: it has no login",
		"spec.imagePullSecrets[2]: Secret team-a/three: it has no login for r.example.com, only for r.exmaple.com",
	} {
		require.Contains(t, ready.Message, said)
	}
	require.NotContains(t, ready.Message, "hunter2")
}

func TestLoginsForMirrorsAndEvidenceAreNotSaidToBeForOthers(t *testing.T) {
	for name, more := range map[string]string{"a mirror": "mirrors: [{host: m.example.com}]",
		"evidence": "evidence: {repositories: [{repository: m.example.com/signatures}]}"} {
		snapshot, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
			written.Secret("team-a", "pull", ".dockerconfigjson", `{"auths":{"m.example.com":{"username":"u","password":"p"}}}`),
			written.Object("Store", "team-a", "s", "registries: [r.example.com]\nimagePullSecrets: [{name: pull}]\n"+more)))
		require.Empty(t, problems, name)
		require.NotContains(t, written.ReportOn(t, snapshot, "Store team-a/s").Ready.Message, "no login", name)
	}
}

// Teams may read ClusterStores, whose Secret may have the registries of others.
func TestTheHostsInTheSecretOfAClusterStoreAreNotNamed(t *testing.T) {
	objects := written.Objects(t,
		written.Secret("landwaiter-system", "pull", ".dockerconfigjson", `{"auths":{"team-b.example.com":{"username":"u","password":"p"}}}`),
		written.Object("ClusterStore", "", "s", "registries: [r.example.com]\nimagePullSecrets: [{name: pull}]"))
	objects.ClusterResourceNamespace = "landwaiter-system"
	snapshot, problems := written.Compiled(objects)
	require.Empty(t, problems)
	ready := written.ReportOn(t, snapshot, "ClusterStore s").Ready
	require.Contains(t, ready.Message, "it has no login for r.example.com, only for other hosts")
	require.NotContains(t, ready.Message, "team-b")
}
