//go:build e2e

package inspect

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func (w *teams) testIsolation(t *testing.T) {
	administrator := caller(t, w.Kubeconfig()).landwaiter
	require.Contains(t, administrator.Must(t, "check", "--isolation", "--tenant", w.iris), " held, 0 not held, 0 not tried; nothing was written")

	// A developer who got too much in the other team, by mistake.
	suite.Apply(t, w.Cluster, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: oops, namespace: `+w.zebraWeb+
		`}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: `+
		w.iris+`-devs}]}`)
	w.eventually(t, func(ctx context.Context) error {
		return w.dev.client.List(ctx, &corev1.SecretList{}, client.InNamespace(w.zebraWeb))
	})
	r := administrator.Run(t, "", "check", "--isolation", "-o", "json", "--tenant", w.iris, "--other", w.zebra)
	require.Equal(t, 1, r.Code, r.Stderr)
	var found struct {
		Findings []struct{ ID, Message, Fix string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &found), r.Stdout)
	holes := 0
	for _, f := range found.Findings {
		if f.ID == "other-secrets" && strings.Contains(f.Message, w.iris+"-devs") {
			require.Contains(t, f.Message, `RoleBinding "oops/`)
			require.NotEmpty(t, f.Fix)
			holes++
		}
	}
	require.Positive(t, holes, "%+v", found)
	// Somebody who acts as another user cannot act as a third one.
	r = w.clara.landwaiter.Run(t, "", "check", "--isolation")
	require.Equal(t, 69, r.Code, r.Stdout)
	require.Contains(t, r.Stderr, "already impersonates another user")
	r = administrator.Run(t, "", "check", "--isolation", "--tenant", "nobody")
	require.Equal(t, 1, r.Code, r.Stdout)
	require.Contains(t, r.Stderr, "there is no Tenant nobody")
}
