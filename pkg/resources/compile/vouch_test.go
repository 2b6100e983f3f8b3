package compile_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// rootWithout is a trusted root without the named parts.
func rootWithout(t *testing.T, parts ...string) string {
	t.Helper()
	instance, err := sigstore.New()
	require.NoError(t, err)
	text, err := instance.TrustedRoot()
	require.NoError(t, err)
	whole := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &whole))
	for _, part := range parts {
		require.NotEmpty(t, whole[part], part)
		delete(whole, part)
	}
	text, err = json.Marshal(whole)
	require.NoError(t, err)
	return string(text)
}

// Where nobody in the root can vouch, no signature could ever count, and the problem says why.
func TestARootMustHaveWhatTheVerifierDemandsOfIt(t *testing.T) {
	const field = "spec.cosign.keyless."
	for name, c := range map[string]struct {
		without []string
		ignores string
		says    string
	}{
		"everything is there":                {nil, "", ""},
		"no log, which is ignored":           {[]string{"tlogs"}, "insecureIgnoreTransparencyLog: true", ""},
		"no logs, both are ignored":          {[]string{"tlogs", "ctlogs"}, "insecureIgnoreTransparencyLog: true, insecureIgnoreSCT: true", ""},
		"no timestamps, the log is demanded": {[]string{"timestampAuthorities"}, "", ""},
		"no log": {[]string{"tlogs"}, "", "ClusterTrustStore root has no transparency log, so no signature could count: set " + field +
			"insecureIgnoreTransparencyLog to true"},
		"no log, no timestamps": {[]string{"tlogs", "timestampAuthorities"}, "",
			"ClusterTrustStore root has neither a transparency log nor a timestamp authority"},
		"no timestamps, the log is ignored": {[]string{"timestampAuthorities"}, "insecureIgnoreTransparencyLog: true",
			"ClusterTrustStore root has no timestamp authority, which must vouch for the time of signing where insecureIgnoreTransparencyLog is true"},
		"no certificate transparency log": {[]string{"ctlogs"}, "", "ClusterTrustStore root has no certificate transparency log, so no signature could " +
			"count: set " + field + "insecureIgnoreSCT to true"},
		"no CA": {[]string{"certificateAuthorities"}, "", "ClusterTrustStore root has no CA"},
	} {
		t.Run(name, func(t *testing.T) {
			o := written.Objects(t,
				written.Object("ClusterTrustStore", "", "root", fmt.Sprintf("type: SigstoreRoot\nsource: {inline: %q}", rootWithout(t, c.without...))),
				written.Object("ClusterVerifier", "", "release", "type: Cosign\ncosign: {keyless: {rootTrustStoreRef: {name: root}, identities: [{issuer: i, "+
					"subject: s}], "+c.ignores+"}}"))
			_, problems := written.Compiled(o)
			if c.says == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Equal(t, policy.ReasonInvalid, problems[0].Reason)
			require.Equal(t, "release", problems[0].Source.Name)
			require.Contains(t, problems[0].Message, field+"rootTrustStoreRef: "+c.says)
		})
	}
}
