package service

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers the Redis metrics if Redis is configured.
func (s *Service) Register(metrics *prometheus.Registry) {
	stats := s.RedisStats()
	if stats == nil {
		return
	}
	for outcome, value := range map[string]*atomic.Int64{"hit": &stats.Hits, "miss": &stats.Misses, "failure": &stats.Failures,
		"skipped": &stats.Skipped, "dropped": &stats.Dropped, "unopened": &stats.Unopened} {
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "landwaiter_redis_total", ConstLabels: prometheus.Labels{"outcome": outcome},
			Help: "Commands to Redis by what came of them: hit, miss, failure, skipped (after failures), dropped (a write), unopened (a value that is not ours, or was changed).",
		}, func() float64 { return float64(value.Load()) }))
	}
	metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "landwaiter_redis_round_trips_total", Help: "Round trips to Redis for reads; those of one request travel together.",
	}, func() float64 { return float64(stats.RoundTrips.Load()) }))
}
