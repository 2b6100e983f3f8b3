package compile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func TestAChangeOfOneNamespaceIsAsIfEverythingWereCompiled(t *testing.T) {
	keys, others := inlineKey(string(newKey(t).PEM)), inlineKey(string(newKey(t).PEM))
	cluster := []string{object("ClusterTrustStore", "", "keys", keys), object("ClusterVerifier", "", "shared", cosignVerifier),
		object("ClusterVerificationPolicy", "", "floor", "enforcement: Floor\ndefault: Allow")}
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
			got, problems := was.With("team-a", objects(t, after...), nil)
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
	got, problems := was.With("team-a", resource.Objects{}, nil)
	require.Empty(t, problems)
	require.False(t, got.Has("team-a"))
	require.True(t, got.Has("team-b"))
	require.True(t, was.Has("team-a"), "a snapshot never changes")
	require.Panics(t, func() { was.With(verify.Cluster, resource.Objects{}, nil) })
}

func TestReferencesAreThoseThatTheirResourceMayMake(t *testing.T) {
	source := func(kind, namespace, name string) policy.ObjectRef {
		return policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}
	}
	o := objects(t,
		object("TrustStore", "team-a", "own", "type: PublicKeys\nsource: {secretRef: {name: s, key: k}}"),
		object("TrustStore", "team-a", "again", "type: PublicKeys\nsource: {secretRef: {name: s, key: other}}"),
		object("Store", "team-a", "pull", "registries: [r]\nimagePullSecrets: [{name: p}, {name: q}]\ncaBundle: {configMapRef: {name: ca, key: k}}"),
		object("ClusterTrustStore", "", "far", "type: PublicKeys\nsource: {configMapRef: {namespace: ops, name: c, key: k}}"),
		object("TrustStore", "team-b", "inline", "type: PublicKeys\nsource: {inline: x}"))
	// Definitions refuse these; whoever gets past them still reads nothing.
	for _, ref := range []v1alpha1.ObjectKeyRef{{Namespace: "team-b", Name: "theirs", Key: "k"}, {Name: "../../team-b/secrets/x", Key: "k"}, {Name: "", Key: "k"}} {
		s := v1alpha1.TrustStore{}
		s.Namespace, s.Name, s.Spec.Source.SecretRef = "team-a", "trick", &ref
		o.TrustStores = append(o.TrustStores, s)
	}
	stray := v1alpha1.ClusterTrustStore{}
	stray.Name, stray.Spec.Source.SecretRef = "stray", &v1alpha1.ObjectKeyRef{Namespace: "a/b", Name: "x", Key: "k"}
	o.ClusterTrustStores = append(o.ClusterTrustStores, stray)
	require.Equal(t, map[verify.Namespace][]policy.ObjectRef{
		"team-a":       {source("ConfigMap", "team-a", "ca"), source("Secret", "team-a", "p"), source("Secret", "team-a", "q"), source("Secret", "team-a", "s")},
		verify.Cluster: {source("ConfigMap", "ops", "c")},
	}, compile.References(o))
}

func TestProblemsTellWhatIsMissingFromWhatMayNotBeRead(t *testing.T) {
	o := objects(t, object("TrustStore", "team-a", "keys", "type: PublicKeys\nsource: {secretRef: {name: s, key: k}}"))
	reason := func() policy.Reason {
		_, problems := compiled(o)
		require.Len(t, problems, 1)
		return problems[0].Reason
	}
	require.Equal(t, policy.ReasonNotFound, reason())
	o.Broken = []resource.Broken{{Source: policy.ObjectRef{Kind: "Secret", Namespace: "team-a", Name: "s"}, Reason: policy.ReasonAccessDenied, Err: errors.New("no right")}}
	require.Equal(t, policy.ReasonAccessDenied, reason())
	o.Broken[0].Reason = ""
	require.Equal(t, policy.ReasonInvalid, reason())
}

// finder answers for namespaces as a test says.
type finder func(verify.Namespace) (bool, error)

func (f finder) Exists(_ context.Context, namespace verify.Namespace) (bool, error) {
	return f(namespace)
}

