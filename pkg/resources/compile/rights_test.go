package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadySaysWhoElseMayReplaceWhatATrustStoreTrusts(t *testing.T) {
	pem := string(newKey(t).PEM)
	const inSecret = "type: PublicKeys\nsource: {secretKeyRef: {name: keys, key: cosign.pub}}"
	const clusters = "type: PublicKeys\nsource: {secretKeyRef: {name: keys, key: cosign.pub}}"
	snapshot, _ := compiled(objects(t, namespace("team-a", "1"), secret("team-a", "keys", "cosign.pub", pem),
		object("TrustStore", "team-a", "open", inSecret), object("TrustStore", "team-a", "closed", inlineKey(pem)),
		object("TrustStore", "team-a", "broken", "type: PublicKeys\nsource: {secretKeyRef: {name: gone, key: cosign.pub}}"),
		object("ClusterTrustStore", "", "clusters", clusters)))

	open := reportOn(t, snapshot, "TrustStore team-a/open").Ready
	require.True(t, open.True, "the resource works as it stands")
	require.Contains(t, open.Message, "role edit, can change Secret team-a/keys, which spec.source.secretKeyRef names, and so replace the keys")
	require.Contains(t, open.Message, "use spec.source.inline")
	for _, other := range []string{"TrustStore team-a/closed", "TrustStore team-a/broken", "ClusterTrustStore clusters"} {
		require.NotContains(t, reportOn(t, snapshot, other).Ready.Message, "role edit", other)
	}
}
