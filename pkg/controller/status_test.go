package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 3}
}

func TestConditionsSayWhereAResourceApplies(t *testing.T) {
	floor := v1alpha1.ClusterVerificationPolicy{ObjectMeta: named("", "floor")}
	floor.Spec.Enforcement = v1alpha1.EnforcementFloor
	o := tenant.Objects{
		Verifiers:                   []v1alpha1.Verifier{{ObjectMeta: named("team-a", "v")}, {ObjectMeta: named("team-a", "broken")}},
		ClusterStores:               []v1alpha1.ClusterStore{{ObjectMeta: named("", "s")}},
		TrustStores:                 []v1alpha1.TrustStore{{ObjectMeta: named("team-a", "t")}},
		ClusterTrustStores:          []v1alpha1.ClusterTrustStore{{ObjectMeta: named("", "t")}},
		VerificationPolicies:        []v1alpha1.VerificationPolicy{{ObjectMeta: named("team-a", "b")}, {ObjectMeta: named("team-a", "a")}},
		ClusterVerificationPolicies: []v1alpha1.ClusterVerificationPolicy{{ObjectMeta: named("", "one")}, floor},
		ClusterLimits:               []v1alpha1.ClusterLimits{{ObjectMeta: named("", "busy")}, {ObjectMeta: named("", "empty")}},
	}
	broken := policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "broken"}
	empty := policy.ObjectRef{Kind: "ClusterLimits", Name: "empty"}
	reports := split(o, []tenant.Problem{{Source: broken, Reason: policy.ReasonNotFound, Message: "Secret team-a/x is not there"},
		{Source: empty, Reason: policy.ReasonInvalid, Message: "spec.namespaces is empty"}}, nil)
	want := map[string]string{
		"Verifier team-a/v":               "in force in its namespace",
		"Verifier team-a/broken":          "Secret team-a/x is not there; what depends on it denies",
		"ClusterStore s":                  "in force for namespaces without resources of this kind, and for floors",
		"TrustStore team-a/t":             "usable in its namespace",
		"ClusterTrustStore t":             "usable everywhere",
		"VerificationPolicy team-a/b":     "in force in its namespace; the rules of several policies are tried in the order of names: a, b",
		"VerificationPolicy team-a/a":     "in force in its namespace; the rules of several policies are tried in the order of names: a, b",
		"ClusterVerificationPolicy one":   "in force for namespaces without a VerificationPolicy",
		"ClusterVerificationPolicy floor": "a floor: must hold in every namespace, besides its own policy",
		"ClusterLimits busy":              "in force for each of its namespaces",
		"ClusterLimits empty":             "spec.namespaces is empty",
	}
	o.Each(func(source policy.ObjectRef, object v1alpha1.Object) {
		r := reports[verify.Namespace(source.Namespace)]
		require.Equal(t, int64(3), r.generations[source])
		condition := ready(source, object, r)
		require.Equal(t, want[source.String()], condition.Message, source)
		require.Equal(t, source == broken || source == empty, condition.Status == metav1.ConditionFalse, source)
		delete(want, source.String())
	})
	require.Empty(t, want)
}

func TestReportsRememberWhoseStatusIsOld(t *testing.T) {
	r := newReports()
	o := tenant.Objects{Verifiers: []v1alpha1.Verifier{{ObjectMeta: named("team-a", "v")}}, ClusterStores: []v1alpha1.ClusterStore{{ObjectMeta: named("", "s")}}}
	r.replace(o, nil, nil)
	<-r.wake
	require.Equal(t, []verify.Namespace{verify.Cluster, "team-a"}, r.take())
	require.Empty(t, r.take())
	r.put("team-a", tenant.Objects{}, nil, nil)
	<-r.wake
	_, there := r.get("team-a")
	require.False(t, there, "a namespace without resources has no report")
	r.mark("team-b", "team-c")
	r.mark("team-b")
	require.Equal(t, []verify.Namespace{"team-a", "team-b", "team-c"}, r.take())
}

