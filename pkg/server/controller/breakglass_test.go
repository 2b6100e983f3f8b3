package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

// used is a key that something has allowed.
func used(namespace, name, kind string) provider.KeyObservation {
	ref, err := image.Parse(name)
	if err != nil {
		panic(err)
	}
	return provider.KeyObservation{Namespace: verify.Namespace(namespace), Answer: verify.AnswerByException, Result: &verify.Result{Reference: ref,
		Exception: policy.ObjectRef{Kind: kind, Name: namespace}, ExceptionEnds: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)}}
}

func TestEachImageThatBreakGlassLetsInHasOneEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	c := &Controller{events: recorder, set: &service.Set{}}
	observe := func(source provider.Source, keys ...provider.KeyObservation) (said []string) {
		c.Observe(t.Context(), provider.Observation{TraceID: "79aa", Source: source, Keys: keys})
		for {
			select {
			case text := <-recorder.Events:
				said = append(said, text)
			default:
				return said
			}
		}
	}
	denied := used("shop", "r.example.com/a:1", "Namespace")
	denied.Answer = verify.AnswerDenied
	require.Empty(t, observe(provider.SourceAudit, used("shop", "r.example.com/a:1", "Namespace")), "an audit lets nothing in")
	require.Empty(t, observe(provider.SourceAdmission, used("shop", "r.example.com/a:1", "ClusterException"), denied))
	said := observe(provider.SourceAdmission, used("shop", "r.example.com/a:1", "Namespace"), used("shop", "r.example.com/b:1", "Namespace"),
		used("other", "r.example.com/a:1", "Namespace"))
	require.Len(t, said, 3)
	require.Equal(t, "Warning BreakGlassUsed break-glass allows image r.example.com/a:1 until 2026-11-23T00:00:00Z (traceID 79aa)", said[0])
	require.Empty(t, observe(provider.SourceAdmission, used("shop", "r.example.com/a:1", "Namespace")), "within the hour")
	c.notified.forget("shop")
	require.Len(t, observe(provider.SourceAdmission, used("shop", "r.example.com/a:1", "Namespace")), 1, "another namespace of that name")
}

func TestEventsOfBreakGlassAreBoundedForEachNamespace(t *testing.T) {
	var images told
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for i := range maxTold {
		require.True(t, images.first("shop", fmt.Sprint(i), now))
	}
	require.False(t, images.first("shop", "one more", now))
	require.True(t, images.first("other", "one more", now), "a namespace takes nothing from another")
	require.False(t, images.first("shop", "0", now.Add(tellAgain-1)))
	require.True(t, images.first("shop", "one more", now.Add(tellAgain)), "what is old makes room")
	require.Len(t, images.images["shop"], 1)
}

func TestAChangeOfBreakGlassIsAChangeOfItsNamespace(t *testing.T) {
	with := func(annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", Annotations: annotations}}
	}
	for _, key := range resolve.BreakGlassAnnotations() {
		require.True(t, strings.HasPrefix(key, "landwaiter.dev/break-glass-"))
		for name, change := range map[string][2]map[string]string{"set": {nil, {key: "x"}}, "set empty": {nil, {key: ""}}, "changed": {{key: "x"}, {key: "y"}},
			"removed": {{key: "x"}, nil}} {
			require.True(t, namespaceChanged().Update(event.UpdateEvent{ObjectOld: with(change[0]), ObjectNew: with(change[1])}), "%s %s", key, name)
		}
	}
	require.False(t, namespaceChanged().Update(event.UpdateEvent{ObjectOld: with(nil), ObjectNew: with(map[string]string{"example.com/other": "x"})}))
}

func TestTheLeaderLooksAgainWhenTheNextExceptionEnds(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ref := func(name string) policy.ObjectRef { return policy.ObjectRef{Kind: "ClusterException", Name: name} }
	require.True(t, nextEnd(map[policy.ObjectRef]conditions.Report{ref("none"): {}, ref("ended"): {Until: now}}, now).IsZero())
	require.Equal(t, now.Add(time.Minute),
		nextEnd(map[policy.ObjectRef]conditions.Report{ref("later"): {Until: now.Add(time.Hour)}, ref("next"): {Until: now.Add(time.Minute)},
			ref("ended"): {Until: now.Add(-1)}}, now))
}
