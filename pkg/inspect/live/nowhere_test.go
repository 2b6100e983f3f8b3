package live

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestAChangeForANamespaceThatDoesNotExistIsTold(t *testing.T) {
	excepts := func(namespaces ...string) v1beta1.Object {
		x := &v1beta1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
		x.Spec.Namespaces = namespaces
		return x
	}
	after := State{Objects: resource.Objects{Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "fjord-web"}}}}}
	for name, c := range map[string]struct {
		object v1beta1.Object
		says   []string
	}{
		"a typo in an exception": {excepts("fjord-wbe", "fjord-web"),
			[]string{"ClusterException x names namespace fjord-wbe, which does not exist, so it counts for nothing there; did you mean fjord-web?"}},
		"an exception everywhere": {excepts("*"), nil},
		"rules in a namespace":    {&v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "fjord-web", Name: "p"}}, nil},
		"rules in none that exists": {&v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "p"}},
			[]string{"VerificationPolicy elsewhere/p is in namespace elsewhere, which does not exist, so it counts for nothing there"}},
		"a Tenant, which makes its own": {&v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "new", Namespaces: []string{"new-web"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			change := Change{Objects: resource.Objects{Resources: []v1beta1.Object{c.object}}}
			require.Equal(t, c.says, change.Nowhere(after))
		})
	}
}
