package resolve_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// sound is a namespace with a key, a Verifier and a policy.
func sound(t *testing.T, name string) []string {
	t.Helper()
	return []string{written.Namespace(name, "1"), written.Object("TrustStore", name, "keys", written.InlineKey(string(written.NewKey(t).PEM))),
		written.Object("Verifier", name, "release", written.CosignVerifier),
		written.Object("VerificationPolicy", name, "strict", written.PolicySpec("{anyOf: [release]}"))}
}

// large has n policies with an expression of 4,000 bytes each; kind may be of the cluster.
func large(kind, where string, n int, more string) []string {
	var all []string
	for i := range n {
		all = append(all,
			written.Object(kind, where, fmt.Sprintf("large-%02d", i), more+written.PolicySpec("{expression: \""+strings.Repeat("findings == 1 || ", 240)+"true\"}")))
	}
	return all
}

func messageOf(t *testing.T, problems []resource.Problem, source policy.ObjectRef) string {
	t.Helper()
	for _, p := range problems {
		if p.Source == source {
			return p.Message
		}
	}
	require.Fail(t, "no problem", source)
	return ""
}

func TestANamespaceThatWeighsTooMuchDeniesAloneAndSaysWhatToDelete(t *testing.T) {
	other := sound(t, "team-b")
	hostile := append(sound(t, "team-a"), large("VerificationPolicy", "team-a", 20, "")...)
	snapshot, problems := written.Compiled(written.Objects(t, append(hostile, other...)...))
	message := messageOf(t, problems, policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "release"})
	for _, part := range []string{"the resources of namespace team-a take about 1", "the limit is 8192 KiB", "the largest is VerificationPolicy team-a/large-00",
		"delete what is not used"} {
		require.Contains(t, message, part)
	}
	for _, report := range conditions.Reports(snapshot, "team-a") {
		require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason)
		require.Contains(t, report.Ready.Message, "the limit is 8192 KiB")
	}
	broken, served := snapshot.For("team-a").Tiers[0], snapshot.For("team-b").Tiers[0]
	require.Contains(t, broken.Judge.Why(), "8192 KiB")
	require.Empty(t, broken.Verifiers, "nothing was compiled")
	require.Empty(t, broken.Judge.Rules(), "nothing was compiled")
	require.Empty(t, served.Judge.Why())
	require.NotNil(t, served.Verifiers[0].Checker)

	// The same for a change, and back.
	next, problems := snapshot.Next(resolve.Group(written.Objects(t, sound(t, "team-a")...)).Only("team-a"), nil)
	require.Empty(t, problems)
	require.Empty(t, next.For("team-a").Tiers[0].Judge.Why())
	last, problems := next.Next(resolve.Group(written.Objects(t, hostile...)).Only("team-a"), nil)
	require.NotEmpty(t, problems)
	require.Contains(t, last.For("team-a").Tiers[0].Judge.Why(), "8192 KiB")
	require.Same(t, next.For("team-b"), last.For("team-b"))
}

// A cluster over its limit is an admin's mistake: what depends on it denies, and only that.
func TestClusterResourcesThatWeighTooMuchDenyWhereTheyApply(t *testing.T) {
	store := "registries: [shared.example.com]"
	cluster := append(large("ClusterVerificationPolicy", "", 70, ""), written.Object("ClusterStore", "", "shared", store))
	snapshot, problems := written.Compiled(written.Objects(t, append(append(sound(t, "team-a"), cluster...), written.Namespace("team-b", "2"))...))
	require.Contains(t, messageOf(t, problems, policy.ObjectRef{Kind: "ClusterStore", Name: "shared"}), "the cluster resources take about")
	require.Contains(t, messageOf(t, problems, policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "large-00"}), "the limit is 32768 KiB")
	require.Empty(t, snapshot.For("team-a").Tiers[0].Judge.Why(), "it has its own")
	require.Len(t, snapshot.For("team-a").Tiers, 1, "a policy of scope Fallback is no mandatory policy")
	require.NotEmpty(t, snapshot.For("team-b").Tiers[0].Judge.Why())

	mandatory := append(large("ClusterVerificationPolicy", "", 70, ""),
		written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\n"+written.PolicySpec("{types: [Cosign]}")))
	snapshot, _ = written.Compiled(written.Objects(t, append(sound(t, "team-a"), mandatory...)...))
	tiers := snapshot.For("team-a").Tiers
	require.Len(t, tiers, 2)
	require.Contains(t, tiers[1].Judge.Why(), "ClusterVerificationPolicy mandatory cannot be used")
}

