//go:build e2e || nightly

package admission

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// mutation is that of the chart's Provider, with the certificate as rotation keeps it.
func (w *world) mutation(t *testing.T) onboard.Mutation {
	t.Helper()
	provider := &unstructured.Unstructured{}
	provider.SetAPIVersion("externaldata.gatekeeper.sh/v1beta1")
	provider.SetKind("Provider")
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: "landwaiter-mutate"}, provider))
	url, _, err := unstructured.NestedString(provider.Object, "spec", "url")
	require.NoError(t, err)
	encoded, _, err := unstructured.NestedString(provider.Object, "spec", "caBundle")
	require.NoError(t, err)
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	return onboard.Mutation{ProviderURL: strings.TrimSuffix(url, "/v1/mutate"), CABundle: bundle}
}

func tenantOf(name, home string) *v1beta1.Tenant {
	return &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.TenantSpec{HomeNamespace: home}}
}