func TestAReplacedAuthorityStaysForTheOverlap(t *testing.T) {
	f := &Followed{overlap: time.Minute, keys: map[string]*overlapping{}}
	now := time.Now()
	require.Equal(t, "old\n", string(f.join("ca.crt", []byte("old\n"), now)))
	require.Equal(t, "new\nold\n", string(f.join("ca.crt", []byte("new\n"), now)))
	require.Equal(t, "new\nold\n", string(f.join("ca.crt", []byte("new\n"), now.Add(59*time.Second))))
	require.Equal(t, "new\n", string(f.join("ca.crt", []byte("new\n"), now.Add(time.Minute))))
}

func TestACertificateOfAnotherAuthorityWaitsUntilTheAuthorityIsKnown(t *testing.T) {
	f := &Followed{settle: time.Minute, keys: map[string]*overlapping{}}
	from := func(authority, certificate string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"ca.crt": []byte(authority), "tls.crt": []byte(certificate)}}
	}
	now := time.Now()
	served := func(secret *corev1.Secret, after time.Duration) string {
		return string(f.settled(secret, now.Add(after)).Data["tls.crt"])
	}
	require.Equal(t, "1", served(from("A", "1"), 0))
	require.Equal(t, "2", served(from("A", "2"), 0), "of the same authority: at once")
	require.Equal(t, "2", served(from("B", "3"), 0))
	require.Equal(t, "2", served(from("B", "4"), 59*time.Second))
	require.Equal(t, "4", served(from("B", "4"), time.Minute))
	require.Equal(t, "4", served(from("C", "5"), time.Hour))
	require.Equal(t, "4", served(from("D", "6"), time.Hour+59*time.Second), "yet another authority has its own time")
	require.Equal(t, "4", served(from("D", "6"), time.Hour+61*time.Second))
	require.Equal(t, "6", served(from("D", "6"), time.Hour+119*time.Second))
}

func TestNamespacesAreLookedForOnceAndAFailureIsNoAnswer(t *testing.T) {
	clients := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}})
	asked, down := 0, false
	clients.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		return down, nil, errors.New("the API server is down")
	})
	c := &Controller{clients: clients}
	for range 3 {
		exists, err := c.Exists(t.Context(), "nobody")
		require.NoError(t, err)
		require.False(t, exists)
	}
	require.Equal(t, 1, asked, "what is missing is not asked for again at once")
	exists, err := c.Exists(t.Context(), "team-a")
	require.NoError(t, err)
	require.True(t, exists)
	down = true
	exists, err = c.Exists(t.Context(), "team-b")
	require.ErrorContains(t, err, "down")
	require.False(t, exists)
	for i := range maxMissing + 1 {
		c.lookups.miss(verify.Namespace(rune('a'+i)), time.Now())
	}
	require.LessOrEqual(t, len(c.lookups.missing), maxMissing)
}

func TestAMissingRightComesWithTheCommandThatGivesIt(t *testing.T) {
	for user, flag := range map[string]string{
		"system:serviceaccount:landwaiter-system:landwaiter": "--serviceaccount=landwaiter-system:landwaiter", "somebody": "--user=somebody",
	} {
		clients := fake.NewClientset()
		clients.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}}}, nil
		})
		c := &Controller{clients: clients, options: Options{MaterialRole: "material"}}
		require.Equal(t, "; grant it with: kubectl create rolebinding material --namespace=team-a --clusterrole=material "+flag,
			c.grantHint(t.Context())(secretSource("team-a", "x")))
	}
}

func TestRefusesToElectOrRotateWithoutANamespace(t *testing.T) {
	for _, options := range []Options{{LeaderElection: true}, {Rotation: &Rotation{}}} {
		_, err := New(&rest.Config{}, &tenant.Set{}, tenant.Outside{}, nil, options)
		require.ErrorContains(t, err, "own namespace")
	}
}
