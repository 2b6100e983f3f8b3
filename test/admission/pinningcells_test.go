//go:build e2e

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// operated are the chart's values with an operator that keeps, or does not keep, what pins tags.
func operated(pinning bool) map[string]any {
	return map[string]any{
		"guardrails": map[string]any{"enabled": true},
		"operator":   map[string]any{"enabled": true, "flux": false, "mutation": pinning},
		"mutation":   map[string]any{"enabled": pinning},
	}
}

// platform is a cluster with two teams, red and blue, of which red has an admin, ann.
type platform struct {
	*world
	ann client.Client
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*suite.Patience)
	defer cancel()
	s, err := suite.ForTest(t).Stack(ctx, cluster.Options{}, operated(false))
	require.NoError(t, err)
	p := &platform{world: &world{Stack: s}}
	require.NoError(t, p.prepare(ctx))
	p.ann, err = s.NewClient(s.As("ann"))
	require.NoError(t, err)
	return p
}

// teams makes the Tenants, and waits until the operator has made their namespaces, and ann admin.
func (p *platform) teams(t *testing.T) {
	t.Helper()
	p.makeNamespace(t, "nobodys")
	for _, name := range []string{"red", "blue"} {
		p.apply(t,
			fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: %s}, spec: {homeNamespace: %s, namespaces: [%s-web], access: {admins: "+
				"[{kind: User, name: ann}]}}}", name, name, name))
		tenant := &v1beta1.Tenant{}
		p.conditionOf(t, v1beta1.ConditionProvisioned, tenant, "", name, metav1.ConditionTrue, "Provisioned")
	}
}

// says makes a team say something of tags in its home namespace, as its admin.
func (p *platform) says(t *testing.T, team, tags string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error { // RBAC, and the count of the quota, follow a moment later
		policy := suite.Resource("VerificationPolicy", team, "tags", "{defaultAction: Inherit, tags: "+tags+"}")
		if err := p.ann.Create(ctx, policy); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return p.ann.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tags":"`+tags+`"}}`)))
	})
}

// clusterSays makes the cluster's ordinary policy say something of tags, or nothing.
func (p *platform) clusterSays(t *testing.T, tags string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tags":`+tags+`}}`))
	require.NoError(t, p.Client.Patch(suite.Within(t), suite.Resource("ClusterVerificationPolicy", "", "signed", "{}"), patch))
}

// become waits until tags are pinned in the namespaces that pinned says, and in no others.
func (p *platform) become(t *testing.T, pinned map[string]bool) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		for namespace, want := range pinned {
			made := suite.Restricted(suite.Pod(namespace, "probe", p.signed))
			if err := p.Client.Create(ctx, made, client.DryRunAll); err != nil {
				return err
			}
			image := made.Spec.Containers[0].Image
			if strings.HasPrefix(image, p.signed+"@sha256:") != want || (image == p.signed) == want {
				return fmt.Errorf("in %s, the pod has the image %s", namespace, image)
			}
		}
		return nil
	})
}

// objects counts the objects of Gatekeeper's that pin tags.
func (p *platform) objects(t *testing.T) (found []string) {
	t.Helper()
	for _, kind := range []schema.GroupVersionKind{
		{Group: "mutations.gatekeeper.sh", Version: "v1", Kind: "Assign"}, {Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Kind: "Provider"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		require.NoError(t, p.Client.List(suite.Within(t), list))
		for _, object := range list.Items {
			if kind.Kind == "Assign" || strings.Contains(object.GetName(), "mutate") {
				found = append(found, kind.Kind+" "+object.GetName())
			}
		}
	}
	return found
}

// The design document has tag mutation on or off for all, and team admins who may or may not
// override that. The operator and Gatekeeper are both real, and the order is that of an
// installation which allows more and more, and at the end demands it.
func TestEachCellOfTagMutationHoldsWithOperatorAndGatekeeper(t *testing.T) {
	p := newPlatform(t)
	all := func(red, blue, nobodys bool) map[string]bool {
		return map[string]bool{"red": red, "red-web": red, "blue": blue, "blue-web": blue, "nobodys": nobodys}
	}

	operator := suite.Operate(t, p.Cluster, p.Rendered)
	p.teams(t)
	t.Run("off for all, teams may not override", func(t *testing.T) {
		p.says(t, "red", "Pin")
		p.effective(t, &v1beta1.VerificationPolicy{}, "red", "tags", metav1.ConditionTrue, "InForce")
		p.become(t, all(false, false, false))
		require.Empty(t, p.objects(t), "nothing could pin a tag")
		assign := suite.Object("{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, metadata: {name: own}, spec: {location: 'spec.containers[name:*].image', " +
			"applyTo: [{groups: [''], kinds: [Pod], versions: [v1]}], match: {namespaces: [red]}, parameters: {assign: {value: x}}}}")
		require.ErrorContains(t, p.ann.Create(suite.Within(t), assign), "forbidden", "a team admin makes no Assign")
	})
	operator.Terminate(suite.Patience)
	require.NoError(t, p.Upgrade(suite.Within(t), operated(true)))
	suite.Operate(t, p.Cluster, p.Rendered)
	t.Run("off for all, teams may override", func(t *testing.T) {
		p.become(t, all(true, false, false))
	})
	t.Run("on for all, teams may override", func(t *testing.T) {
		p.clusterSays(t, `"Pin"`)
		p.become(t, all(true, true, true))
		p.says(t, "red", "Leave")
		p.become(t, all(false, true, true))
	})
	t.Run("on for all, teams may not override", func(t *testing.T) {
		mandatory := suite.Resource("ClusterVerificationPolicy", "", "pinned", "{scope: Mandatory, defaultAction: Allow, tags: Pin}")
		require.ErrorContains(t, p.ann.Create(suite.Within(t), mandatory.DeepCopy()), "forbidden", "nor a policy of the cluster")
		require.NoError(t, p.Apply(suite.Within(t), mandatory.DeepCopy()))
		p.become(t, all(true, true, true))
		p.clusterSays(t, "null")
		p.become(t, all(true, true, true))
		require.NoError(t, p.Client.Delete(suite.Within(t), mandatory))
		p.become(t, all(false, false, false)) // it was the mandatory policy that pinned
	})
}
