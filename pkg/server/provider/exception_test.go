package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// excepting is a Decider with an engine whose policy denies every image, and an exception for
// one.
func excepting(t *testing.T, images string, now func() time.Time) Decider {
	t.Helper()
	everything, err := image.ParsePattern("**")
	require.NoError(t, err)
	pattern, err := image.ParsePattern(images)
	require.NoError(t, err)
	source := policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "none"}
	engine := verify.NewEngine(nil, now, verify.Options{})
	return deciderFunc(func(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
		return engine.Verify(ctx, &verify.Config{Namespace: namespace, Generation: "g",
			Tiers: []verify.Tier{
				{Source: source, Judge: verify.ByRules([]verify.Rule{{Source: source, Images: []image.Pattern{everything}, Action: verify.Deny}}, verify.DefaultDeny)}},
			Exceptions: []verify.Exception{
				verify.ByCluster(verify.Exception{Source: policy.ObjectRef{Kind: "Exception", Namespace: "team-a", Name: "x"}, Why: "OPS-1\x1b[31m",
					Until:  time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC),
					Images: &verify.ImageList{Patterns: []image.Pattern{pattern}}})}}, ref)
	})
}

// A pod's images are keys of one request: an exception for one of them says nothing of the
// others.
func TestAnExceptionForOneImageDoesNotFreeThePod(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	h := testHandler(excepting(t, "r.example.com/a", func() time.Time { return now }), pinning, nil)
	var out bytes.Buffer
	h.log.SetOutput(&out)
	h.log.SetLevel(logrus.InfoLevel)
	h.log.SetFormatter(&logrus.JSONFormatter{})
	answered := items(ask(t, h, "/v1/verify", "[team-a]r.example.com/a:1", "[team-a]r.example.com/b:1", "[team-a]r.example.com/a/c:1",
		"[team-a]r.example.com/a:1@"+someDigest.String()))
	require.Len(t, answered, 4)
	for key, want := range map[string]bool{"a:1": true, "b:1": false, "a/c:1": false, "a:1@" + someDigest.String(): true} {
		item := answered["[team-a]r.example.com/"+key]
		require.Equal(t, want, succeeded(item), key)
		said, ok := item.Value.(map[string]any)
		require.True(t, ok)
		if !want {
			require.NotContains(t, said, "exception", key)
			require.NotContains(t, said["reason"], "Exception", key)
			continue
		}
		require.Equal(t, map[string]any{"kind": "Exception", "namespace": "team-a", "name": "x", "until": "2026-11-23T00:00:00Z"}, said["exception"])
		require.Equal(t, map[string]any{"kind": "ClusterVerificationPolicy", "name": "none"}, said["policy"])
		require.Contains(t, said["warning"], "Exception team-a/x allows it until 2026-11-23T00:00:00Z (OPS-1 [31m); after that: a rule of")
	}
	require.NoError(t,
		testutil.CollectAndCompare(h.metrics.exceptions,
			strings.NewReader(
				`# HELP landwaiter_exception_uses_total Images that an exception or, with the kind Namespace, break-glass let in although policies deny them.
# TYPE landwaiter_exception_uses_total counter
landwaiter_exception_uses_total{kind="Exception",namespace="team-a"} 2
`)))
	uses := 0
	for line := range strings.Lines(out.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		if fields["verdict"] != string(verify.AnswerByException) {
			continue
		}
		uses++
		require.Equal(t, "warning", fields["level"])
		require.Equal(t, "Exception team-a/x", fields["exception"])
		require.Equal(t, "2026-11-23T00:00:00Z", fields["until"])
		require.Regexp(t, `^[0-9a-f]{32}$`, fields["traceID"])
	}
	require.Equal(t, 2, uses)
	now = now.Add(24 * time.Hour)
	require.False(t, succeeded(items(ask(t, h, "/v1/verify", "[team-a]r.example.com/a:1"))["[team-a]r.example.com/a:1"]), "it has ended")
}

func TestAnAuditCountsAsNoUseOfAnException(t *testing.T) {
	h := testHandler(excepting(t, "**", func() time.Time { return time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC) }), pinning, nil)
	require.True(t, succeeded(items(ask(t, h, "/v1/audit/verify", "[team-a]r.example.com/a:1"))["[team-a]r.example.com/a:1"]))
	require.Zero(t, testutil.CollectAndCount(h.metrics.exceptions))
}
