package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

func TestAResourceThatIsNotReadyIsSaidOnceWithWhatItLeadsTo(t *testing.T) {
	conditions := []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Invalid",
		Message: "spec.x is wrong; what depends on it is denied"}}
	meta := func(kind string) (metav1.TypeMeta, metav1.ObjectMeta) {
		return metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: kind}, metav1.ObjectMeta{Name: "x"}
	}
	verifier, exception := &v1beta1.ClusterVerifier{}, &v1beta1.ClusterException{}
	verifier.TypeMeta, verifier.ObjectMeta = meta("ClusterVerifier")
	exception.TypeMeta, exception.ObjectMeta = meta("ClusterException")
	verifier.Status.Conditions, exception.Status.Conditions = conditions, conditions
	broken := &v1beta1.ClusterVerificationPolicy{}
	broken.TypeMeta, broken.ObjectMeta = meta("ClusterVerificationPolicy")
	broken.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Invalid",
		Message: "spec.x is wrong; Landwaiter denies every image of every namespace"}}
	for _, c := range []struct {
		object v1beta1.Object
		why    string
	}{{verifier, "what depends on it is denied"}, {exception, "it is ignored"}, {broken, "Landwaiter denies every image of every namespace"}} {
		inventory := sound(t)
		inventory.Resources = append(inventory.Resources, c.object)
		found := false
		for _, f := range check.Examine(inventory, schema.Embedded()).Findings {
			if f.ID == check.ResourceNotReady {
				found = true
				require.Equal(t, "it is not Ready: Invalid: spec.x is wrong", f.Message)
				require.Equal(t, c.why, f.Why)
			}
		}
		require.True(t, found)
	}
}

func TestWhatNeedsAReviewIsFound(t *testing.T) {
	for reason, severity := range map[policy.Reason]resource.Severity{policy.ReasonIdentityForAnyone: resource.Error,
		policy.ReasonIdentityTooBroad:      resource.Warning,
		policy.ReasonIdentityMatchesNobody: resource.Warning, policy.ReasonRuleTooBroad: resource.Warning, policy.ReasonPublishedKey: resource.Warning,
		policy.ReasonRuleNeverReached: resource.Warning, policy.ReasonPlaceholder: resource.Note, "Other": ""} {
		inventory := sound(t)
		v := &v1beta1.ClusterVerifier{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterVerifier"},
			ObjectMeta: metav1.ObjectMeta{Name: "x"}}
		v.Spec = v1beta1.VerifierSpec{Images: []string{"**"}, Type: v1beta1.VerifierTypeCosign,
			Cosign: &v1beta1.CosignVerifier{Signers: v1beta1.Signers{Keyless: &v1beta1.Keyless{Identities: []v1beta1.Identity{{Issuer: "i", Subject: "s"}}}}}}
		v.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionNeedsReview, Status: metav1.ConditionTrue, Reason: string(reason), Message: "said"}}
		inventory.Resources = append(inventory.Resources, v)
		var found resource.Severity
		for _, f := range check.Examine(inventory, schema.Embedded()).Findings {
			if f.ID == string(reason) {
				found = f.Severity
				require.Equal(t, "said", f.Message)
				require.NotEmpty(t, f.Command)
			}
		}
		require.Equal(t, severity, found, reason)
	}
}

func TestTheSuggestionOfAConditionIsShownInFull(t *testing.T) {
	inventory := sound(t)
	long := "spec.rules[0]: write {subject: '" + strings.Repeat("a", 1500) + "'}, with your own names"
	p := &v1beta1.VerificationPolicy{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "VerificationPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x"}}
	p.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionNeedsReview, Status: metav1.ConditionTrue, Reason: string(policy.ReasonRuleTooBroad),
		Message: resource.ReviewMessage(long, "it also accepts "+strings.Repeat("b", 400))}}
	inventory.Resources = append(inventory.Resources, p)
	for _, f := range check.Examine(inventory, schema.Embedded()).Findings {
		if f.Object == resource.RefOf(p) && f.ID == string(policy.ReasonRuleTooBroad) {
			require.Equal(t, long, f.Fix)
			require.True(t, strings.HasPrefix(f.Message, "it also accepts b"))
			require.Equal(t, resource.Note, f.Severity, "a team may allow what it likes")
			return
		}
	}
	require.Fail(t, "the condition is no finding")
}

