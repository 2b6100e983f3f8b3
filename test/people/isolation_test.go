//go:build e2e

package people

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cases is doctor --isolation -o json.
type cases struct {
	Cases []struct {
		Case, Tenant, Other, Who, Outcome, Why, Fix string
		By                                          []string
	}
	Held, NotHeld, NotTried int
}

func (w *world) isolation(t *testing.T, kubeconfig string, args ...string) (cases, int, error) {
	t.Helper()
	out, code := w.landwaiter(t, kubeconfig, append([]string{"doctor", "--isolation", "-o", "json"}, args...)...)
	var found cases
	if !strings.HasPrefix(out, "{") {
		return found, code, fmt.Errorf("exit %d: %s", code, out)
	}
	return found, code, json.NewDecoder(strings.NewReader(out)).Decode(&found)
}

func (w *world) testIsolation(t *testing.T) {
	out, code := w.landwaiter(t, w.Kubeconfig(), "doctor", "--isolation", "--tenant", "iris")
	require.Zero(t, code, out)
	require.Contains(t, out, " held, 0 not held, 0 not tried; nothing was written")

	// A developer who got too much in the other team, by mistake.
	w.apply(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: oops, namespace: `+secretWord+`-web}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: iris-devs}]}`)
	w.eventually(t, func(context.Context) error {
		found, code, err := w.isolation(t, w.Kubeconfig(), "--tenant", "iris", "--other", secretWord)
		if err != nil || code != 1 {
			return fmt.Errorf("exit %d: %w", code, err)
		}
		for _, c := range found.Cases {
			if c.Case == "other-secrets" && c.Outcome == "notHeld" && strings.Contains(c.Who, "iris-devs") {
				require.Contains(t, c.Why, `RoleBinding "oops/`)
				require.NotEmpty(t, c.Fix)
				return nil
			}
		}
		return fmt.Errorf("the hole is not found: %+v", found)
	})
	// Somebody who acts as another user cannot act as a third one.
	out, code = w.landwaiter(t, w.clara.kubeconfig, "doctor", "--isolation")
	require.Equal(t, 69, code, out)
	require.Contains(t, out, "acts as another user already")
	out, code = w.landwaiter(t, w.Kubeconfig(), "doctor", "--isolation", "--tenant", "nobody")
	require.Equal(t, 64, code, out)
	require.Contains(t, out, "there is no Tenant nobody")
}
