package controller

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

func TestNamespacesAreLookedForOnceAndAFailureIsNoAnswer(t *testing.T) {
	clients := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}})
	asked, down := 0, false
	clients.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		return down, nil, errors.New("the API server is down")
	})
	c := newFinder(clients)
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
		c.missing.Set(verify.Namespace(rune('a'+i)), struct{}{})
	}
	missing := c.missing.(*otter.Cache[verify.Namespace, struct{}])
	missing.CleanUp()
	require.LessOrEqual(t, missing.EstimatedSize(), maxMissing)
}

func TestAMissingRightComesWithTheCommandThatGivesIt(t *testing.T) {
	for user, flag := range map[string]string{
		"system:serviceaccount:landwaiter-system:landwaiter": "--serviceaccount=landwaiter-system:landwaiter", "somebody": "--user=somebody",
	} {
		clients := fake.NewClientset()
		clients.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}}}, nil
		})
		c := &Controller{clients: clients, options: Options{ReferenceReaderRole: "material"}}
		require.Equal(t, "kubectl create rolebinding material --namespace=team-a --clusterrole=material "+flag,
			c.grantHint(t.Context())(secretSource("team-a", "x")))
	}
}

func TestRefusesToElectWithoutANamespace(t *testing.T) {
	_, err := New(&rest.Config{}, &service.Set{}, resolve.Outside{}, schema.Embedded(), nil, Options{LeaderElection: true})
	require.ErrorContains(t, err, "own namespace")
}

func TestADutyThatFailsIsBegunAgainUntilTheTermEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logrus.New()
		var logged bytes.Buffer
		log.SetOutput(&logged)
		ctx, lose := context.WithCancel(t.Context())
		calls := 0
		c := &Controller{log: log, set: &service.Set{}, options: Options{Duties: []Duty{{Name: "sweep the mandatory policy", Run: func(ctx context.Context) error {
			if calls++; calls < 3 {
				return errors.New("no broom")
			}
			<-ctx.Done()
			return nil
		}}}}}
		ended := make(chan struct{})
		go func() { defer close(ended); c.duties(ctx) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 3, calls)
		lose()
		<-ended
		require.Contains(t, logged.String(), "cannot sweep the mandatory policy, will try again")
	})
}
