package resolve_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestQuotasReachTheNamespacesThatTheyName(t *testing.T) {
	snapshot, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"), written.Namespace("team-c", "3"),
		written.Object("ClusterQuota", "", "busy", "namespaces: [team-a, team-b]\nmaxInFlight: 70\nregistryRequestsPerSecond: 8\ncacheSharePercent: 9")))
	require.Empty(t, problems)
	want := verify.Limits{InFlight: 70, RegistryPerSecond: 8, CachePercent: 9}
	for name, limits := range map[verify.Namespace]verify.Limits{"team-a": want, "team-b": want, "team-c": {}, verify.Cluster: {}} {
		config := snapshot.For(name)
		require.Equal(t, limits, config.Limits, name)
		client, ok := config.Tiers[0].Registry.(*written.NoRegistry)
		require.True(t, ok)
		require.Equal(t, limits.RegistryPerSecond, client.Access.PerSecond, name)
	}
	next, problems := snapshot.Next(
		resolve.Group(written.Objects(t, written.Namespace("team-a", "1"), written.Object("VerificationPolicy", "team-a", "own", "defaultAction: Deny"))).
			Only("team-a"), nil)
	require.Empty(t, problems)
	require.Equal(t, want, next.For("team-a").Limits, "a change of the namespace's own leaves them")
}

func TestQuotasChangeNoVerdict(t *testing.T) {
	without, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1")))
	with, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("ClusterQuota", "", "busy", "namespaces: [team-a]\nmaxInFlight: 70")))
	require.Equal(t, without.For("team-a").Generation, with.For("team-a").Generation)
}

func TestQuotasThatCannotBeUsedAreReportedAndLeaveTheDefaults(t *testing.T) {
	const refused = "this version's CRD refuses it"
	source := policy.ObjectRef{Kind: "ClusterQuota", Name: "b"}
	for name, c := range map[string]struct {
		documents []string
		broken    []resource.Broken
		says      string
		want      verify.Limits // of team-a
	}{
		"for nobody":       {[]string{written.Object("ClusterQuota", "", "b", "maxInFlight: 70")}, nil, refused, verify.Limits{}},
		"without a limit":  {[]string{written.Object("ClusterQuota", "", "b", "namespaces: [team-a]")}, nil, refused, verify.Limits{}},
		"below nothing":    {[]string{written.Object("ClusterQuota", "", "b", "namespaces: [team-a]\nmaxInFlight: -1")}, nil, refused, verify.Limits{}},
		"for no pod":       {[]string{written.Object("ClusterQuota", "", "b", "namespaces: [team-a]\nmaxInFlight: 31")}, nil, refused, verify.Limits{}},
		"slower than none": {[]string{written.Object("ClusterQuota", "", "b", "namespaces: [team-a]\nregistryRequestsPerSecond: -1")}, nil, refused, verify.Limits{}},
		"more than all":    {[]string{written.Object("ClusterQuota", "", "b", "namespaces: [team-a]\ncacheSharePercent: 101")}, nil, refused, verify.Limits{}},
		"no namespace": {[]string{written.Object("ClusterQuota", "", "b", "namespaces: [team-a, 'team-*']\ncacheSharePercent: 1")}, nil, refused,
			verify.Limits{}},
		"cannot be read": {nil, []resource.Broken{{Source: source, Err: errors.New("unknown field spec.images")}}, "unknown field", verify.Limits{}},
		"named by another": {[]string{written.Object("ClusterQuota", "", "b", "namespaces: [team-a, team-b, team-b]\nmaxInFlight: 70"),
			written.Object("ClusterQuota", "", "a", "namespaces: [team-a]\nmaxInFlight: 80")}, nil,
			"namespace team-a has that of ClusterQuota a; the first by name applies, and this one to the rest of its lists", verify.Limits{InFlight: 80}},
	} {
		t.Run(name, func(t *testing.T) {
			o := written.Objects(t, append(c.documents, written.Namespace("team-a", "1"))...)
			o.Broken = c.broken
			if c.says == refused {
				o = written.AsRead(t, o)
			}
			snapshot, problems := written.Compiled(o)
			require.Len(t, problems, 1)
			require.Equal(t, source, problems[0].Source)
			require.Contains(t, problems[0].Message, c.says)
			require.Equal(t, name == "named by another", problems[0].Reason == policy.ReasonConflict)
			require.Equal(t, c.want, snapshot.For("team-a").Limits)
			require.Equal(t, c.want != verify.Limits{}, snapshot.For("team-b").Limits == verify.Limits{InFlight: 70})
		})
	}
}
