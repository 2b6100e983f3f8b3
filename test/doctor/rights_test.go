//go:build e2e

package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/doctor"
)

// unplanted are the findings that no case here plants, with the test that does.
func unplanted() map[doctor.ID]string {
	// The processes of this test have one clock.
	return map[doctor.ID]string{doctor.ClockSkew: "TestAClockThatDiffersIsSaid in pkg/doctor"}
}

func TestEachFindingIsPlantedAndHasARow(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/doctor.md")
	require.NoError(t, err)
	cases := map[doctor.ID]bool{}
	for _, round := range rounds() {
		for _, p := range round {
			cases[p.id] = true
		}
	}
	for _, id := range doctor.IDs() {
		require.True(t, cases[id] || unplanted()[id] != "", "no case plants %s", id)
		require.Contains(t, string(page), "\n### "+string(id)+"\n", "docs/doctor.md does not explain it")
	}
	require.Len(t, doctor.IDs(), len(cases)+len(unplanted()))
}

// asAccount binds a role to an account of its own and returns its kubeconfig.
func asAccount(t *testing.T, name, role string) string {
	t.Helper()
	line(t, "kubectl create serviceaccount "+name+" --namespace=default; kubectl create clusterrolebinding "+name+" --clusterrole="+role+" --serviceaccount=default:"+name)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, w.AccountKubeconfig(t.Context(), "default", name, path))
	return path
}

func TestTheRoleForDoctorReadsEverythingAndNoSecret(t *testing.T) {
	path := asAccount(t, "examiner", "landwaiter-doctor")
	found, err := w.examine(t.Context(), path)
	require.NoError(t, err)
	require.Empty(t, found.Findings)
	for _, u := range found.Unchecked {
		require.Empty(t, u.MissingRight)
	}
	require.Zero(t, found.code)
	require.Error(t, w.shell(t.Context(), "kubectl auth can-i list secrets --all-namespaces --as=system:serviceaccount:default:examiner"))
	require.Error(t, w.shell(t.Context(), "kubectl auth can-i update providers.externaldata.gatekeeper.sh --as=system:serviceaccount:default:examiner"))
}

func TestAMissingRightIsNamedAndNothingIsCalledSound(t *testing.T) {
	line(t, "kubectl get clusterrole landwaiter-doctor --output=yaml | sed 's/name: landwaiter-doctor/name: partly/; s/- providers$/- none/' | kubectl create --filename=-")
	found, err := w.examine(t.Context(), asAccount(t, "partly", "partly"))
	require.NoError(t, err)
	require.Equal(t, 2, found.code)
	require.Empty(t, found.Findings)
	at := slices.IndexFunc(found.Unchecked, func(u struct {
		IDs               []string
		MissingRight, Why string
	}) bool {
		return u.MissingRight != ""
	})
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, "list providers.externaldata.gatekeeper.sh", found.Unchecked[at].MissingRight)
	require.Contains(t, strings.Join(found.Unchecked[at].IDs, " "), "ProviderTimeout")
}
