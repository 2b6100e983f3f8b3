package controller

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 3}
}

func TestConditionsSayWhereAResourceApplies(t *testing.T) {
	floor := v1alpha1.ClusterVerificationPolicy{ObjectMeta: named("", "floor")}
	floor.Spec.Enforcement = v1alpha1.EnforcementFloor
	o := resource.Objects{
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
	reports := split(o, []resource.Problem{{Source: broken, Reason: policy.ReasonNotFound, Message: "Secret team-a/x is not there"},
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
	o := resource.Objects{Verifiers: []v1alpha1.Verifier{{ObjectMeta: named("team-a", "v")}}, ClusterStores: []v1alpha1.ClusterStore{{ObjectMeta: named("", "s")}}}
	r.replace(o, nil, nil)
	<-r.wake
	require.Equal(t, []verify.Namespace{verify.Cluster, "team-a"}, r.take())
	require.Empty(t, r.take())
	r.put("team-a", resource.Objects{}, nil, nil)
	<-r.wake
	_, there := r.get("team-a")
	require.False(t, there, "a namespace without resources has no report")
	r.mark("team-b", "team-c")
	r.mark("team-b")
	require.Equal(t, []verify.Namespace{"team-a", "team-b", "team-c"}, r.take())
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

func TestRefusesToElectWithoutANamespace(t *testing.T) {
	_, err := New(&rest.Config{}, &tenant.Set{}, compile.Outside{}, nil, Options{LeaderElection: true})
	require.ErrorContains(t, err, "own namespace")
}

func TestADutyThatFailsIsBegunAgainUntilTheTermEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logrus.New()
		var logged bytes.Buffer
		log.SetOutput(&logged)
		ctx, lose := context.WithCancel(t.Context())
		calls := 0
		c := &Controller{log: log, reports: newReports(), options: Options{Duties: []Duty{{Name: "sweep the floor", Run: func(ctx context.Context) error {
			if calls++; calls < 3 {
				return errors.New("no broom")
			}
			<-ctx.Done()
			return nil
		}}}}}
		ended := make(chan struct{})
		go func() { defer close(ended); c.duties(ctx) }()
		time.Sleep(time.Hour)
		require.Equal(t, 3, calls)
		lose()
		<-ended
		require.Contains(t, logged.String(), "cannot sweep the floor, will try again")
	})
}
