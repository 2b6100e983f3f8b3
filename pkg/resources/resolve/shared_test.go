package resolve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// A home namespace may have thousands of rules, and a Tenant thousands of namespaces.
func TestTheMembersOfATenantShareTheRulesOfHome(t *testing.T) {
	s, _ := written.Compiled(written.Objects(t, written.Object("Tenant", "", "iris", written.Iris), written.Namespace("iris", "1"),
		written.Namespace("iris-web", "2"), written.Namespace("iris-dev-a", "3"),
		written.Object("VerificationPolicy", "iris", "a", allowing("a.example.com")), written.Object("VerificationPolicy", "iris", "b", allowing("b.example.com")),
		written.Object("VerificationPolicy", "iris", "warns", "enforcementAction: Warn\n"+allowing("c.example.com"))))
	home := s.For("iris").Tiers[0].Judge.Rules()
	require.Len(t, home, 2)
	for _, member := range []verify.Namespace{"iris-web", "iris-dev-a", "iris-dev-later"} {
		require.Same(t, &home[0], &s.For(member).Tiers[0].Judge.Rules()[0], member)
	}
}
