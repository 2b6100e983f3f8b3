package operator

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// answerQuota answers the application of a ResourceQuota as the API server does: with the status
// that Kubernetes' quota controller has written.
func answerQuota(t *testing.T, configuration runtime.ApplyConfiguration, used ...string) {
	t.Helper()
	text, err := json.Marshal(configuration)
	require.NoError(t, err)
	var content map[string]any
	require.NoError(t, json.Unmarshal(text, &content))
	if content["kind"] != kindResourceQuota {
		return
	}
	spec, _ := content["spec"].(map[string]any)
	amounts := map[string]string{}
	for _, name := range used {
		amounts[name] = "0"
	}
	content["status"] = map[string]any{"hard": spec["hard"], "used": amounts}
	text, err = json.Marshal(content)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, configuration))
}

// limits are the resources that every namespace's quota limits.
func limits() (names []string) {
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced {
			names = append(names, "count/"+kind.Plural+"."+v1beta1.Group)
		}
	}
	return names
}

// Until a quota is counted, the API server refuses what a team makes.
func TestATenantIsProvisionedOnceItsQuotasAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperated(t, "web")
		o.uncounted = true
		require.Equal(t, maxRetryPause, o.step(t, request("green")), "the quota controller may never come")
		require.Equal(t, "Unfinished", o.said.Reason)
		require.Equal(t, "ResourceQuota green/tenant and 1 more are not counted by Kubernetes' quota controller yet; until then the API server may refuse "+
			"resources there "+
			"(does kube-controller-manager run? after Landwaiter's CRDs were installed, it takes up to five minutes)", o.said.Message)

		o.uncounted = false
		o.applied = nil
		counted := &corev1.ResourceQuota{ObjectMeta: bindingIn("web").ObjectMeta}
		o.reconciled(t, o.ofObject(t.Context(), counted)...)
		require.Equal(t, []string{"green", "web"}, o.places(), "the condition is about all namespaces")
		require.Equal(t, "Provisioned", o.said.Reason)
	})
}

func conditionOf(t *testing.T, configuration runtime.ApplyConfiguration, into *operated) {
	t.Helper()
	text, err := json.Marshal(configuration)
	require.NoError(t, err)
	var tenant v1beta1.Tenant
	require.NoError(t, json.Unmarshal(text, &tenant))
	into.said = tenant.Status.Conditions[0]
}

func TestAQuotaIsCountedWhenTheUseOfOurResourcesIsKnown(t *testing.T) {
	list := func(amount string, names ...string) corev1.ResourceList {
		made := corev1.ResourceList{}
		for _, name := range names {
			made[corev1.ResourceName(name)] = resource.MustParse(amount)
		}
		return made
	}
	ours := limits()
	for about, c := range map[string]struct {
		hard, said, used corev1.ResourceList
		want             bool
	}{
		"nobody has looked":           {list("64", ours...), nil, nil, false},
		"the kinds are not known yet": {list("64", ours...), list("64", ours...), corev1.ResourceList{}, false},
		"one kind is not known yet":   {list("64", ours...), list("64", ours...), list("0", ours[1:]...), false},
		"another limit was counted":   {list("65", ours...), list("64", ours...), list("0", ours...), false},
		"all of it is counted":        {list("64", ours...), list("64", ours...), list("3", ours...), true},
		"a kind that nobody ever knows": {list("64", append(ours, "count/typos.example.com")...), list("64", append(ours, "count/typos.example.com")...),
			list("0", ours...), true},
	} {
		t.Run(about, func(t *testing.T) {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "tenant"},
				Spec: corev1.ResourceQuotaSpec{Hard: c.hard}, Status: corev1.ResourceQuotaStatus{Hard: c.said, Used: c.used}}
			require.Equal(t, c.want, counted(quota))
			ref := policy.ObjectRef{Kind: kindResourceQuota, Namespace: "web", Name: "tenant"}
			left, err := New(fakeClient(t, interceptor.Funcs{}, quota), Options{}).
				Uncounted(t.Context(), []policy.ObjectRef{ref, {Kind: kindResourceQuota, Namespace: "gone", Name: "tenant"}})
			require.NoError(t, err)
			require.Equal(t, c.want, len(left) == 0)
		})
	}
}
