package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestADenialSaysThatBreakGlassMayLiftIt(t *testing.T) {
	glass := func(name string, from, until time.Duration) corev1.Namespace {
		return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"other": "x",
			v1beta1.AnnotationBreakGlassFrom: today().Add(from).Format(time.RFC3339), v1beta1.AnnotationBreakGlassUntil: today().Add(until).Format(time.RFC3339),
			v1beta1.AnnotationBreakGlassReason: "OPS-4711"}}}
	}
	read := []corev1.Namespace{glass("open", -time.Hour, time.Hour), glass("over", -2*time.Hour, -time.Hour), glass("later", time.Hour, 2*time.Hour),
		{ObjectMeta: metav1.ObjectMeta{Name: "calm"}}}
	s := State{Objects: resource.Objects{Namespaces: read}}
	s.WithoutBreakGlass("it is not known", today())
	for name, want := range map[verify.Namespace]string{"open": "denied, unless Landwaiter runs with --break-glass, which you cannot read: nobody signed it",
		"over": "nobody signed it", "later": "nobody signed it", "calm": "nobody signed it"} {
		verdict := s.known(verify.Result{Namespace: name, Verdict: judged.As(policy.Denied, policy.Verdict{Reason: "nobody signed it"})}).Verdict
		require.Equal(t, policy.Denied, verdict.Outcome(), name)
		require.Equal(t, want, verdict.Reason)
	}
	require.Equal(t, policy.Allowed, s.known(verify.Result{Namespace: "open", Verdict: judged.As(policy.Allowed, policy.Verdict{})}).Verdict.Outcome())
	for _, n := range s.Objects.Namespaces {
		require.NotContains(t, n.Annotations, v1beta1.AnnotationBreakGlassReason)
	}
	require.Contains(t, read[0].Annotations, v1beta1.AnnotationBreakGlassReason, "what was read stays as it is")
	require.Contains(t, s.Objects.Namespaces[0].Annotations, "other")
}
