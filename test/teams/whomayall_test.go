//go:build nightly

package teams

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

func TestTheServerAloneSaysWhoMayDoWhatWithTenants(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	w.asks(t, func(question, persona, authorizationv1.ResourceAttributes) bool { return false })
}
