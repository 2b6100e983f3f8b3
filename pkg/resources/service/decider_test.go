package service_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// closed is a registry that no test here asks anything.
type closed struct{ verify.Registry }

func outside() resolve.Outside {
	return resolve.Outside{Registry: func(registry.Access) verify.Registry { return closed{} }}
}

func namespace(name, uid string) corev1.Namespace {
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
}

func TestNothingIsDecidedBeforeTheFirstSnapshot(t *testing.T) {
	set := &service.Set{}
	_, err := set.For("team-a")
	require.ErrorIs(t, err, service.ErrNotReady)
	require.ErrorIs(t, set.Ready(), service.ErrNotReady)
	decider := service.NewDecider(set, verify.NewEngine(nil, nil, verify.Options{}), service.AnyNamespace{})
	ref, err := image.Parse("r.example.com/app:v1")
	require.NoError(t, err)
	require.Equal(t, policy.Undecided, decider.Verify(t.Context(), "team-a", ref).Verdict.Outcome())
	_, known := decider.Recall("team-a", ref)
	require.False(t, known)
	_, err = decider.Resolve(t.Context(), "team-a", ref)
	require.ErrorIs(t, err, service.ErrNotReady)
	snapshot, _ := resolve.Empty(outside()).Next(resolve.Group(resource.Objects{}), nil)
	set.Swap(snapshot)
	require.NoError(t, set.Ready())
}

// finder answers for namespaces as a test says.
type finder func(verify.Namespace) (bool, error)

func (f finder) Exists(_ context.Context, namespace verify.Namespace) (bool, error) {
	return f(namespace)
}

func TestUnknownNamespacesAreLookedForBeforeAnythingIsDecided(t *testing.T) {
	set := &service.Set{}
	allowAll := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "lax"}}
	allowAll.Spec.DefaultAction = v1beta1.DefaultActionAllow
	snapshot, _ := resolve.Empty(outside()).
		Next(resolve.Group(resource.Objects{Namespaces: []corev1.Namespace{namespace("team-a", "1")}, Resources: []v1beta1.Object{allowAll}}), nil)
	set.Swap(snapshot)
	asked := 0
	answer := func(verify.Namespace) (bool, error) { return false, nil }
	memory := verify.NewEngine(nothing{}, time.Now, verify.Options{})
	decider := service.NewDecider(set, memory, finder(func(n verify.Namespace) (bool, error) { asked++; return answer(n) }))
	ref, err := image.Parse("r.example.com/app@sha256:0123456789012345678901234567890123456789012345678901234567890123")
	require.NoError(t, err)
	ask := func(n verify.Namespace) policy.Verdict { return decider.Verify(t.Context(), n, ref).Verdict }

	require.Equal(t, policy.Allowed, ask("team-a").Outcome())
	require.Equal(t, policy.Allowed, ask(verify.Cluster).Outcome())
	require.Zero(t, asked, "what is known is not looked for")
	recalled := func(n verify.Namespace) bool { _, ok := decider.Recall(n, ref); return ok }
	require.True(t, recalled("team-a"))
	require.True(t, recalled(verify.Cluster))
	require.False(t, recalled("nobody"), "nor recalled as the cluster's")
	require.Zero(t, asked)

	prefetching := []func(context.Context, verify.Namespace, image.Reference) verify.Result{decider.Warm, decider.Refresh}
	for _, answered := range prefetching {
		require.Equal(t, policy.Allowed, answered(t.Context(), "team-a", ref).Verdict.Outcome())
		require.Equal(t, policy.Undecided, answered(t.Context(), "nobody", ref).Verdict.Outcome(), "nor verified prefetching")
	}
	early := service.NewDecider(&service.Set{}, memory, service.AnyNamespace{})
	require.Equal(t, policy.Undecided, early.Warm(t.Context(), "team-a", ref).Verdict.Outcome())
	require.Equal(t, policy.Undecided, early.Refresh(t.Context(), "team-a", ref).Verdict.Outcome())
	require.Zero(t, asked)

	verdict := ask("nobody")
	require.Equal(t, policy.Denied, verdict.Outcome())
	require.Equal(t, "namespace nobody does not exist", verdict.Reason)
	_, err = decider.Resolve(t.Context(), "nobody", ref)
	require.True(t, verify.IsPermanent(err))

	answer = func(verify.Namespace) (bool, error) { return false, errors.New("the API server is down") }
	require.Equal(t, policy.Undecided, ask("nobody").Outcome(), "a failed look-up is no answer")

	synctest.Test(t, func(t *testing.T) {
		ask := func(n verify.Namespace) policy.Verdict { return decider.Verify(t.Context(), n, ref).Verdict }
		answer = func(n verify.Namespace) (bool, error) { return true, nil }
		require.Equal(t, policy.Undecided, ask("late").Outcome(), "it is not in the snapshot in time")

		answer = func(n verify.Namespace) (bool, error) { // its objects arrive a moment later
			strict := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: string(n), Name: "strict"}}
			next, _ := snapshot.Next(resolve.Group(resource.Objects{Namespaces: []corev1.Namespace{namespace(string(n), "3")}, Resources: []v1beta1.Object{strict}}).
				Only(n), nil)
			time.AfterFunc(time.Millisecond, func() { set.Swap(next) })
			return true, nil
		}
		require.Equal(t, policy.Denied, ask("new").Outcome(), "by its own policy, not the cluster's")
	})
}

