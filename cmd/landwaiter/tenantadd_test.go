package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

func TestADryRunOfTenantAddSaysWould(t *testing.T) {
	const result = `"tenants": [{"tenant": "iris", "homeNamespace": "iris", "namespaces": ["iris", "iris-web"], "created": 1, "changed": 1, "unchanged": 2, "removed": 1, "released": 1,
		"objects": [{"object": {"kind": "Namespace", "name": "iris-web"}, "result": "created"}, {"object": {"kind": "Tenant", "name": "iris"}, "result": "changed"},
			{"object": {"kind": "Namespace", "name": "iris"}, "result": "unchanged"}]}]}`
	for name, c := range map[string]struct{ json, want string }{
		"a dry run": {`{"dryRun": true, ` + result, `OBJECT              RESULT
Namespace iris-web  would be created
Tenant iris         would be changed
tenant iris: home namespace iris, 1 namespace, 4 objects: 1 would be created, 1 would be changed, 2 would be unchanged, 1 would be removed, 1 would be released
`},
		"no dry run": {`{` + result, `OBJECT              RESULT
Namespace iris-web  created
Tenant iris         changed
tenant iris: home namespace iris, 1 namespace, 4 objects: 1 created, 1 changed, 2 unchanged, 1 removed, 1 released
`},
	} {
		t.Run(name, func(t *testing.T) {
			var added printedAdded
			require.NoError(t, json.Unmarshal([]byte(c.json), &added))
			var out bytes.Buffer
			require.NoError(t, show(&out, added))
			require.Equal(t, c.want, out.String())
		})
	}
}

// Until a quota is counted, the API server refuses what a team makes.
func TestTenantAddWaitsUntilQuotasAreCounted(t *testing.T) {
	const name = corev1.ResourceName("count/verifiers.landwaiter.dev")
	for about, c := range map[string]struct {
		comes, waits time.Duration
		must         bool
		fails, says  string
	}{
		"they are counted soon": {comes: 3 * time.Second, waits: 3 * time.Second},
		"they are not counted soon": {comes: time.Minute, waits: quotaPatience,
			says: "landwaiter: ResourceQuota iris/tenant is not counted by Kubernetes' quota controller yet; until then the API server may refuse resources there"},
		"with --wait, they are counted": {comes: time.Minute, waits: time.Minute, must: true},
		"with --wait, they never are": {comes: time.Hour, waits: 5 * time.Minute, must: true,
			fails: "wait for quotas: gave up: context deadline exceeded; ResourceQuota iris/tenant is not counted"},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "iris", Name: "tenant"},
					Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("64")}}}
				cluster := fake.NewClientBuilder().WithObjects(quota).
					WithInterceptorFuncs(
						interceptor.Funcs{Get: func(ctx context.Context, cluster client.WithWatch, key client.ObjectKey, object client.Object,
							options ...client.GetOption) error {
							err := cluster.Get(ctx, key, object, options...)
							if read, ok := object.(*corev1.ResourceQuota); ok && time.Since(began) >= c.comes {
								read.Status = corev1.ResourceQuotaStatus{Hard: read.Spec.Hard, Used: corev1.ResourceList{name: resource.MustParse("0")}}
							}
							return err
						}}).Build()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				var said bytes.Buffer
				err := awaitQuotas(ctx, &said, operator.New(cluster, operator.Options{}),
					[]policy.ObjectRef{{Kind: "ResourceQuota", Namespace: "iris", Name: "tenant"}}, c.must)
				if c.fails == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.fails)
				}
				require.Equal(t, c.waits, time.Since(began).Round(time.Second))
				require.True(t, strings.HasPrefix(said.String(), c.says) && (c.says == "") == (said.Len() == 0), said.String())
			})
		})
	}
}
