//go:build nightly

package inspect

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// asAccount binds a role to an account of its own and returns its kubeconfig.
func (w *patient) asAccount(t *testing.T, name, role string) string {
	t.Helper()
	w.line(t, "kubectl create serviceaccount "+name+" --namespace=default; kubectl create clusterrolebinding "+name+" --clusterrole="+role+
		" --serviceaccount=default:"+name)
	t.Cleanup(func() {
		require.NoError(t, w.shell(context.Background(), "kubectl delete serviceaccount "+name+" --namespace=default && kubectl delete clusterrolebinding "+name))
	})
	suite.Eventually(t, func(ctx context.Context) error {
		return w.shell(ctx, "kubectl auth can-i list namespaces --as=system:serviceaccount:default:"+name)
	})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, w.AccountKubeconfig(t.Context(), "default", name, path))
	return path
}

func TestTheRoleForCheckReadsEverythingAndNoSecret(t *testing.T) {
	w := healthy(t)
	found, err := w.examine(t, w.asAccount(t, "examiner", "landwaiter-checker"))
	require.NoError(t, err)
	require.Empty(t, found.Findings)
	for _, u := range found.Unchecked {
		require.Empty(t, u.MissingPermission)
	}
	require.Zero(t, found.code)
	require.Error(t, w.shell(t.Context(), "kubectl auth can-i list secrets --all-namespaces --as=system:serviceaccount:default:examiner"))
	require.Error(t, w.shell(t.Context(), "kubectl auth can-i update providers.externaldata.gatekeeper.sh --as=system:serviceaccount:default:examiner"))
}

func TestAMissingRightIsNamedAndNothingIsCalledSound(t *testing.T) {
	w := healthy(t)
	w.line(t, "kubectl get clusterrole landwaiter-checker --output=yaml | sed 's/name: landwaiter-checker/name: partly/; s/- providers$/- none/' | kubectl "+
		"create --filename=-")
	t.Cleanup(func() { require.NoError(t, w.shell(context.Background(), "kubectl delete clusterrole partly")) })
	found, err := w.examine(t, w.asAccount(t, "partly", "partly"))
	require.NoError(t, err)
	require.Equal(t, 2, found.code)
	require.Empty(t, found.Findings)
	at := slices.IndexFunc(found.Unchecked, func(u unchecked) bool { return u.MissingPermission != "" })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, "list providers.externaldata.gatekeeper.sh", found.Unchecked[at].MissingPermission)
	require.Contains(t, strings.Join(found.Unchecked[at].IDs, " "), "ProviderTimeout")
}
