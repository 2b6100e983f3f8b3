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
