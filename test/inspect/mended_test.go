//go:build nightly

package inspect

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/inspect/check"
)

func TestAnInstallationAsTheGuideSaysHasNoFindings(t *testing.T) {
	found := healthy(t).until(t, sound)
	require.Zero(t, found.code, "%+v", found.Unchecked)
	for _, u := range found.Unchecked {
		require.Empty(t, u.MissingPermission)
	}
}

// sound reports whether nothing is wrong.
func sound(d diagnosis) bool { return len(d.Findings) == 0 }

// Everything that check finds is mended by the command that it prints, and nothing else
// has to be done.
func TestEachFindingIsMendedByItsCommand(t *testing.T) {
	w := healthy(t)
	w.line(t, "kubectl create namespace team-a; kubectl create namespace team-b")
	defer w.line(t, "kubectl delete namespaces team-a team-b team-c team-d team-e")
	w.until(t, sound)
	all := rounds()
	for _, name := range slices.Sorted(maps.Keys(all)) { // what fails, fails again
		t.Run(name, func(t *testing.T) { w.breaks(t, all[name]) })
	}
}

func (w *patient) breaks(t *testing.T, round []planted) {
	t.Helper()
	var ids []string
	for _, p := range round {
		w.without(t, p.id)
		w.line(t, w.filled(p.plant))
		ids = append(ids, string(p.id))
	}
	found := w.until(t, func(d diagnosis) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(d.ids(), id) })
	})
	require.Equal(t, 1, found.code)
	ran := map[string]bool{}
	for _, f := range found.Findings {
		at := slices.IndexFunc(round, func(p planted) bool { return string(p.id) == f.ID })
		if at < 0 {
			continue // a consequence of what was planted: it goes with its cause
		}
		require.NotEmpty(t, f.Why)
		if !ran[f.Command] { // one upgrade of a chart mends several
			w.line(t, cmp.Or(f.Command, round[at].mend, "true"), "EDIT="+w.filled(round[at].edit))
		}
		ran[f.Command] = true
		w.after(t, round[at].id)
	}
	w.until(t, sound)
}

// without takes away the process of a finding that no line breaks.
func (w *patient) without(t *testing.T, id string) {
	t.Helper()
	switch id {
	case check.LeaseStale:
		w.Current().Kill()
	case check.RedisUnreachable:
		require.NoError(t, w.Redis.Pause())
	}
}

// after stands in for what a cluster with nodes, and Gatekeeper's own rotation, do after the
// printed command.
func (w *patient) after(t *testing.T, id string) {
	t.Helper()
	switch id {
	case check.NoGatekeeper, check.WebhookCA:
		require.NoError(t, w.certify(t.Context()))
	case check.NoTemplate: // the constraint went with its template
		w.line(t, "kubectl wait --for=jsonpath='{.status.created}'=true constrainttemplate/verifiedimages --timeout=2m && kubectl apply "+
			"--filename=library/verified-images/samples/constraint.yaml")
	case check.NoConstraint: // the command only begins the rehearsal, after which people enforce
		w.line(t, "kubectl apply --filename=library/verified-images/samples/constraint.yaml && kubectl delete verifiedimages verified-images-dryrun")
	case check.LeaseStale:
		_, err := w.StartReplica(t.Context(), w.Port())
		require.NoError(t, err)
	case check.RedisUnreachable:
		require.NoError(t, w.Redis.Resume())
	}
}