// What a ClusterTrustStore holds weighs in the namespaces that name it.
func TestASmallerClusterTrustStoreEndsTheDenialOfWhoeverNamesIt(t *testing.T) {
	documents := []string{written.Namespace("team-a", "1")}
	for i := range 120 {
		documents = append(documents,
			written.Object("Verifier", "team-a", fmt.Sprint("v", i), "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: shared, kind: ClusterTrustStore}], "+
				"insecureIgnoreTransparencyLog: true}}"))
	}
	few := written.Object("ClusterTrustStore", "", "shared", written.InlineKey(string(written.NewKey(t).PEM)))
	many := written.Object("ClusterTrustStore", "", "shared", written.InlineKey(strings.Repeat(string(written.NewKey(t).PEM), 16)))
	snapshot, problems := written.Compiled(written.Objects(t, append(documents, few)...))
	require.Empty(t, problems)
	snapshot, _ = snapshot.Next(resolve.Group(written.Objects(t, many)).Only(verify.Cluster), nil)
	require.Contains(t, snapshot.For("team-a").Tiers[0].Judge.Why(), "use a key or certificate in fewer Verifiers")
	snapshot, _ = snapshot.Next(resolve.Group(written.Objects(t, few)).Only(verify.Cluster), nil)
	require.Empty(t, snapshot.For("team-a").Tiers[0].Judge.Why())
}

// costly is a policy whose patterns may take steps thousand steps for one image.
func costly(kind, where, name string, rules int) string {
	pattern := "r.io/" + strings.Repeat("**/*a*/", 15) + "b"
	images := strings.Repeat(pattern+", ", 4)
	return written.Object(kind, where, name, "rules: ["+strings.Repeat("{images: ["+images+"], action: Deny}, ", rules)+"]")
}

func TestPatternsThatCostARequestTooMuchDenyInTheirNamespaceAlone(t *testing.T) {
	for name, extra := range map[string][]string{
		"one policy":     {costly("VerificationPolicy", "team-a", "costly", 4)},
		"one that warns": {strings.Replace(costly("VerificationPolicy", "team-a", "costly", 4), "spec:", "spec:\n  enforcementAction: Warn", 1)},
		"several": {costly("VerificationPolicy", "team-a", "costly", 1), costly("VerificationPolicy", "team-a", "costly-2", 1),
			costly("VerificationPolicy", "team-a", "costly-3", 1)},
		"asked for often": {written.Object("Verifier", "team-a", "costly", "images: [\"r.io/"+strings.Repeat("**/*a*/", 10)+"b\"]\n"+written.CosignVerifier),
			written.Object("VerificationPolicy", "team-a", "costly", written.PolicySpec(strings.Repeat("{types: [Cosign]}, ", 16)))},
	} {
		snapshot, problems := written.Compiled(written.Objects(t, append(append(sound(t, "team-a"), extra...), sound(t, "team-b")...)...))
		require.NotEmpty(t, problems, name)
		require.Contains(t, messageOf(t, problems, policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "costly"}),
			"the limit is 50000; most are by VerificationPolicy team-a/costly", name)
		for _, tier := range snapshot.For("team-a").Tiers {
			require.Contains(t, tier.Judge.Why(), "namespace team-a has too many rules or patterns", name)
			require.Empty(t, tier.Judge.Rules(), name)
		}
		require.Empty(t, snapshot.For("team-b").Tiers[0].Judge.Why(), name)
	}
}

func TestVerifiersWithoutAPolicyAreBoundedToo(t *testing.T) {
	documents := []string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", written.InlineKey(string(written.NewKey(t).PEM)))}
	for i := range 4 {
		documents = append(documents,
			written.Object("Verifier", "team-a", fmt.Sprint("v", i), "images: [\"r.io/"+strings.Repeat("**/*a*/", 15)+"b\"]\n"+written.CosignVerifier))
	}
	snapshot, problems := written.Compiled(written.Objects(t, documents...))
	require.Len(t, problems, 4)
	require.Contains(t, snapshot.For("team-a").Tiers[0].Judge.Why(), "too many rules or patterns")

	// Of the cluster: anyone who has none of their own is denied.
	for i := range documents {
		documents[i] = strings.NewReplacer("kind: TrustStore", "kind: ClusterTrustStore", "kind: Verifier", "kind: ClusterVerifier", ", namespace: team-a", "").
			Replace(documents[i])
	}
	snapshot, problems = written.Compiled(written.Objects(t, append(documents, sound(t, "team-b")...)...))
	require.Len(t, problems, 4)
	for _, v := range snapshot.For("team-a").Tiers[0].Verifiers {
		require.NotEmpty(t, v.Broken)
		require.Nil(t, v.Checker)
	}
	require.Empty(t, snapshot.For("team-b").Tiers[0].Judge.Why())
}