func TestAnExceptionThatHasExpiredNeedsNoReview(t *testing.T) {
	inventory := sound(t)
	for name, until := range map[string]time.Duration{"lasts": time.Hour, "expired": -time.Hour} {
		x := &v1beta1.ClusterException{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterException"},
			ObjectMeta: metav1.ObjectMeta{Name: name}}
		x.Spec = v1beta1.ExceptionSpec{Images: []string{"**"}, Namespaces: []string{"team-a"}, Reason: "OPS-1",
			Until: inventory.Now.Add(until).UTC().Format(time.RFC3339)}
		x.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionNeedsReview, Status: metav1.ConditionTrue, Reason: string(policy.ReasonRuleTooBroad),
			Message: resource.ReviewMessage("narrow it", "every image")}}
		inventory.Resources = append(inventory.Resources, x)
	}
	var found []string
	for _, f := range check.Examine(inventory, schema.Embedded()).Findings {
		if f.ID == string(policy.ReasonRuleTooBroad) {
			found = append(found, f.Object.Name)
		}
	}
	require.Equal(t, []string{"lasts"}, found)
}

func TestEveryReasonForAReviewIsAFinding(t *testing.T) {
	p := &v1beta1.VerificationPolicy{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "VerificationPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x"}}
	p.Spec.Rules = []v1beta1.PolicyRule{{Images: []string{"**"}, Action: v1beta1.RuleActionAllow},
		{Images: []string{"r.corp.net/**"}, Require: []v1beta1.Requirement{{AnyOf: []string{"gone"}}}}}
	p.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionNeedsReview, Status: metav1.ConditionTrue, Reason: string(policy.ReasonRuleNeverReached),
		Message: resource.ReviewMessage("move it", "no image reaches it")}}
	newer := &v1beta1.VerificationPolicy{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "x"}, Status: p.Status}
	silent := &v1beta1.VerificationPolicy{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: "team-c", Name: "x"}, Spec: p.Spec}
	inventory := sound(t)
	inventory.Review = conditions.ReviewStored
	inventory.Resources = append(inventory.Resources, p, newer, silent)
	var found []string
	for _, f := range check.Examine(inventory, schema.Embedded()).Findings {
		if resource.NeedsReview(policy.Reason(f.ID)) {
			found = append(found, f.ID+" "+f.Object.Namespace+" "+f.Field+" "+string(f.Severity))
			require.NotEmpty(t, f.Fix)
			require.NotEmpty(t, f.Command)
		}
	}
	require.ElementsMatch(t,
		[]string{"RuleTooBroad team-a spec.rules[0] note", "RuleNeverReached team-a spec.rules[1] warning", "RuleNeverReached team-b  warning"}, found,
		"a condition of another version counts, too, and Landwaiter decides what has one")
}

func TestAnExceptionForNamespacesThatDoNotExistIsANote(t *testing.T) {
	inventory := sound(t)
	require.NotEmpty(t, inventory.Namespaces)
	name := inventory.Namespaces[0].Name
	x := &v1beta1.ClusterException{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterException"},
		ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	x.Spec.Namespaces = []string{name + "x"}
	x.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionEffective, Status: metav1.ConditionFalse, Reason: string(policy.ReasonAppliesNowhere),
		Message: "none of its namespaces exists"}}
	inventory.Resources = append(inventory.Resources, x)
	found := false
	for _, f := range check.Examine(inventory, schema.Embedded()).Findings {
		if f.ID == check.ResourceUnused && f.Object == resource.RefOf(x) {
			found = true
			require.Equal(t, resource.Note, f.Severity)
			require.Equal(t, "it excepts no image", f.Why)
			require.Equal(t, "if "+name+"x means "+name+", correct the name", f.Fix)
		}
	}
	require.True(t, found)
}
