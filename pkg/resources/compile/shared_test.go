package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// A home namespace may have thousands of rules, and a Tenant thousands of namespaces.
func TestTheMembersOfATenantShareTheRulesOfHome(t *testing.T) {
	s, _ := compiled(objects(t, object("Tenant", "", "iris", iris), namespace("iris", "1"), namespace("iris-web", "2"), namespace("iris-dev-a", "3"),
		object("VerificationPolicy", "iris", "a", allowing("a.example.com")), object("VerificationPolicy", "iris", "b", allowing("b.example.com")),
		object("VerificationPolicy", "iris", "warns", "enforcementAction: Warn\n"+allowing("c.example.com"))))
	home := s.For("iris").Layers[0].Judge.Rules()
	require.Len(t, home, 2)
	for _, member := range []verify.Namespace{"iris-web", "iris-dev-a", "iris-dev-later"} {
		require.Same(t, &home[0], &s.For(member).Layers[0].Judge.Rules()[0], member)
	}
}
