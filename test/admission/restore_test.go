//go:build nightly

package admission

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// restorable is a world of its own, because a restore concerns everything.
func restorable(t *testing.T) *world {
	t.Helper()
	e := suite.ForTest(t)
	s, err := e.Stack(t.Context(), cluster.Options{},
		map[string]any{"operator": map[string]any{"enabled": true, "flux": false}, "guardrails": map[string]any{"enabled": true}})
	require.NoError(t, err)
	w := &world{Stack: s}
	require.NoError(t, w.prepare(suite.Within(t)))
	return w
}

// identity returns the UID of a namespace.
func (w *world) identity(t *testing.T, name string) types.UID {
	t.Helper()
	read := suite.Namespace(name)
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(read), read))
	return read.GetUID()
}

// teamOf returns a Tenant that the operator provides with namespaces.
func teamOf(name string) string {
	return fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: %s}, spec: {homeNamespace: %s, namespaces: [%s-web]}}",
		name, name, name)
}

// usable waits until an image is admitted in the namespaces of a Tenant and the operator says that it is
// complete.
func (w *world) usable(t *testing.T, name string) {
	t.Helper()
	for _, ns := range []string{name, name + "-web"} {
		suite.Eventually(t, func(ctx context.Context) error {
			return w.Client.Create(ctx, suite.Restricted(suite.Pod(ns, "probe", w.signed)), client.DryRunAll)
		})
	}
	w.condition(t, &v1beta1.Tenant{}, "", name, metav1.ConditionTrue, "Valid")
}

const (
	allowing = "{rules: [{images: [\"**\"], action: Allow}]}"
	excepted = "\n---\n{apiVersion: landwaiter.dev/v1beta1, kind: ClusterException, metadata: {name: short}, spec: {images: [%q], namespaces: [excepted], " +
		"until: %q, reason: OPS-1}}"
)

// operate starts the operator as kubelet does: again, until it is ready. After a restore, the API server
// may not know yet what the guardrails need, and then the operator ends.
func (w *world) operate(t *testing.T) (operator *stack.Replica) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		operator = suite.LaunchOperator(t, w.Cluster, w.Rendered)
		return operator.Await(ctx, operator.Ready)
	})
	return operator
}

// deleted deletes an object, once the API server knows what the guardrails need.
func (w *world) deleted(t *testing.T, object client.Object) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error { return client.IgnoreNotFound(w.Client.Delete(ctx, object)) })
}

// changed makes the cluster another one than in its backup, and verdicts by its rules are cached.
func (w *world) changed(t *testing.T) {
	t.Helper()
	w.apply(t, policy("loosened", "release", allowing))
	w.apply(t, own("tightened", w.teamB))
	w.deleted(t, suite.Namespace("again"))
	suite.Eventually(t, func(ctx context.Context) error { return w.Client.Create(ctx, suite.Namespace("again")) })
	w.apply(t, policy("again", "release", allowing))
	w.deleted(t, suite.Resource("Tenant", "", "removed", "{}"))
	w.apply(t, teamOf("added"))
	w.usable(t, "added")
	w.admitted(t, "loosened", w.unsigned)
	w.admitted(t, "again", w.unsigned)
	w.denied(t, "tightened", w.byTeamA)
	w.denied(t, "excepted", w.unsigned)
}

// asInTheBackup requires that the rules of the backup hold, and that Tenants become as they were.
func (w *world) asInTheBackup(t *testing.T) {
	t.Helper()
	w.admitted(t, "tightened", w.byTeamA)
	w.admitted(t, "again", w.byTeamA)
	w.usable(t, "kept")
	w.usable(t, "removed")
	require.True(t, apierrors.IsNotFound(w.Client.Get(suite.Within(t), client.ObjectKey{Name: "added"}, &v1beta1.Tenant{})))
	w.apply(t, policy("kept", "lax", allowing)) // changes are seen again
	suite.Eventually(t, func(ctx context.Context) error {
		return w.Client.Create(ctx, suite.Restricted(suite.Pod("kept-web", "probe", w.unsigned)), client.DryRunAll)
	})
}

func TestARestoredClusterAdmitsNothingThatItsRulesDeny(t *testing.T) {
	w := restorable(t)
	operator := w.operate(t)
	for _, name := range []string{"loosened", "tightened", "again", "excepted"} {
		w.apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	}
	// In the backup, team A signs what is admitted in these namespaces.
	w.apply(t, own("loosened", w.teamA)+own("tightened", w.teamA)+own("again", w.teamA))
	w.apply(t, teamOf("kept"))
	w.apply(t, teamOf("removed"))
	for _, name := range []string{"loosened", "tightened", "again"} {
		w.admitted(t, name, w.byTeamA)
		w.denied(t, name, w.unsigned)
	}
	w.usable(t, "kept")
	w.usable(t, "removed")
	w.apply(t, fmt.Sprintf(excepted, w.Registry.Host()+"/somebody/app", time.Now().Add(10*time.Second).UTC().Format(time.RFC3339)))
	w.admitted(t, "excepted", w.unsigned)
	before := w.identity(t, "again")
	operator.Terminate(suite.Patience) // the lease is free
	require.NoError(t, w.Backup(suite.Within(t)))

	t.Run("Landwaiter ends before the API server starts", func(t *testing.T) {
		operator := w.operate(t)
		w.changed(t)
		require.NotEqual(t, before, w.identity(t, "again"))
		w.Current().Kill()
		operator.Kill()
		require.NoError(t, w.Restore(suite.Within(t)))
		require.Equal(t, before, w.identity(t, "again"), "the cluster is that of the backup")
		denied := []string{"loosened", "again", "excepted"}
		for _, name := range denied {
			require.Error(t, w.try(suite.Within(t), name, w.unsigned))
		}
		_, err := w.StartReplica(suite.Within(t), w.Port())
		require.NoError(t, err)
		for range 10 {
			for _, name := range denied { // Redis has a verdict by the rules that are gone
				require.Error(t, w.try(suite.Within(t), name, w.unsigned), name)
			}
		}
		for _, name := range denied {
			w.denied(t, name, w.unsigned)
		}
		w.operate(t)
		w.asInTheBackup(t)
	})
	t.Run("Landwaiter runs on", func(t *testing.T) {
		operator := w.operate(t)
		w.changed(t)
		require.NoError(t, w.Restore(suite.Within(t)))
		operator.Kill() // it ends when it cannot renew its lease, and kubelet starts it again
		w.operate(t)
		for _, name := range []string{"loosened", "again", "excepted"} {
			w.denied(t, name, w.unsigned)
		}
		w.asInTheBackup(t)
	})
}