func TestUnknownNamespacesAreLookedForBeforeAnythingIsDecided(t *testing.T) {
	set := &tenant.Set{}
	allowAll := object("ClusterVerificationPolicy", "", "lax", "default: Allow")
	snapshot, _ := compiled(objects(t, allowAll, namespace("team-a", "1")))
	set.Swap(snapshot)
	asked := 0
	answer := func(verify.Namespace) (bool, error) { return false, nil }
	memory := verify.NewEngine(nothing{}, time.Now, verify.Options{})
	service := tenant.NewService(set, memory, finder(func(n verify.Namespace) (bool, error) { asked++; return answer(n) }))
	ref, err := image.Parse("r.example.com/app@sha256:0123456789012345678901234567890123456789012345678901234567890123")
	require.NoError(t, err)
	ask := func(n verify.Namespace) policy.Verdict { return service.Verify(t.Context(), n, ref).Verdict }

	require.Equal(t, policy.Allowed, ask("team-a").Outcome)
	require.Equal(t, policy.Allowed, ask(verify.Cluster).Outcome)
	require.Zero(t, asked, "what is known is not looked for")
	recalled := func(n verify.Namespace) bool { _, ok := service.Recall(n, ref); return ok }
	require.True(t, recalled("team-a"))
	require.True(t, recalled(verify.Cluster))
	require.False(t, recalled("nobody"), "nor recalled as the cluster's")
	require.Zero(t, asked)

	ahead := []func(context.Context, verify.Namespace, image.Reference) verify.Result{service.Warm, service.Refresh}
	for _, answered := range ahead {
		require.Equal(t, policy.Allowed, answered(t.Context(), "team-a", ref).Verdict.Outcome)
		require.Equal(t, policy.Undecided, answered(t.Context(), "nobody", ref).Verdict.Outcome, "nor verified ahead")
	}
	early := tenant.NewService(&tenant.Set{}, memory, nil)
	require.Equal(t, policy.Undecided, early.Warm(t.Context(), "team-a", ref).Verdict.Outcome)
	require.Equal(t, policy.Undecided, early.Refresh(t.Context(), "team-a", ref).Verdict.Outcome)
	require.Zero(t, asked)

	verdict := ask("nobody")
	require.Equal(t, policy.Denied, verdict.Outcome)
	require.Equal(t, "namespace nobody does not exist", verdict.Reason)
	_, err = service.Resolve(t.Context(), "nobody", ref)
	require.True(t, verify.IsPermanent(err))

	answer = func(verify.Namespace) (bool, error) { return false, errors.New("the API server is down") }
	require.Equal(t, policy.Undecided, ask("nobody").Outcome, "a failed look-up is no answer")

	answer = func(n verify.Namespace) (bool, error) { return true, nil }
	require.Equal(t, policy.Undecided, ask("late").Outcome, "it is not in the snapshot in time")

	answer = func(n verify.Namespace) (bool, error) { // its objects arrive a moment later
		next, _ := snapshot.With(n, objects(t, namespace(string(n), "3"), object("VerificationPolicy", string(n), "strict", "default: Deny")), nil)
		set.Swap(next)
		return true, nil
	}
	require.Equal(t, policy.Denied, ask("new").Outcome, "by its own policy, not the cluster's")
}

// nothing is a cache that keeps nothing.
type nothing struct{}

func (nothing) Recall(verify.Key) (verify.Entry, bool)                       { return verify.Entry{}, false }
func (nothing) Get(context.Context, verify.Key) (verify.Entry, bool)         { return verify.Entry{}, false }
func (nothing) Put(context.Context, verify.Key, verify.Entry, time.Duration) {}

func TestANamespaceWithTooManyResourcesDeniesAndSaysSo(t *testing.T) {
	o := objects(t, namespace("team-a", "1"))
	lax := v1alpha1.VerificationPolicy{Spec: v1alpha1.VerificationPolicySpec{Default: v1alpha1.DefaultAllow}}
	for i := range 257 {
		lax.Namespace, lax.Name = "team-a", fmt.Sprintf("p%03d", i)
		o.VerificationPolicies = append(o.VerificationPolicies, lax)
	}
	snapshot, problems := compiled(o)
	require.Len(t, problems, 257)
	require.Equal(t, "namespace team-a has 257 resources, the limit is 256: delete some", problems[0].Message)
	require.Equal(t, problems[0].Message, snapshot.For("team-a").Layers[0].Broken)
	o.VerificationPolicies = o.VerificationPolicies[1:]
	snapshot, problems = compiled(o)
	require.Empty(t, problems)
	require.Empty(t, snapshot.For("team-a").Layers[0].Broken)
}
