// Command demo shows Landwaiter at work in one process. It starts a registry and
// the provider, makes keys and certificates, pushes and signs images for two
// teams, loads their resources, and sends Gatekeeper's requests over mutual TLS.
// It prints who may use what, and why. Then it stays up for you to try, until you
// interrupt it. With -once it ends, with exit code 1 if any verdict was not the
// expected one.
//
//	go run ./test/demo -once
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/pkg/server/serving"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

const (
	// askTimeout is Gatekeeper's own.
	askTimeout = 3 * time.Second
	// readyTimeout bounds how long the provider takes to load the resources.
	readyTimeout = 10 * time.Second
)

func main() {
	once := flag.Bool("once", false, "end after the table instead of staying up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Stderr, *once)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run writes into one directory, which it removes at the end.
func run(ctx context.Context, out, errOut io.Writer, once bool) (err error) {
	dir, err := os.MkdirTemp("", "landwaiter-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Fprintln(out, "Making keys and certificates, starting a registry, pushing and signing images …")
	resources := filepath.Join(dir, "resources")
	cluster, err := example.Start(ctx, resources)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Registry.Close()) }()
	certificates, err := gatekeeper.Issue(dir)
	if err != nil {
		return err
	}
	s, err := service.New(service.Options{}, service.AnyNamespace{})
	if err != nil {
		return err
	}
	defer s.Close()
	log := logrus.New()
	log.SetOutput(errOut)
	log.SetLevel(logrus.ErrorLevel) // denials are what the table shows
	identity, err := serving.New(nil, log, serving.Options{CertificateFile: certificates.CertificateFile(),
		KeyFile: certificates.KeyFile(), ClientCAFiles: []string{certificates.CAFile()}})
	if err != nil {
		return err
	}
	server, err := listen(ctx, s, identity, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Watch(running, resources, func([]resource.Problem) {}) })
	group.Go(func() error { return identity.Run(running) })
	group.Go(func() error { return s.Run(running) })
	group.Go(func() error { return server.Run(running) })
	group.Go(func() error {
		defer stop()
		client := certificates.Ask("https://"+server.Address(), askTimeout)
		defer client.Close()
		if err := awaitReady(running, s); err != nil {
			return err
		}
		answers, err := askAll(running, client, cluster.Questions)
		if err != nil {
			return err
		}
		show := forTerminals(out)
		show.story(answers)
		if err := show.table(answers); err != nil || once {
			return err
		}
		invite(out, dir, resources, client.URL, server.MetricsAddress(), cluster.Questions[0].Key)
		<-running.Done()
		return nil
	})
	return group.Wait()
}

// listen makes a provider that does not answer yet.
func listen(ctx context.Context, s *service.Service, identity *serving.Identity, log *logrus.Logger) (*provider.Server, error) {
	options := provider.Options{
		Address: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0",
		TLS: identity, ClientNames: []string{gatekeeper.ClientName},
		Ready: s.Set().Ready, Metrics: prometheus.NewRegistry(),
	}
	server, err := provider.New(s, s, log, options)
	if err != nil {
		return nil, err
	}
	return server, server.Listen(ctx)
}

// awaitReady waits until the resources are in force.
func awaitReady(ctx context.Context, s *service.Service) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for s.Set().Ready() != nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the provider did not become ready: %w", context.Cause(ctx))
		}
	}
	return nil
}

// invite says what to try while the demo is up.
func invite(out io.Writer, dir, resources, url, metrics, key string) {
	body := `{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderRequest","request":{"keys":["` + key + `"]}}`
	fmt.Fprintf(out, `
The provider stays up at %s until Ctrl-C. Ask it as Gatekeeper does:

  curl --cacert %[2]s/ca.crt --cert %[2]s/gatekeeper.crt --key %[2]s/gatekeeper.key \
    -H 'Content-Type: application/json' \
    -d '%[3]s' \
    %[1]s/v1/verify

Put team-b instead of team-a into the key, and it is denied. The resources of both teams are in %[4]s:
edit one, and ask again. Metrics are at http://%[5]s/metrics. Everything that was written is removed at the end.
`, url, dir, body, resources, metrics)
}
