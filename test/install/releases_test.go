//go:build e2e

package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestReplicasStayAsTheyAreWhenAutoscalingIsSwitchedOn(t *testing.T) {
	a := administered(t)
	for name, force := range map[string][]string{"helm": nil, "helm4": {"--force-conflicts"}} {
		t.Run(name, func(t *testing.T) {
			w, on := a.released(name), a.values(t, "autoscaling.enabled=true")
			t.Cleanup(func() { a.kubectl(t).Must(t, "delete", "clusterrole", "landwaiter-reconciler", "--ignore-not-found") })
			t.Cleanup(func() { ran(t, w.remove(t)) })
			ran(t, w.apply(t, a.values(t)))
			require.EqualValues(t, 2, a.replicas(t))
			ran(t, w.apply(t, on))
			require.EqualValues(t, 2, a.replicas(t), "switched on")
			ran(t, w.apply(t, on))
			require.EqualValues(t, 2, a.replicas(t), "upgraded")
			a.scaled(t, "5")
			ran(t, w.apply(t, slices.Concat(on, []string{"--set", "log.level=debug"})))
			require.EqualValues(t, 5, a.replicas(t), "upgraded with what the autoscaler has set")
			if force != nil {
				require.Contains(t, w.apply(t, a.values(t)).Stderr, ".spec.replicas", "the page says why --force-conflicts is needed")
			}
			ran(t, w.apply(t, slices.Concat(a.values(t), force)))
			require.EqualValues(t, 2, a.replicas(t), "switched off")
			ran(t, w.remove(t))
			ran(t, w.apply(t, on))
			require.EqualValues(t, 2, a.replicas(t), "the first installation begins with the minimum")
			a.scaled(t, "0")
			ran(t, w.apply(t, slices.Concat(on, force)))
			require.EqualValues(t, 2, a.replicas(t), "an autoscaler leaves 0 replicas alone")
		})
	}
	rendered := helm(t).Must(t, "template", "landwaiter", chart, "--set", "autoscaling.enabled=true", "--show-only", "templates/deployment.yaml")
	require.NotContains(t, rendered, "replicas:", "what is rendered without the cluster must not undo the autoscaler at each sync")
}

func TestASecondReleaseIsRefusedBeforeItInstallsAnything(t *testing.T) {
	a := administered(t)
	first := a.released("helm")
	ran(t, first.apply(t, a.values(t)))
	others := func(release, namespace string) suite.Result {
		return a.helm(t, "helm").Run(t, "", append([]string{"install", release, chart, "--namespace", namespace, "--create-namespace"}, a.values(t)...)...)
	}
	for _, c := range [][2]string{{"second", "second"}, {"second", suite.System}, {"landwaiter", "second"}} {
		r := others(c[0], c[1])
		require.NotZero(t, r.Code)
		require.Contains(t, r.Stderr, "Landwaiter is already installed in this cluster, as landwaiter in namespace "+suite.System)
		require.Equal(t, 1, strings.Count(r.Stderr, "already installed"), r.Stderr)
	}
	kinds := "clusterroles,clusterrolebindings,validatingadmissionpolicies,deployments.apps,serviceaccounts,services"
	require.Empty(t, a.kubectl(t).Must(t, "get", kinds, "--all-namespaces", "--selector", "app.kubernetes.io/instance=second", "--output=name"))
	require.NotContains(t, a.kubectl(t).Must(t, "get", "namespaces", "--output=name"), "namespace/second")
	ran(t, first.apply(t, a.values(t)))

	ran(t, first.remove(t)) // which leaves a ClusterRole, and CRDs
	ran(t, others("second", "second"))
	r := a.helm(t, "helm").Run(t, "", append([]string{"install", "landwaiter", chart, "--namespace", suite.System}, a.values(t)...)...)
	require.NotZero(t, r.Code)
	require.Contains(t, r.Stderr, "as second in namespace second")
	ran(t, a.helm(t, "helm").Run(t, "", "uninstall", "second", "--namespace", "second"))
	a.kubectl(t).Must(t, "delete", "clusterrole", "landwaiter-reconciler", "second-landwaiter-reconciler", "--ignore-not-found")
}
