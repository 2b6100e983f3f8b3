//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// redisCount reads a counter of the replica that answers.
func redisCount(ctx context.Context, outcome string) (int, error) {
	metrics, err := stack.Get(ctx, w.Current().MetricsURL+"/metrics")
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`landwaiter_redis_commands_total{outcome="` + outcome + `"} ([0-9]+)`).FindStringSubmatch(metrics)
	if found == nil {
		return 0, fmt.Errorf("there is no counter %s", outcome)
	}
	return strconv.Atoi(found[1])
}

func TestARestartedReplicaFindsVerdictsInRedis(t *testing.T) {
	ns := namespace(t)
	apply(t, own(ns, w.teamA))
	admitted(t, ns, w.byTeamA)
	w.Current().Kill()
	_, err := w.StartReplica(within(t), w.Port())
	require.NoError(t, err)
	w.Registry.Reset()
	admitted(t, ns, w.byTeamA)
	hits, err := redisCount(within(t), "hit")
	require.NoError(t, err)
	require.Positive(t, hits)
	for _, request := range w.Registry.Requests() {
		require.NotContains(t, request.Path, "blobs", "the verdict was known: only the tag is resolved")
	}
}

func TestRedisIsKilledUnderLoadAndNothingFails(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	l := underLoad(t, ns, w.signed)
	l.settleFor(t, 20)
	w.Redis.Kill()
	// Verdicts that are not in memory, while Redis is down.
	for i := range 20 {
		image, err := w.push(within(t), fmt.Sprintf("platform/while-down-%d", i), w.platform)
		require.NoError(t, err)
		require.NoError(t, try(within(t), ns, image), image)
	}
	l.settleFor(t, 100)
	require.NoError(t, w.Redis.Restart(within(t)))
	before, err := redisCount(within(t), "miss")
	require.NoError(t, err)
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error { // it is used again
		image, err := w.push(ctx, fmt.Sprintf("platform/after-%d", w.names.Add(1)), w.platform)
		if err != nil {
			return err
		}
		if err := try(ctx, ns, image); err != nil {
			return err
		}
		if after, err := redisCount(ctx, "miss"); err != nil || after == before {
			return fmt.Errorf("redis is not asked: %w", err)
		}
		return nil
	}))
	l.end(t)
}
