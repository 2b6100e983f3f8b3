package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/service"
	"github.com/landwaiter/landwaiter/pkg/warm"
)

// warm verifies images ahead of admission in group, with --warm-up.
func (c *clusterFlags) warm(ctx context.Context, group *errgroup.Group, config *rest.Config, s *service.Service, log *logrus.Logger, metrics *prometheus.Registry) error {
	if !c.warmUp {
		return nil
	}
	kept, interval := s.PassTTL(), c.warmUpInterval
	if interval == 0 {
		interval = kept / 2
	}
	if interval >= kept {
		return fmt.Errorf("--warm-up-interval is %s, it must be shorter than --pass-ttl, which is %s", interval, kept)
	}
	watcher, err := warm.New(config, s, log, warm.Options{Interval: interval, Metrics: metrics})
	if err != nil {
		return err
	}
	group.Go(func() error { return unavailable(watcher.Run(ctx)) })
	return nil
}
