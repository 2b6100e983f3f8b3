package main

import (
	"context"
	_ "embed" // for the invitation
	"path/filepath"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

//go:embed flux.txt
var fluxInvitation string

// fluxTeam is the Tenant whose repository Flux applies.
const fluxTeam = "iris-green"

// withFlux starts Flux's controllers and a Git server with the repository of a team, which
// has a working copy to push from. It returns what there is to try.
func withFlux(ctx context.Context, s *stack.Stack, dir, tools, binary string) (invitation string, stop func(), err error) {
	controllers, err := flux.Start(ctx, s.Cluster, flux.Options{Tools: tools, Dir: dir})
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			controllers.Stop()
		}
	}()
	git, err := flux.StartGit(ctx, filepath.Join(dir, "git"))
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			git.Close()
		}
	}()
	repository, err := git.Create(ctx, fluxTeam)
	if err != nil {
		return "", nil, err
	}
	const app = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: " + fluxTeam + "-web, name: app}\ndata: {from: git}\n"
	if _, err := repository.Commit(ctx, "begin", map[string]string{"app.yaml": app}); err != nil {
		return "", nil, err
	}
	if err := onboard(ctx, s, binary, fluxTeam, "--set", "namespaces="+fluxTeam+"-web", "--set", "reconciler.source.url="+repository.URL(), "--set",
		"reconciler.source.secretRef.name=git"); err != nil {
		return "", nil, err
	}
	if err := s.Apply(ctx, repository.Secret(fluxTeam, "git")); err != nil {
		return "", nil, err
	}
	// The Secret came after the source that names it.
	err = cluster.Until(ctx, func(ctx context.Context) error {
		return flux.Reconcile(ctx, s.Cluster, flux.GitRepository(), fluxTeam, fluxTeam)
	})
	if err != nil {
		return "", nil, err
	}
	invitation, err = furnished{Repository: repository.Dir}.expand(fluxInvitation)
	return invitation, func() { controllers.Stop(); git.Close() }, err
}
