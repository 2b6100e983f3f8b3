package live

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

// A team admin reads the Exceptions of the team, and no ClusterException.
func TestADenialIsUnknownIfAnExceptionMayLiftItAndTheDelegationCannotBeRead(t *testing.T) {
	const app = "r.example.com/app"
	team, platform := policy.ObjectRef{Kind: v1beta1.KindVerificationPolicy, Namespace: "web", Name: "own"},
		policy.ObjectRef{Kind: v1beta1.KindClusterVerificationPolicy, Name: "mandatory"}
	exception := func(namespace, text string, until time.Duration, conditions ...metav1.Condition) *v1beta1.Exception {
		x := &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x", Generation: 2},
			Spec: v1beta1.ExceptionSpec{Images: []string{text}, Until: time.Now().Add(until).Format(time.RFC3339)}}
		x.Status.Conditions = conditions
		return x
	}
	effective := func(status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: v1beta1.ConditionEffective, Status: status, ObservedGeneration: generation, Message: "it allows its images"}
	}
	held := effective(metav1.ConditionFalse, 2)
	held.Reason = string(policy.ReasonMandatoryHolds)
	for name, c := range map[string]struct {
		exception v1beta1.Object
		denied    policy.Verdict
		readable  bool   // so are ClusterExceptions
		want      string // "" for a denial
		lacks     bool   // the denial names the exception, and what it lacks
	}{
		"not applied yet": {exception: exception("web", app, time.Hour),
			want: "counts if a ClusterException delegates it to namespace web: you cannot read ClusterExceptions. Without the exception: nobody signed it"},
		"in the home namespace": {exception: exception("home", app, time.Hour), want: "delegates it to namespace home"},
		"in force": {exception: exception("web", app, time.Hour, effective(metav1.ConditionTrue, 2)),
			want: "is in force (it allows its images), but whether its delegation is for this image is unknown: you cannot read"},
		"changed since": {exception: exception("web", app, time.Hour, effective(metav1.ConditionFalse, 1)),
			want: "counts if a ClusterException delegates it"},
		"of no effect":              {exception: exception("web", app, time.Hour, effective(metav1.ConditionFalse, 2))},
		"expired":                   {exception: exception("web", app, -time.Hour)},
		"for another image":         {exception: exception("web", "r.example.com/other", time.Hour)},
		"in another namespace":      {exception: exception("shop", app, time.Hour)},
		"of the cluster":            {exception: clusterExceptionFor([]string{"web"}, app)},
		"a mandatory policy denies": {exception: exception("web", app, time.Hour), denied: policy.Verdict{Policy: platform}, lacks: true},
		"mandatory, and in force": {exception: exception("home", app, time.Hour, effective(metav1.ConditionTrue, 2)),
			denied: policy.Verdict{Policy: platform}, lacks: true},
		"mandatory for all of it":      {exception: exception("web", app, time.Hour, held), denied: policy.Verdict{Policy: platform}, lacks: true},
		"mandatory, not delegated":     {exception: exception("web", app, time.Hour, effective(metav1.ConditionFalse, 2)), denied: policy.Verdict{Policy: platform}},
		"mandatory, and expired":       {exception: exception("web", app, -time.Hour), denied: policy.Verdict{Policy: platform}},
		"mandatory, for another image": {exception: exception("web", "r.example.com/other", time.Hour), denied: policy.Verdict{Policy: platform}},
		"a mandatory one, too": {exception: exception("web", app, time.Hour),
			denied: policy.Verdict{Policy: team, Others: []policy.Objection{{Policy: platform}}}, lacks: true},
		"whoever reads the delegation": {exception: exception("web", app, time.Hour), readable: true},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "home", Namespaces: []string{"web"}}}
			mandatory := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: platform.Name},
				Spec: v1beta1.VerificationPolicySpec{Scope: v1beta1.PolicyScopeMandatory}}
			s := State{Objects: resource.Objects{Resources: []v1beta1.Object{tenant, mandatory, c.exception}}}
			if !c.readable {
				s.Objects.Unreadable = []resource.Unreadable{{Source: policy.ObjectRef{Kind: v1beta1.KindClusterException}, Why: "you cannot list clusterexceptions"}}
			}
			ref, err := image.Parse(app + ":v1")
			require.NoError(t, err)
			c.denied.Reason = "nobody signed it"
			got := s.known(verify.Result{Namespace: "web", Reference: ref, Verdict: judged.As(policy.Denied, c.denied)})
			if c.want == "" {
				require.Equal(t, policy.Denied, got.Verdict.Outcome(), got.Verdict.Reason)
				require.Equal(t, c.lacks,
					strings.Contains(got.Verdict.Reason, "nobody signed it; Exception "+c.exception.GetNamespace()+
						"/x is for this image, but does not override mandatory policies: it needs overrideMandatory"), got.Verdict.Reason)
				require.Equal(t, c.lacks, strings.Contains(got.Verdict.Remediation, "ask a cluster admin for one"))
				require.Equal(t, !c.readable, strings.HasPrefix(got.Verdict.Reason, "denied, unless an exception that you cannot read applies: "))
				return
			}
			require.Equal(t, policy.Undecided, got.Verdict.Outcome())
			require.Equal(t, Unknown, AnswerOf(got))
			require.Contains(t, got.Verdict.Reason, c.want)
			require.NotEmpty(t, got.Verdict.Remediation)
			require.NotContains(t, got.Verdict.Remediation, "sign")
		})
	}
}
