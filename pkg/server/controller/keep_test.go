//go:build e2e || nightly

package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
)

// The API server counts characters, so a spec of wide ones gets past the CRD.
func TestASpecThatIsTooLargeToKeepDeniesInItsNamespaceAlone(t *testing.T) {
	c := running(t)
	large, other := namespace(t, c, "large"), namespace(t, c, "other")
	wide := &v1beta1.VerificationPolicy{ObjectMeta: labelled(large, "wide")}
	wide.Annotations = map[string]string{"example.com/note": strings.Repeat("x", 200<<10)}
	for range 7 {
		wide.Spec.Rules = append(wide.Spec.Rules, v1beta1.PolicyRule{Images: []string{"**"},
			Require: []v1beta1.Requirement{{Expression: "'" + strings.Repeat("𝄞", 8000) + "' == ''"}}})
	}
	lax := &v1beta1.VerificationPolicy{ObjectMeta: labelled(other, "lax")}
	lax.Spec.DefaultAction = v1beta1.DefaultActionAllow
	for _, object := range []client.Object{wide, lax} {
		require.NoError(t, c.Client.Create(t.Context(), object))
	}
	set, _ := run(t, c.Config, controller.Options{})
	eventually(t, func(context.Context) error { return set.Ready() })

	first := set.Snapshot().For(verify.Namespace(large)).Tiers[0]
	require.Contains(t, first.Judge.Why(), "the limit is 65536: split it into several resources")
	require.Empty(t, set.Snapshot().For(verify.Namespace(other)).Tiers[0].Judge.Why())
	source := policy.ObjectRef{Kind: "VerificationPolicy", Namespace: large, Name: "wide"}
	require.Equal(t, policy.ReasonInvalid, conditions.Reports(set.Snapshot(), verify.Namespace(large))[source].Ready.Reason)
	eventually(t, func(ctx context.Context) error {
		var found v1beta1.VerificationPolicy
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(wide), &found); err != nil {
			return err
		}
		require.Len(t, found.Spec.Rules, 7, "the status is written, and nothing else")
		require.Len(t, found.Annotations["example.com/note"], 200<<10)
		ready := meta.FindStatusCondition(found.Status.Conditions, v1beta1.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, "the limit is 65536") {
			return fmt.Errorf("the condition is %v", ready)
		}
		return nil
	})
	require.NoError(t, c.Client.Delete(t.Context(), wide))
	eventually(t, func(context.Context) error {
		if broken := set.Snapshot().For(verify.Namespace(large)); len(broken.Tiers) > 0 && broken.Tiers[0].Judge.Why() != "" {
			return fmt.Errorf("still broken: %s", broken.Tiers[0].Judge.Why())
		}
		return nil
	})
}

// Those that came last are not kept while there is no room, and the first are not kept again
// when they are gone: nothing but the sizes of all decides.
func TestMorePoliciesThanAreKeptDenyInTheirNamespaceAloneAndTheRestComesBack(t *testing.T) {
	c := running(t)
	hoard, other := namespace(t, c, "hoard"), namespace(t, c, "other")
	policy := func(namespace string, number, patterns int) *v1beta1.VerificationPolicy {
		p := &v1beta1.VerificationPolicy{ObjectMeta: labelled(namespace, fmt.Sprintf("p%03d", number))}
		p.Spec.DefaultAction = v1beta1.DefaultActionAllow
		for range 2 {
			rule := v1beta1.PolicyRule{Action: v1beta1.RuleActionDeny}
			for i := range patterns {
				rule.Images = append(rule.Images, fmt.Sprintf("none.example.com/%s/%d", strings.Repeat("x", 480), i))
			}
			p.Spec.Rules = append(p.Spec.Rules, rule)
		}
		return p
	}
	create := func(from, to int) {
		for i := range to - from {
			require.NoError(t, c.Client.Create(t.Context(), policy(hoard, from+i, 60)))
		}
	}
	create(0, 60)
	require.NoError(t, c.Client.Create(t.Context(), policy(other, 0, 1)))
	set, _ := run(t, c.Config, controller.Options{})
	eventually(t, func(context.Context) error { return set.Ready() })
	broken := func(namespace string) string {
		return set.Snapshot().For(verify.Namespace(namespace)).Tiers[0].Judge.Why()
	}
	require.Empty(t, broken(other))
	create(60, 120)
	eventually(t, func(context.Context) error {
		if why := broken(hoard); !strings.Contains(why, "the limit is 4096 KiB: delete some") {
			return fmt.Errorf("it is broken by: %s", why)
		}
		return nil
	})
	require.Empty(t, broken(other))
	for i := range 117 {
		require.NoError(t, c.Client.Delete(t.Context(), policy(hoard, i, 0)))
	}
	eventually(t, func(context.Context) error {
		if why := broken(hoard); why != "" {
			return fmt.Errorf("still broken: %s", why)
		}
		reports := conditions.Reports(set.Snapshot(), verify.Namespace(hoard))
		for source, report := range reports {
			if len(reports) > 3 || !report.Ready.True {
				return fmt.Errorf("of %d, %s is %v", len(reports), source, report.Ready)
			}
		}
		return nil
	})
}
