//go:build e2e

package teams

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/landwaiter/landwaiter/test/kit/rbac"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// What roles refuse is known from the roles that the API server has, and it is asked about
// one such cell for everybody and every place. It decides about all others, which
// guardrails may refuse.
func TestWhoMayDoWhatWithTenants(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	roles, err := rbac.Read(suite.Within(t), w.Client)
	require.NoError(t, err)
	probed := map[[2]string]bool{}
	w.asks(t, func(q question, p persona, attributes authorizationv1.ResourceAttributes) bool {
		if roles.May(p.user, append(slices.Clone(p.groups), "system:authenticated"), attributes) {
			return false
		}
		cell := [2]string{q.who, q.where}
		known := probed[cell]
		probed[cell] = true
		return known
	})
}