func TestCostlyPoliciesOfTheClusterDenyWhereTheyApply(t *testing.T) {
	for name, more := range map[string]string{"fallback": "spec:", "mandatory": "spec:\n  scope: Mandatory"} {
		snapshot, problems := written.Compiled(
			written.Objects(t,
				append(sound(t, "team-a"), written.Namespace("team-b", "2"), strings.Replace(costly("ClusterVerificationPolicy", "", "costly", 4), "spec:", more, 1))...))
		require.Len(t, problems, 1, name)
		require.Contains(t, problems[0].Message, "the limit is 50000", name)
		denied := map[verify.Namespace]bool{}
		for _, namespace := range []verify.Namespace{"team-a", "team-b"} {
			for _, tier := range snapshot.For(namespace).Tiers {
				denied[namespace] = denied[namespace] || tier.Judge.Why() != ""
			}
		}
		require.Equal(t, map[verify.Namespace]bool{"team-a": name == "mandatory", "team-b": true}, denied, name)
	}
}

// What an admin permits for a host holds for the Stores of namespaces, whatever becomes of
// the ClusterStore's own credentials.
func TestAHostStaysPermittedWhenTheClusterStoresCredentialsAreGone(t *testing.T) {
	o := written.Objects(t, append(sound(t, "team-a"), written.Namespace("team-b", "2"),
		written.Object("Store", "team-a", "own", "registries: [\"10.0.0.1:5000\"]"),
		written.Object("ClusterStore", "", "shared", "registries: [\"10.0.0.1:5000\"]\ninsecurePlainHTTP: true\nimagePullSecrets: [{name: gone}]"))...)
	snapshot, problems := written.Compiled(o)
	require.Len(t, problems, 1)
	for _, namespace := range []verify.Namespace{"team-a", "team-b"} {
		client, ok := snapshot.For(namespace).Tiers[0].Registry.(*written.NoRegistry)
		require.True(t, ok)
		require.Equal(t, map[string]registry.HostRule{"10.0.0.1:5000": {Private: true, PlainHTTP: true}}, client.Access.Hosts, namespace)
		require.Equal(t, namespace == "team-b", client.Access.Stores[0].Broken != nil, "who uses its credentials is denied")
	}
}

// The API server refuses a condition of more than 32 KiB, for ever.
func TestNoMessageIsLongerThanAConditionMayBe(t *testing.T) {
	long := func(i int) string { return fmt.Sprintf("p%03d-%s", i, strings.Repeat("x", 245)) }
	var documents []string
	for i := range 140 {
		documents = append(documents, written.Object("VerificationPolicy", "team-a", long(i), "rules: [{images: [\"**\"], action: Deny}]"),
			written.Object("ClusterVerificationPolicy", "", long(i), written.PolicySpec("{expression: \"nonsense(\"}")))
	}
	var names []string
	for i := range 256 {
		names = append(names, fmt.Sprintf("n%03d%s", i, strings.Repeat("x", 59)))
	}
	for _, name := range []string{long(1), long(2)} {
		documents = append(documents, written.Object("ClusterQuota", "", name, "namespaces: ["+strings.Join(names, ", ")+"]\nmaxInFlight: 70"))
	}
	documents = append(documents, written.Object("Verifier", "team-a", "v", "type: "+strings.Repeat("x", 40_000)), written.Namespace("team-a", "1"))
	snapshot, problems := written.Compiled(written.Objects(t, documents...))
	require.NotEmpty(t, problems)
	for _, level := range []verify.Namespace{"team-a", verify.Cluster} {
		for source, report := range conditions.Reports(snapshot, level) {
			require.Less(t, len(report.Ready.Message), 4<<10, source)
			require.Less(t, len(report.Effective.Message), 4<<10, source)
			require.NotContains(t, report.Ready.Message, "\ufffd")
		}
	}
	report := conditions.Reports(snapshot, "team-a")[policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: long(0)}]
	require.Regexp(t, `p000-x+, p001-x+, p002-x+, p003-x+ and 136 more$`, report.Effective.Message, "at whole names")
}
