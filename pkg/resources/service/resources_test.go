package service

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

const hashMetric = "landwaiter_configuration_hash"

// hashOf returns the number that a replica reports for namespaces.
func hashOf(t *testing.T, s *Service) float64 {
	t.Helper()
	metrics := prometheus.NewRegistry()
	s.Register(metrics)
	families, err := metrics.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == hashMetric {
			require.Len(t, family.GetMetric(), 2, "of the cluster and of namespaces")
			return family.GetMetric()[1].GetGauge().GetValue()
		}
	}
	require.Fail(t, "there is no hash")
	return 0
}

func TestReplicasWithTheSameObjectsReportTheSameHash(t *testing.T) {
	first, _ := registered(t)
	second, _ := registered(t)
	require.Zero(t, testutil.CollectAndCount(newResources(first.set, first.namespaces, time.Now), hashMetric), "a replica that has loaded nothing is not compared")
	objects := func(action v1beta1.DefaultAction) (o resource.Objects) {
		for _, namespace := range []string{"team-a", "team-b", "team-c"} {
			broken(t, &o, namespace)
			require.NoError(t,
				o.Add(&v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"},
					Spec: v1beta1.VerificationPolicySpec{DefaultAction: action}}))
		}
		return o
	}
	reversed := func(o resource.Objects) resource.Objects {
		slices.Reverse(o.Resources)
		slices.Reverse(o.Namespaces)
		return o
	}
	first.Apply(t.Context(), objects(v1beta1.DefaultActionAllow))
	second.Apply(t.Context(), reversed(objects(v1beta1.DefaultActionAllow)))
	before := hashOf(t, first)
	require.InDelta(t, before, hashOf(t, second), 0)
	first.Apply(t.Context(), objects(v1beta1.DefaultActionDeny))
	require.NotEqual(t, before, hashOf(t, first))
	second.Apply(t.Context(), reversed(objects(v1beta1.DefaultActionDeny)))
	require.InDelta(t, hashOf(t, first), hashOf(t, second), 0)
	first.Apply(t.Context(), objects(v1beta1.DefaultActionAllow))
	require.InDelta(t, before, hashOf(t, first), 0, "reverted")
}
