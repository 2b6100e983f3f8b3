package onboard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestRedisRulesNameEachNamespaceOfATenant(t *testing.T) {
	const reads = " +get +strlen +ttl +exists +ping +hello +auth +select"
	for name, c := range map[string]struct {
		tenant  string
		members []string
		want    string
	}{
		"home, those listed " +
			"and the prefix": {tenant: "iris-green", want: "ACL SETUSER iris-green reset on >PASSWORD ~landwaiter:iris-green:* ~landwaiter:greenhouse:* " +
			"~landwaiter:iris-green-*:*" + reads},
		"exactly the namespaces that are given": {tenant: "iris-green", members: []string{"iris-green", "iris-green-web"},
			want: "ACL SETUSER iris-green reset on >PASSWORD ~landwaiter:iris-green:* ~landwaiter:iris-green-web:*" + reads},
		"a user of its own for a Tenant called as Landwaiter's user": {tenant: "landwaiter", members: []string{},
			want: "ACL SETUSER tenant_landwaiter reset on >PASSWORD ~landwaiter:iris-green:*" + reads},
		"a user of its own for a Tenant called default": {tenant: "default", members: []string{},
			want: "ACL SETUSER tenant_default reset on >PASSWORD ~landwaiter:iris-green:*" + reads},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: c.tenant},
				Spec: v1beta1.TenantSpec{HomeNamespace: "iris-green", Namespaces: []string{"greenhouse"}, NamespacePrefix: "iris-green-"}}
			require.Equal(t, []string{c.want}, RedisACL(tenant, c.members))
		})
	}
}

func TestNoTwoTenantsShareAUserInRedis(t *testing.T) {
	users := map[string]string{"default": "the default user", "landwaiter": "Landwaiter's own"}
	for _, name := range []string{"default", "landwaiter", "tenant-default", "tenant-landwaiter", "iris-green"} {
		tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris-green"}}
		user := strings.Fields(RedisACL(tenant, nil)[0])[2]
		require.NotContains(t, users, user, "%s is also %s", name, users[user])
		users[user] = name
	}
}
