package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATenantIsOneLine(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show(&out, printedTenants{Tenants: []printedTenant{
		{Name: "iris-blue", Home: "iris-blue", Namespaces: 3, PolicyLevel: "Namespace", Reconciler: "iris-blue/iris-blue", Ready: "True", Provisioned: "True"},
		{Name: "iris-green", Home: "iris-green", Namespaces: 1, PolicyLevel: "Tenant", Ready: "True", Provisioned: "False: NotOwned"},
	}}))
	require.Equal(t, `NAME        HOME NAMESPACE  NAMESPACES  POLICY LEVEL  RECONCILER           READY  PROVISIONED
iris-blue   iris-blue       3           Namespace     iris-blue/iris-blue  True   True
iris-green  iris-green      1           Tenant        -                    True   False: NotOwned
`, out.String())
}
