package compile_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func TestLimitsReachTheNamespacesThatTheyName(t *testing.T) {
	snapshot, problems := compiled(objects(t, namespace("team-a", "1"), namespace("team-c", "3"),
		object("ClusterLimits", "", "busy", "namespaces: [team-a, team-b]\nimagesInWork: 70\nregistryRequestsPerSecond: 8\ncachePercent: 9")))
	require.Empty(t, problems)
	want := verify.Limits{InFlight: 70, RegistryPerSecond: 8, CachePercent: 9}
	for name, limits := range map[verify.Namespace]verify.Limits{"team-a": want, "team-b": want, "team-c": {}, verify.Cluster: {}} {
		config := snapshot.For(name)
		require.Equal(t, limits, config.Limits, name)
		client, ok := config.Layers[0].Registry.(*noRegistry)
		require.True(t, ok)
		require.Equal(t, limits.RegistryPerSecond, client.access.PerSecond, name)
	}
	next, problems := snapshot.With("team-a", objects(t, namespace("team-a", "1"), object("VerificationPolicy", "team-a", "own", "default: Deny")), nil)
	require.Empty(t, problems)
	require.Equal(t, want, next.For("team-a").Limits, "a change of the namespace's own leaves them")
}

func TestLimitsChangeNoVerdict(t *testing.T) {
	without, _ := compiled(objects(t, namespace("team-a", "1")))
	with, _ := compiled(objects(t, namespace("team-a", "1"), object("ClusterLimits", "", "busy", "namespaces: [team-a]\nimagesInWork: 70")))
	require.Equal(t, without.For("team-a").Generation, with.For("team-a").Generation)
}

func TestLimitsThatCannotBeUsedAreReportedAndLeaveTheDefaults(t *testing.T) {
	source := policy.ObjectRef{Kind: "ClusterLimits", Name: "b"}
	for name, c := range map[string]struct {
		documents []string
		broken    []resource.Broken
		says      string
		want      verify.Limits // of team-a
	}{
		"for nobody":       {[]string{object("ClusterLimits", "", "b", "imagesInWork: 70")}, nil, "spec.namespaces is empty", verify.Limits{}},
		"without a limit":  {[]string{object("ClusterLimits", "", "b", "namespaces: [team-a]")}, nil, "sets none of", verify.Limits{}},
		"below nothing":    {[]string{object("ClusterLimits", "", "b", "namespaces: [team-a]\nimagesInWork: -1")}, nil, "the least is 32", verify.Limits{}},
		"for no pod":       {[]string{object("ClusterLimits", "", "b", "namespaces: [team-a]\nimagesInWork: 31")}, nil, "the least is 32", verify.Limits{}},
		"slower than none": {[]string{object("ClusterLimits", "", "b", "namespaces: [team-a]\nregistryRequestsPerSecond: -1")}, nil, "below 1", verify.Limits{}},
		"more than all":    {[]string{object("ClusterLimits", "", "b", "namespaces: [team-a]\ncachePercent: 101")}, nil, "the most is 100", verify.Limits{}},
		"no namespace":     {[]string{object("ClusterLimits", "", "b", "namespaces: [team-a, 'team-*']\ncachePercent: 1")}, nil, "not a DNS-1123 label", verify.Limits{}},
		"cannot be read":   {nil, []resource.Broken{{Source: source, Err: errors.New("unknown field spec.images")}}, "unknown field", verify.Limits{}},
		"named by another": {[]string{object("ClusterLimits", "", "b", "namespaces: [team-a, team-b, team-b]\nimagesInWork: 70"), object("ClusterLimits", "", "a", "namespaces: [team-a]\nimagesInWork: 80")}, nil,
			"namespace team-a has those of ClusterLimits a; the first by name applies, and this one to its other namespaces", verify.Limits{InFlight: 80}},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects(t, append(c.documents, namespace("team-a", "1"))...)
			o.Broken = c.broken
			snapshot, problems := compiled(o)
			require.Len(t, problems, 1)
			require.Equal(t, source, problems[0].Source)
			require.Contains(t, problems[0].Message, c.says)
			require.Equal(t, c.want, snapshot.For("team-a").Limits)
			require.Equal(t, c.want != verify.Limits{}, snapshot.For("team-b").Limits == verify.Limits{InFlight: 70})
		})
	}
}
