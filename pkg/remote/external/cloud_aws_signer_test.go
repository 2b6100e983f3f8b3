//go:build aws && azure && gcp

package external

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWSSignerIsAskedAboutOneSignatureAtItsOwnHost(t *testing.T) {
	q := awsQuestion{namespace: "team-a", as: awsIdentity(t, ""), region: "eu-west-1", job: "arn:aws:signer:eu-west-1:123456789012:/signing-jobs/1",
		profileVersion: "arn:aws:signer:eu-west-1:123456789012:/signing-profiles/release/AbCdEf1234", certificates: "aa,bb", signedAt: "2026-11-22T10:00:00Z"}
	answer, status := `{"revokedEntities":["arn:x"]}`, http.StatusOK
	c := newCloud(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if len(query) != 5 || query.Get("jobArn") != q.job || query.Get("profileVersionArn") != q.profileVersion ||
			query.Get("platformId") != "Notation-OCI-SHA384-ECDSA" ||
			query.Get("signatureTimestamp") != q.signedAt || fmt.Sprint(query["certificateHashes"]) != "[aa bb]" {
			http.Error(w, r.URL.RawQuery, http.StatusTeapot)
			return
		}
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	})
	revoked, err := c.askAWSSigner(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, []string{"arn:x"}, revoked)
	require.Equal(t, []string{"GET data-signer.eu-west-1.amazonaws.com/revocations"}, c.requests())
	require.Contains(t, c.text.String(), "/eu-west-1/signer/aws4_request")
	require.Contains(t, c.text.String(), "Credential=AKIDEXAMPLE/")

	for _, nothing := range []string{`{"revokedEntities":[]}`, `{}`} {
		answer = nothing
		revoked, err = c.askAWSSigner(t.Context(), q)
		require.NoError(t, err)
		require.Empty(t, revoked)
	}
	for name, bad := range map[string]struct {
		answer string
		status int
		says   string
	}{
		"no JSON":         {"canary", 200, "malformed"},
		"a list":          {`[]`, 200, "malformed"},
		"null":            {"null", 200, "malformed"},
		"another type":    {`{"revokedEntities":"canary"}`, 200, "malformed"},
		"no permission":   {"canary", 403, "signer:GetRevocationStatus"},
		"an unknown job":  {"canary", 404, "status 404"},
		"too many":        {"canary", 429, "status 429"},
		"a broken server": {"canary", 500, "status 500"},
	} {
		answer, status = bad.answer, bad.status
		_, err := c.askAWSSigner(t.Context(), q)
		require.ErrorContains(t, err, bad.says, name)
		require.NotContains(t, shown(err).Error(), "canary", name)
	}
}

func TestAWSSignersHostFollowsFromTheRegion(t *testing.T) {
	for region, host := range map[string]string{"cn-north-1": "data-signer.cn-north-1.amazonaws.com.cn",
		"us-gov-west-1": "data-signer.us-gov-west-1.amazonaws.com"} {
		c := newCloud(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"revokedEntities":[]}`) })
		_, err := c.askAWSSigner(t.Context(), awsQuestion{as: awsIdentity(t, ""), region: region})
		require.NoError(t, err)
		require.Equal(t, []string{"GET " + host + "/revocations"}, c.requests())
	}
	for _, region := range []string{"", "eu-west-1.example.com/", "eu-west-1@example.com", "x"} {
		_, err := nobody(t).askAWSSigner(t.Context(), awsQuestion{as: awsIdentity(t, ""), region: region})
		require.ErrorContains(t, err, "is not a region of AWS", region)
	}
}
