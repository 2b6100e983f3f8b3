package compile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestAChangeOfOneNamespaceIsAsIfEverythingWereCompiled(t *testing.T) {
	keys, others := inlineKey(string(newKey(t).PEM)), inlineKey(string(newKey(t).PEM))
	cluster := []string{object("ClusterTrustStore", "", "keys", keys), object("ClusterVerifier", "", "shared", cosignVerifier),
		object("ClusterVerificationPolicy", "", "mandatory", "scope: Mandatory\ndefaultAction: Allow")}
	before := []string{namespace("team-a", "1"), object("TrustStore", "team-a", "keys", keys), object("Verifier", "team-a", "own", cosignVerifier)}
	other := []string{namespace("team-b", "2"), object("TrustStore", "team-b", "keys", keys), object("Verifier", "team-b", "own", cosignVerifier)}
	for name, after := range map[string][]string{
		"another key":       {namespace("team-a", "1"), object("TrustStore", "team-a", "keys", others), object("Verifier", "team-a", "own", cosignVerifier)},
		"broken":            {namespace("team-a", "1"), object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {inline: x}"), object("Verifier", "team-a", "own", cosignVerifier)},
		"no Verifier":       {namespace("team-a", "1")},
		"another namespace": {namespace("team-a", "9")},
		"nothing changed":   before,
	} {
		t.Run(name, func(t *testing.T) {
			was, _ := compiled(objects(t, append(append(cluster, before...), other...)...))
			whole, wholeProblems := compiled(objects(t, append(append(cluster, after...), other...)...))
			got, problems := was.With("team-a", compile.Group(objects(t, after...)), nil)
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

func TestANamespaceThatIsGoneIsNotInTheSnapshot(t *testing.T) {
	was, _ := compiled(objects(t, namespace("team-a", "1"), namespace("team-b", "2")))
	require.True(t, was.Has("team-a"))
	got, problems := was.With("team-a", compile.Group(resource.Objects{}), nil)
	require.Empty(t, problems)
	require.False(t, got.Has("team-a"))
	require.True(t, got.Has("team-b"))
	require.True(t, was.Has("team-a"), "a snapshot never changes")
	require.Panics(t, func() { was.With(verify.Cluster, compile.Group(resource.Objects{}), nil) })
}

func TestReferencesAreThoseThatTheirResourceMayMake(t *testing.T) {
	source := func(kind, namespace, name string) policy.ObjectRef {
		return policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}
	}
	o := objects(t,
		object("TrustStore", "team-a", "own", "type: PublicKeys\nsource: {secretKeyRef: {name: s, key: k}}"),
		object("TrustStore", "team-a", "again", "type: PublicKeys\nsource: {secretKeyRef: {name: s, key: other}}"),
		object("Store", "team-a", "pull", "registries: [r]\nimagePullSecrets: [{name: p}, {name: q}]\ncaBundle: {configMapKeyRef: {name: ca, key: k}}"),
		object("ClusterTrustStore", "", "far", "type: PublicKeys\nsource: {configMapKeyRef: {name: c, key: k}}"),
		object("TrustStore", "team-b", "inline", "type: PublicKeys\nsource: {inline: x}"))
	// CRDs refuse these; whoever gets past them still reads nothing.
	for _, ref := range []v1beta1.KeyReference{{Name: "../../team-b/secrets/x", Key: "k"}, {Name: "", Key: "k"}} {
		trick := &v1beta1.TrustStore{}
		trick.Namespace, trick.Name, trick.Spec.Source.SecretKeyRef = "team-a", "trick", &ref
		require.NoError(t, o.Add(trick))
	}
	require.Equal(t, map[verify.Namespace][]policy.ObjectRef{
		"team-a":       {source("ConfigMap", "team-a", "ca"), source("Secret", "team-a", "p"), source("Secret", "team-a", "q"), source("Secret", "team-a", "s")},
		verify.Cluster: {source("ConfigMap", "landwaiter-system", "c")},
	}, compile.References(o))
}

func TestProblemsTellWhatIsMissingFromWhatMayNotBeRead(t *testing.T) {
	o := objects(t, object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {secretKeyRef: {name: s, key: k}}"))
	reason := func() policy.Reason {
		_, problems := compiled(o)
		require.Len(t, problems, 1)
		return problems[0].Reason
	}
	require.Equal(t, policy.ReasonNotFound, reason())
	o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "Secret", Namespace: "team-a", Name: "s"}, Reason: policy.ReasonAccessDenied, Err: errors.New("no permission")}}
	require.Equal(t, policy.ReasonAccessDenied, reason())
	o.Broken[0].Reason = ""
	require.Equal(t, policy.ReasonInvalid, reason())
}

func TestWhatAMissingRightMendsIsTheCommandThatGrantsIt(t *testing.T) {
	o := objects(t, object("Store", "team-a", "own", "registries: [r.example.com]\nimagePullSecrets: [{name: s}]"))
	o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "Secret", Namespace: "team-a", Name: "s"}, Reason: policy.ReasonAccessDenied,
		Err: resource.Ungranted(errors.New("no permission"), "kubectl create rolebinding r")}}
	snapshot, problems := compiled(o)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Message, "no permission; grant it with: kubectl create rolebinding r")
	store := snapshot.For("team-a").Layers[0].Registry.(*noRegistry).access.Stores[0]
	require.True(t, strings.HasSuffix(store.Broken.Error(), "Secret team-a/s cannot be read: no permission"), store.Broken)
	require.Equal(t, "kubectl create rolebinding r", verify.FindingOf(store.Broken).Remediation)
}

func TestANamespaceWithTooManyResourcesDeniesAndSaysSo(t *testing.T) {
	o := objects(t, namespace("team-a", "1"))
	for i := range 257 {
		lax := &v1beta1.VerificationPolicy{Spec: v1beta1.VerificationPolicySpec{DefaultAction: v1beta1.DefaultActionAllow}}
		lax.Namespace, lax.Name = "team-a", fmt.Sprintf("p%03d", i)
		require.NoError(t, o.Add(lax))
	}
	snapshot, problems := compiled(o)
	require.Len(t, problems, 257)
	require.Equal(t, "namespace team-a has 257 resources, the limit is 256: delete some", problems[0].Message)
	require.Equal(t, problems[0].Message, snapshot.For("team-a").Layers[0].Judge.Why())
	o.Resources = o.Resources[1:]
	snapshot, problems = compiled(o)
	require.Empty(t, problems)
	require.Empty(t, snapshot.For("team-a").Layers[0].Judge.Why())
}
