// Command dev leaves a whole cluster up for a person: API server, Gatekeeper, Landwaiter
// from its chart, and a registry with signed and unsigned images of two teams, whose keys
// are on disk. `make dev` runs it, with FLUX=1 with Flux and a team's Git repository; it
// ends, with everything it started, on Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "landwaiter-dev-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
			return
		}
		fmt.Fprintln(os.Stderr, "dev: logs are kept in", filepath.Join(dir, "logs"))
	}()
	options := stack.Options{
		Options: cluster.Options{Tools: os.Getenv("LANDWAITER_CLUSTER_TOOLS"), Dir: dir, Progress: os.Stderr, AuditInterval: 10 * time.Second, Workloads: true},
		Root:    ".", Binary: os.Getenv("LANDWAITER_SERVER"), ChartTools: os.Getenv("LANDWAITER_CHART_TOOLS"),
		Values: map[string]any{"reports": map[string]any{"enabled": true}, "guardrails": map[string]any{"enabled": true}},
	}
	program, signer := os.Getenv("LANDWAITER_BINARY"), os.Getenv("LANDWAITER_COSIGN")
	if options.Tools == "" || options.ChartTools == "" || options.Binary == "" || program == "" || signer == "" {
		return errors.New("LANDWAITER_CLUSTER_TOOLS, LANDWAITER_CHART_TOOLS, LANDWAITER_SERVER, LANDWAITER_BINARY and LANDWAITER_COSIGN are not all " +
			"set; run make dev")
	}
	s, err := stack.Start(ctx, options)
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := reportReady(ctx, s); err != nil {
		return err
	}
	furnished, err := furnish(ctx, s, dir, program, signer)
	if err != nil {
		return err
	}
	if tools := os.Getenv("LANDWAITER_FLUX_TOOLS"); tools != "" {
		more, stop, err := withFlux(ctx, s, dir, tools, program)
		if err != nil {
			return fmt.Errorf("start Flux: %w", err)
		}
		defer stop()
		furnished.Flux = more
	}
	text, err := furnished.invitation()
	if err != nil {
		return err
	}
	fmt.Print(text)
	<-ctx.Done()
	fmt.Println("\ndev: ending")
	return nil
}
