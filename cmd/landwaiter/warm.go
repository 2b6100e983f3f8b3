package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/report"
	"github.com/landwaiter/landwaiter/pkg/server/warm"
)

// warm verifies images ahead of admission in group, with --warm-up or --reports, and tells
// the reporter, if there is one.
func (c *clusterFlags) warm(ctx context.Context, group *errgroup.Group, config *rest.Config, s *service.Service, reporter *report.Reporter, log *logrus.Logger, metrics *prometheus.Registry) error {
	if !c.warmUp && !c.reports {
		return nil
	}
	kept, interval := s.PassTTL(), c.warmUpInterval
	if interval == 0 {
		interval = kept / 2
	}
	if interval >= kept {
		return fmt.Errorf("--warm-up-interval is %s, it must be shorter than --pass-ttl, which is %s", interval, kept)
	}
	options := warm.Options{Interval: interval, Metrics: metrics, Generation: s.Generation}
	if reporter != nil {
		options.Sink = reporter
	}
	watcher, err := warm.New(config, s, log, options)
	if err != nil {
		return err
	}
	if reporter != nil {
		reporter.Attach(watcher)
	}
	group.Go(func() error { return unavailable(watcher.Run(ctx)) })
	return nil
}

// reporter returns what writes reports, nil without --reports.
func (c *clusterFlags) reporter(config *rest.Config, s *service.Service, log *logrus.Logger, metrics *prometheus.Registry) (*report.Reporter, error) {
	if !c.reports {
		return nil, nil
	}
	return report.New(config, s, log, metrics)
}
