//go:build e2e

package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// sealingSteps returns the blocks of docs/operate/rotate.md about the sealing key, by their headings.
func sealingSteps(t *testing.T, w *world) (runner *page.Runner, steps map[string][]page.Block) {
	t.Helper()
	const name = "docs/operate/rotate.md"
	read, err := page.Read(suite.Root, name)
	require.NoError(t, err)
	steps = map[string][]page.Block{}
	for _, b := range read {
		if b.Section == "The sealing key of Redis" {
			steps[b.Part] = append(steps[b.Part], b)
		}
	}
	require.Len(t, steps["Rotate it"], 3)
	require.Len(t, steps["If it is lost or stolen"], 1)
	dir := t.TempDir()
	return &page.Runner{Test: t.Name(), Dir: dir, Progress: t.Output(), Environment: []string{"HOME=" + dir, "KUBECONFIG=" + w.Kubeconfig(),
		"PATH=" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")}}, steps
}

// reseal runs the commands of a step. Without nodes, the test does what its roll-out does.
func (w *world) reseal(t *testing.T, runner *page.Runner, step page.Block) {
	t.Helper()
	const rollout = "kubectl --namespace landwaiter-system rollout "
	lines := strings.Split(step.Text, "\n")
	require.Contains(t, lines, rollout+"restart deployment/landwaiter")
	var rest []string
	for _, line := range lines {
		if !strings.HasPrefix(line, rollout) {
			rest = append(rest, line)
		}
	}
	step.Text = strings.Join(rest, "\n")
	require.NoError(t, runner.Run(t.Context(), step))
	require.NoError(t, w.RemountRedis(suite.Within(t)))
	w.restart(t)
}

// remembered waits until a restarted replica has the verdict of an image from Redis, and returns how many
// values it could not open until then.
func (w *world) remembered(t *testing.T, namespace, image string) (unopened int) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		if err := w.try(ctx, namespace, image); err != nil {
			return err
		}
		hits, err := w.redisCount(ctx, "hit")
		if err != nil {
			return err
		}
		if unopened, err = w.redisCount(ctx, "unopened"); err != nil || hits > 0 {
			return err
		}
		w.restart(t) // it has the verdict in memory now, and a busy Redis may have answered too late
		return errors.New("no verdict came from redis")
	})
	return unopened
}

func TestTheSealingKeyOfRedisIsRotatedAndLost(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamA))
	w.admitted(t, ns, w.byTeamA)
	w.denied(t, ns, w.signed)
	runner, steps := sealingSteps(t, w)
	for i, step := range steps["Rotate it"] {
		w.reseal(t, runner, step)
		require.Zero(t, w.remembered(t, ns, w.byTeamA), "step %d", i+1)
		require.NoError(t, deniedFor(w.try(suite.Within(t), ns, w.signed)), "step %d", i+1)
		if i == 1 { // what follows is an hour later: values of the old key have expired
			w.Redis.Kill()
			require.NoError(t, w.Redis.Restart(suite.Within(t)))
			w.restart(t)
			w.admitted(t, ns, w.byTeamA)
			w.remembered(t, ns, w.byTeamA)
		}
	}
	w.reseal(t, runner, steps["If it is lost or stolen"][0])
	w.admitted(t, ns, w.byTeamA) // what does not open is a miss
	require.NoError(t, deniedFor(w.try(suite.Within(t), ns, w.signed)))
	require.NoError(t, deniedFor(w.try(suite.Within(t), ns, w.unsigned)))
	suite.Eventually(t, func(ctx context.Context) error {
		if n, err := w.redisCount(ctx, "unopened"); err != nil || n == 0 {
			return fmt.Errorf("no value was counted: %w", err)
		}
		return nil
	})
	w.remembered(t, ns, w.byTeamA) // the value was replaced by one that opens
}
