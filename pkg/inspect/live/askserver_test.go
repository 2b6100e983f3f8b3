package live

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestTheServerIsAskedWithAPodThatATenantsNamespaceAdmits(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris", Namespaces: []string{"iris-web"}}}
	s := State{Objects: resource.Objects{Resources: []v1beta1.Object{tenant}}}
	require.Empty(t, s.AskServer("iris", ""), "no pod may run in a home namespace")
	patch, err := os.ReadFile("../../../config/restricted-pod.json")
	require.NoError(t, err)
	for _, namespace := range []string{"iris-web", "elsewhere"} {
		before, overrides, found := strings.Cut(s.AskServer(verify.Namespace(namespace), "r.example.com/app:1"), " --override-type=json --overrides='")
		require.True(t, found)
		require.Equal(t, "kubectl run asked -n "+namespace+" --image=r.example.com/app:1 --dry-run=server", before)
		require.JSONEq(t, string(patch), strings.TrimSuffix(overrides, "'"))
	}
}