// Running pods are judged again as soon as it changes.
func TestAnotherExceptionIsAnotherGeneration(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	set := &service.Set{}
	decider := service.NewDecider(set, verify.NewEngine(nothing{}, func() time.Time { return now }, verify.Options{}), service.AnyNamespace{})
	exception := func(pattern string, mandatory bool) v1beta1.Object {
		x := &v1beta1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: "hotfix", CreationTimestamp: metav1.NewTime(now)}}
		x.Spec.Until, x.Spec.Reason, x.Spec.Images, x.Spec.Namespaces, x.Spec.OverrideMandatory = "2026-11-22T14:00:00Z", "OPS-1", []string{pattern},
			[]string{"team-a"}, mandatory
		return x
	}
	generations := func(annotations map[string]string, resources ...v1beta1.Object) [2]string {
		team := namespace("team-a", "1")
		team.Annotations = annotations
		o := outside()
		o.Exceptions = resource.ExceptionLimits{Max: 24 * time.Hour, BreakGlass: 24 * time.Hour}
		snapshot, problems := resolve.Empty(o).
			Next(resolve.Group(resource.Objects{Namespaces: []corev1.Namespace{team, namespace("team-b", "2")}, Resources: resources}), nil)
		require.Empty(t, problems)
		set.Swap(snapshot)
		return [2]string{decider.Generation("team-a"), decider.Generation("team-b")}
	}
	open := map[string]string{v1beta1.AnnotationBreakGlassFrom: "2026-11-22T11:00:00Z", v1beta1.AnnotationBreakGlassUntil: "2026-11-22T14:00:00Z",
		v1beta1.AnnotationBreakGlassReason: "outage"}
	var seen []string
	none := generations(nil)
	for _, got := range [][2]string{none, generations(nil, exception("r.example.com/a", false)), generations(nil, exception("r.example.com/b", false)),
		generations(nil, exception("r.example.com/b", true)), generations(open)} {
		require.NotContains(t, seen, got[0])
		require.Equal(t, none[1], got[1], "it is nothing to other namespaces")
		seen = append(seen, got[0])
	}
	require.Equal(t, none, generations(nil), "it was deleted")
	require.Equal(t, seen[1], generations(nil, exception("r.example.com/a", false))[0], "compiling it again changes nothing")
	closed := generations(open)
	now = now.Add(2 * time.Hour)
	require.NotEqual(t, closed[0], decider.Generation("team-a"), "break-glass has ended")
}

// nothing is a cache that keeps nothing.
type nothing struct{}

func (nothing) Recall(verify.Key) (verify.Entry, bool)                       { return verify.Entry{}, false }
func (nothing) Get(context.Context, verify.Key) (verify.Entry, bool)         { return verify.Entry{}, false }
func (nothing) Put(context.Context, verify.Key, verify.Entry, time.Duration) {}

func TestAFloodOfNamesWithAPrefixIsTheTenants(t *testing.T) {
	set := &service.Set{}
	decider := service.NewDecider(set, verify.NewEngine(nil, nil, verify.Options{}), finder(func(verify.Namespace) (bool, error) { return false, nil }))
	require.Equal(t, verify.Namespace("iris-dev-1").Account(), decider.Account("iris-dev-1"), "nothing is known yet")
	iris := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "green"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris", NamespacePrefix: "iris-dev-"}}
	snapshot, _ := resolve.Empty(outside()).
		Next(resolve.Group(resource.Objects{Namespaces: []corev1.Namespace{namespace("iris", "1")}, Resources: []v1beta1.Object{iris}}), nil)
	set.Swap(snapshot)
	for name, want := range map[verify.Namespace]verify.Account{"iris": "tenant/green", "iris-dev-1": "tenant/green", "rose": "namespace/rose",
		verify.Cluster: "namespace/-"} {
		require.Equal(t, want, decider.Account(name), name)
	}
}

func TestWhatNoPolicyCausedIsForTheAdminsOfTheTeam(t *testing.T) {
	set := &service.Set{}
	tenant := &v1beta1.Tenant{TypeMeta: metav1.TypeMeta{Kind: v1beta1.KindTenant}, ObjectMeta: metav1.ObjectMeta{Name: "iris"},
		Spec: v1beta1.TenantSpec{Contact: "#iris", HomeNamespace: "iris"}}
	snapshot, _ := resolve.Empty(outside()).
		Next(resolve.Group(resource.Objects{Namespaces: []corev1.Namespace{namespace("iris", "1"), namespace("other", "2")}, Resources: []v1beta1.Object{tenant}}),
			nil)
	set.Swap(snapshot)
	decider := service.NewDecider(set, verify.NewEngine(nil, nil, verify.Options{}), service.AnyNamespace{})
	for _, name := range []string{"", policy.ObjectRef{}.String()} {
		require.Equal(t, []string{"#iris"}, decider.Contacts("iris", []string{name}))
		require.Empty(t, decider.Contacts("other", []string{name}), "no team is told of another")
	}
}
