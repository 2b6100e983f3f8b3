package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestTimeAloneChangesExpiresSoon(t *testing.T) {
	end := time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC)
	report := conditions.Report{Ends: &compile.Ends{List: []trust.End{{Part: "certificate x", At: end}}}}
	object := &v1beta1.TrustStore{}
	at := func(now time.Time) *metav1.Condition {
		setStatus(object, report, now)
		return meta.FindStatusCondition(object.Status.Conditions, v1beta1.ConditionExpiresSoon)
	}
	require.Equal(t, metav1.ConditionFalse, at(end.AddDate(0, 0, -31)).Status)
	soon := *at(end.AddDate(0, 0, -29))
	require.Equal(t, metav1.ConditionTrue, soon.Status)
	require.Equal(t, soon.Message, at(end.AddDate(0, 0, -1)).Message, "a status is not written every hour")
	require.Equal(t, "Expired", at(end).Reason)
	applied, err := own(resource.RefOf(object), object)
	require.NoError(t, err)
	conditions, ok, err := unstructured.NestedSlice(applied.Object, "status", "conditions")
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, conditions, 3)
	report.Ends = nil
	require.Nil(t, at(end), "a resource without trust material has no such condition")
}

func TestAnExceptionThatHasExpiredNeedsNoReview(t *testing.T) {
	end := time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC)
	object := &v1beta1.ClusterException{Spec: v1beta1.ExceptionSpec{Images: []string{"**"}, Namespaces: []string{"*"}}}
	report := conditions.Report{Until: end, Effective: conditions.Condition{True: true, Reason: policy.ReasonInForce}}
	w := newStatusWriter(nil)
	require.True(t, w.setReview(object, report, end.Add(-time.Hour)).True)
	require.True(t, meta.IsStatusConditionTrue(object.Status.Conditions, v1beta1.ConditionNeedsReview))
	require.False(t, w.setReview(object, report, end).True)
	require.Nil(t, meta.FindStatusCondition(object.Status.Conditions, v1beta1.ConditionNeedsReview))
}

func TestStatusesAreComparedWithTheTimeAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looked int
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			everyHour(stop, func() { looked++ })
		}()
		time.Sleep(3*lookAgain + time.Minute)
		synctest.Wait()
		require.Equal(t, 3, looked)
		close(stop)
		<-done
	})
}
