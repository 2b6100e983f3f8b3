package resolve_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestAChangeOfOneNamespaceIsAsIfEverythingWereCompiled(t *testing.T) {
	keys, others := written.InlineKey(string(written.NewKey(t).PEM)), written.InlineKey(string(written.NewKey(t).PEM))
	cluster := []string{written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "shared", written.CosignVerifier),
		written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\ndefaultAction: Allow")}
	before := []string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", keys),
		written.Object("Verifier", "team-a", "own", written.CosignVerifier)}
	other := []string{written.Namespace("team-b", "2"), written.Object("TrustStore", "team-b", "keys", keys),
		written.Object("Verifier", "team-b", "own", written.CosignVerifier)}
	for name, after := range map[string][]string{
		"another key": {written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", others),
			written.Object("Verifier", "team-a", "own", written.CosignVerifier)},
		"broken": {written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {inline: x}"),
			written.Object("Verifier", "team-a", "own", written.CosignVerifier)},
		"no Verifier":       {written.Namespace("team-a", "1")},
		"another namespace": {written.Namespace("team-a", "9")},
		"nothing changed":   before,
	} {
		t.Run(name, func(t *testing.T) {
			was, _ := written.Compiled(written.Objects(t, append(append(cluster, before...), other...)...))
			whole, wholeProblems := written.Compiled(written.Objects(t, append(append(cluster, after...), other...)...))
			got, problems := was.Next(resolve.Group(written.Objects(t, after...)).Only("team-a"), nil)
			require.Equal(t, wholeProblems, problems)
			for _, n := range []verify.Namespace{"team-a", "team-b", "team-c", verify.Cluster} {
				require.Equal(t, whole.For(n).Generation, got.For(n).Generation, n)
				require.Equal(t, whole.For(n).UID, got.For(n).UID, n)
				require.Equal(t, whole.Explain(n), got.Explain(n), n)
			}
			require.Same(t, was.For("team-b"), got.For("team-b"), "others are not touched")
			if name != "nothing changed" {
				require.NotEqual(t, [2]string{was.For("team-a").UID, was.For("team-a").Generation}, [2]string{got.For("team-a").UID, got.For("team-a").Generation})
			}
		})
	}
}

func TestClusterVerifiersConcernANamespaceWithItsOwnOnlyThroughMandatoryPolicies(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	mandatory := written.Object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\n"+written.PolicySpec("anyOf: [shared]"))
	cluster := []string{written.Object("ClusterTrustStore", "", "keys", keys), written.Object("ClusterVerifier", "", "shared", written.CosignVerifier)}
	edited := []string{cluster[0], written.Object("ClusterVerifier", "", "shared", written.CosignVerifier+"\nimages: [r.example.com/**]")}
	team := []string{written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", keys),
		written.Object("Verifier", "team-a", "own", written.CosignVerifier),
		written.Object("VerificationPolicy", "team-a", "own", written.PolicySpec("anyOf: [own]"))}
	for name, more := range map[string][]string{"without one": nil, "with one": {mandatory}} {
		was, _ := written.Compiled(written.Objects(t, slices.Concat(cluster, more, team)...))
		got, _ := was.Next(resolve.Group(written.Objects(t, slices.Concat(edited, more)...)).Only(verify.Cluster), nil)
		whole, _ := written.Compiled(written.Objects(t, slices.Concat(edited, more, team)...))
		require.Equal(t, whole.For("team-a").Generation, got.For("team-a").Generation, name)
		require.Equal(t, more == nil, was.For("team-a") == got.For("team-a"), "%s: a view is only linked again if it uses what changed", name)
	}
}

func TestANamespaceThatIsGoneIsNotInTheSnapshot(t *testing.T) {
	was, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"), written.Namespace("team-b", "2")))
	require.True(t, was.Has("team-a"))
	got, problems := was.Next(resolve.Group(resource.Objects{}).Only("team-a"), nil)
	require.Empty(t, problems)
	require.False(t, got.Has("team-a"))
	require.True(t, got.Has("team-b"))
	require.True(t, was.Has("team-a"), "a snapshot never changes")
}

