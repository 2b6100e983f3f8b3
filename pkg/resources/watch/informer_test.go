package watch_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	own "github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// server is an API server that does not stream lists and has some policies of one namespace,
// each with a text.
type server struct {
	policies int
	text     string
	requests []metav1.ListOptions
	// unreduced is the most objects of earlier pages that were not reduced when a page was asked for.
	unreduced int
	sent      []*v1beta1.VerificationPolicyList
	// expires lets no list get past its first page; expired counts those.
	expires bool
	expired atomic.Int32
}

func (s *server) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.requests = append(s.requests, options)
	whole := 0
	for _, list := range s.sent {
		for i := range list.Items {
			if len(list.Items[i].ManagedFields) > 0 {
				whole++
			}
		}
	}
	s.unreduced = max(s.unreduced, whole)
	if s.expires && options.Continue != "" {
		s.expired.Add(1)
		return nil, apierrors.NewResourceExpired("the continue parameter is too old")
	}
	begin := 0
	if options.Continue != "" {
		begin, _ = strconv.Atoi(options.Continue)
	}
	end := min(s.policies, begin+int(options.Limit))
	list := &v1beta1.VerificationPolicyList{}
	list.ResourceVersion = "7"
	for i := begin; i < end; i++ {
		p := v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "hoard", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
		p.Spec.Rules = []v1beta1.PolicyRule{{Images: []string{strings.Clone(s.text)}}}
		list.Items = append(list.Items, p)
	}
	if end < s.policies {
		list.Continue = fmt.Sprint(end)
	}
	s.sent = append(s.sent, list)
	return list, nil
}

func (s *server) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s *server) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func (s *server) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, errors.New("sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	}
	return watch.NewFake(), nil
}

func (*server) IsWatchListSemanticsUnSupported() bool { return true }

// tooLarge is a text that no spec may have.
var tooLarge = strings.Repeat("x", 100_000)

// started starts an informer of the policies, and returns how to end it.
func started(t *testing.T, s *server) (made cache.SharedIndexInformer, end func()) {
	t.Helper()
	reduce := own.Reduce((&resource.Room{}).Keep)
	made = own.NewInformer(reduce)(s, &v1beta1.VerificationPolicy{}, 0, cache.Indexers{})
	require.NoError(t, made.SetTransform(reduce))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); made.RunWithContext(ctx) }()
	end = func() { stop(); <-ended }
	t.Cleanup(end)
	return made, end
}

func TestAListIsReadInPagesOfWhichEachIsReducedBeforeTheNext(t *testing.T) {
	s := &server{policies: 100, text: tooLarge}
	made, end := started(t, s)
	require.Eventually(t, made.HasSynced, time.Minute, time.Millisecond)
	end()
	require.Len(t, made.GetStore().List(), 100)
	for _, item := range made.GetStore().List() {
		kept, ok := item.(*v1beta1.VerificationPolicy)
		require.True(t, ok)
		require.Empty(t, kept.Spec)
		require.Empty(t, kept.ManagedFields)
		require.ErrorContains(t, resource.Oversized(kept), "split it", "two reductions do not forget the size")
	}
	require.Len(t, s.requests, 7)
	require.Zero(t, s.unreduced)
	for _, options := range s.requests {
		require.EqualValues(t, 16, options.Limit)
		require.Empty(t, options.ResourceVersion, "with one, an API server ignores the limit")
	}
}

func TestOfManyPoliciesInANamespaceTheSpecsThatAreKeptAreBoundedTogether(t *testing.T) {
	s := &server{policies: 1000, text: strings.Repeat("x", 60<<10)}
	made, end := started(t, s)
	require.Eventually(t, made.HasSynced, time.Minute, time.Millisecond)
	end()
	require.Len(t, made.GetStore().List(), 1000)
	bytes := 0
	for _, item := range made.GetStore().List() {
		kept, ok := item.(*v1beta1.VerificationPolicy)
		require.True(t, ok)
		for _, rule := range kept.Spec.Rules {
			bytes += len(rule.Images[0])
		}
	}
	require.LessOrEqual(t, bytes, 8<<20)
}

func TestAListThatExpiresIsNeverReadWhole(t *testing.T) {
	s := &server{policies: 100, text: tooLarge, expires: true}
	made, end := started(t, s)
	require.Eventually(t, func() bool { return s.expired.Load() == 2 }, time.Minute, time.Millisecond, "it begins again")
	end()
	require.False(t, made.HasSynced())
	for _, options := range s.requests {
		require.EqualValues(t, 16, options.Limit)
	}
}

func TestObjectsOfOtherKindsLoseTheirManagedFieldsAlone(t *testing.T) {
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{"a": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	reduced, err := own.Reduce(resource.Keep)(object)
	require.NoError(t, err)
	require.Equal(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{"a": "b"}}}, reduced)
	gone := cache.DeletedFinalStateUnknown{Key: "k"}
	reduced, err = own.Reduce(resource.Keep)(gone)
	require.NoError(t, err)
	require.Equal(t, gone, reduced)
}
