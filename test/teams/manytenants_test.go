//go:build nightly

package teams

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Guardrails that read Tenants are evaluated once for each. What they cost is in the log;
// pkg/inspect/check bounds it by CEL's own count.
func TestGuardrailsCostLittleWithFiveHundredTenants(t *testing.T) {
	w := attacked(t)
	const tenants, times = 500, 40
	requests := []struct {
		name string
		who  persona
		try  request
	}{
		{"create a pod in a tenant namespace", greenDev(), create("%s", pod("iris-green-web"))},
		{"create a namespace of nobody", spawner(), create(namespace, "free", "a: b")},
		{"create a RoleBinding in a tenant namespace", greenAdmin(), create(roleBinding, "iris-green-web", "view", "{kind: User, name: guest}")},
		{"create a ConfigMap in a tenant namespace", greenDev(), create("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: iris-green-web, name: x}}")},
	}
	median := func(who persona, try request) time.Duration {
		c := w.as(t, who)
		took := make([]time.Duration, times)
		for i := range took {
			began := time.Now()
			require.NoError(t, try(suite.Within(t), c))
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		return took[times/2]
	}
	few := make([]time.Duration, len(requests))
	for i, r := range requests {
		few[i] = median(r.who, r.try)
	}
	for i := range tenants {
		object := suite.Object("{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: t%d}, spec: {homeNamespace: t%d, namespacePrefix: t%d-}}",
			i, i, i)
		require.NoError(t, w.Client.Create(suite.Within(t), object))
		t.Cleanup(func() { require.NoError(t, w.Client.Delete(suite.Within(t), object)) })
	}
	last := attack{"", spawner(), "namespace-names", "", "belong to Tenant t499", create(namespace, fmt.Sprintf("t%d-x", tenants-1), "")}
	w.refused(t, last)
	for i, r := range requests {
		many := median(r.who, r.try)
		t.Logf("%s: median %.1f ms with 2 Tenants, %.1f ms with %d", r.name, few[i].Seconds()*1000, many.Seconds()*1000, tenants+2)
	}
}