func TestReferencesAreThoseThatTheirResourceMayMake(t *testing.T) {
	source := func(kind, namespace, name string) policy.ObjectRef {
		return policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}
	}
	o := written.Objects(t,
		written.Object("TrustStore", "team-a", "own", "type: PublicKeys\nsource: {secretKeyRef: {name: s, key: k}}"),
		written.Object("TrustStore", "team-a", "again", "type: PublicKeys\nsource: {secretKeyRef: {name: s, key: other}}"),
		written.Object("Store", "team-a", "pull", "registries: [r]\nimagePullSecrets: [{name: p}, {name: q}]\ncaBundle: {configMapKeyRef: {name: ca, key: k}}"),
		written.Object("ClusterTrustStore", "", "far", "type: PublicKeys\nsource: {configMapKeyRef: {name: c, key: k}}"),
		written.Object("TrustStore", "team-b", "inline", "type: PublicKeys\nsource: {inline: x}"))
	// CRDs refuse these; whoever gets past them still reads nothing.
	for _, ref := range []v1beta1.KeyReference{{Name: "../../team-b/secrets/x", Key: "k"}, {Name: "", Key: "k"}} {
		trick := &v1beta1.TrustStore{}
		trick.Namespace, trick.Name, trick.Spec.Source.SecretKeyRef = "team-a", "trick", &ref
		require.NoError(t, o.Add(trick))
	}
	require.Equal(t, map[verify.Namespace][]policy.ObjectRef{
		"team-a":       {source("ConfigMap", "team-a", "ca"), source("Secret", "team-a", "p"), source("Secret", "team-a", "q"), source("Secret", "team-a", "s")},
		verify.Cluster: {source("ConfigMap", "landwaiter-system", "c")},
	}, resolve.References(o))
}

func TestProblemsTellWhatIsMissingFromWhatMayNotBeRead(t *testing.T) {
	o := written.Objects(t, written.Object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: s, key: k}}"))
	reason := func() policy.Reason {
		_, problems := written.Compiled(o)
		require.Len(t, problems, 1)
		return problems[0].Reason
	}
	require.Equal(t, policy.ReasonNotFound, reason())
	o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "Secret", Namespace: "team-a", Name: "s"}, Reason: policy.ReasonAccessDenied,
		Err: errors.New("no permission")}}
	require.Equal(t, policy.ReasonAccessDenied, reason())
	o.Broken[0].Reason = ""
	require.Equal(t, policy.ReasonInvalid, reason())
}

func TestWhatAMissingRightMendsIsTheCommandThatGrantsIt(t *testing.T) {
	o := written.Objects(t, written.Object("Store", "team-a", "own", "registries: [r.example.com]\nimagePullSecrets: [{name: s}]"))
	o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "Secret", Namespace: "team-a", Name: "s"}, Reason: policy.ReasonAccessDenied,
		Err: resource.Ungranted(errors.New("no permission"), "kubectl create rolebinding r")}}
	snapshot, problems := written.Compiled(o)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Message, "no permission; grant it with: kubectl create rolebinding r")
	store := snapshot.For("team-a").Tiers[0].Registry.(*written.NoRegistry).Access.Stores[0]
	require.True(t, strings.HasSuffix(store.Broken.Error(), "Secret team-a/s cannot be read: no permission"), store.Broken)
	require.Equal(t, "kubectl create rolebinding r", verify.FindingOf(store.Broken).Remediation)
}

func TestANamespaceWithTooManyResourcesDeniesAndSaysSo(t *testing.T) {
	o := written.Objects(t, written.Namespace("team-a", "1"))
	for i := range 257 {
		lax := &v1beta1.VerificationPolicy{Spec: v1beta1.VerificationPolicySpec{DefaultAction: v1beta1.DefaultActionAllow}}
		lax.Namespace, lax.Name = "team-a", fmt.Sprintf("p%03d", i)
		require.NoError(t, o.Add(lax))
	}
	snapshot, problems := written.Compiled(o)
	require.Len(t, problems, 257)
	require.Equal(t, "namespace team-a has 257 resources, the limit is 256: delete some", problems[0].Message)
	require.Equal(t, problems[0].Message, snapshot.For("team-a").Tiers[0].Judge.Why())
	o.Resources = o.Resources[1:]
	snapshot, problems = written.Compiled(o)
	require.Empty(t, problems)
	require.Empty(t, snapshot.For("team-a").Tiers[0].Judge.Why())
}
