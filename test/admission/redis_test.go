//go:build e2e

package admission

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// redisCount reads a counter of the replica that answers.
func (w *world) redisCount(ctx context.Context, outcome string) (int, error) {
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
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamA))
	w.admitted(t, ns, w.byTeamA)
	// A busy Redis misses the time it has, and the replica verifies: the next one finds the verdict.
	suite.Eventually(t, func(ctx context.Context) error {
		w.restart(t)
		w.Registry.Reset()
		w.admitted(t, ns, w.byTeamA)
		if hits, err := w.redisCount(ctx, "hit"); err != nil || hits == 0 {
			return fmt.Errorf("no verdict came from redis: %w", err)
		}
		for _, request := range w.Registry.Requests() {
			if strings.Contains(request.Path, "blobs") {
				return fmt.Errorf("%s was asked for, but the verdict was known: only the tag is resolved", request.Path)
			}
		}
		return nil
	})
}

func TestRedisIsKilledUnderLoadAndNothingFails(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	l := w.underLoad(t, ns, w.signed)
	l.settleFor(t, 20)
	w.Redis.Kill()
	// Verdicts that are not in memory, while Redis is down.
	for i := range 20 {
		image, err := w.push(suite.Within(t), fmt.Sprintf("platform/while-down-%d", i), w.platform)
		require.NoError(t, err)
		require.NoError(t, w.try(suite.Within(t), ns, image), image)
	}
	l.settleFor(t, 100)
	require.NoError(t, w.Redis.Restart(suite.Within(t)))
	before, err := w.redisCount(suite.Within(t), "miss")
	require.NoError(t, err)
	suite.Eventually(t, func(ctx context.Context) error { // it is used again
		image, err := w.push(ctx, fmt.Sprintf("platform/after-%d", w.names.Add(1)), w.platform)
		if err != nil {
			return err
		}
		if err := w.try(ctx, ns, image); err != nil {
			return err
		}
		if after, err := w.redisCount(ctx, "miss"); err != nil || after == before {
			return fmt.Errorf("redis is not asked: %w", err)
		}
		return nil
	})
	l.end(t)
}
