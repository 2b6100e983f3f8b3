package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// An older CRD let it in, and an API server may refuse its status as well.
func TestAStoredResourceThatTheSchemaRefusesIsNamedOnceWithOrWithoutCondition(t *testing.T) {
	for name, conditions := range map[string][]metav1.Condition{
		"no condition": nil,
		"not Ready":    {{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Invalid", Message: resource.RefusedBySchema + "spec.x is wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1beta1.VerificationPolicy{TypeMeta: metav1.TypeMeta{Kind: "VerificationPolicy"}, ObjectMeta: named("team-a", "release")}
			p.Spec.Rules, p.Status.Conditions = []v1beta1.PolicyRule{{Action: "Perhaps", Images: []string{"**"}}}, conditions
			i := sound(t)
			i.Resources = []v1beta1.Object{p}
			found := check.Examine(i, schema.Embedded()).Findings
			require.Len(t, found, 1)
			require.Equal(t, check.ResourceInvalid, found[0].ID)
			require.Equal(t, resource.Error, found[0].Severity)
			require.Equal(t, `this version's CRD refuses it: spec.rules[0].action: "Perhaps" is not supported; use one of "Require", "Allow", "Deny"`, found[0].Message)
			require.Equal(t, "every image of the namespaces that it applies to is denied", found[0].Why)
			require.Equal(t, "kubectl edit verificationpolicy.landwaiter.dev release --namespace=team-a", found[0].Command)
		})
	}
}

// The replicas are of another version than this program: only they refuse it.
func TestWhatOnlyTheReplicasRefuseIsNamedToo(t *testing.T) {
	p := &v1beta1.VerificationPolicy{TypeMeta: metav1.TypeMeta{Kind: "VerificationPolicy"}, ObjectMeta: named("team-a", "release")}
	p.Spec.Rules = []v1beta1.PolicyRule{{Action: v1beta1.RuleActionDeny, Images: []string{"**"}}}
	p.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Invalid",
		Message: resource.RefusedBySchema + "spec.x is wrong"}}
	i := sound(t)
	i.Resources = []v1beta1.Object{p}
	found := check.Examine(i, schema.Embedded()).Findings
	require.Len(t, found, 1)
	require.Equal(t, check.ResourceNotReady, found[0].ID)
}
