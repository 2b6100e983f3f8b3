package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

// observed is how serve runs in the cluster, nil if that is unknown, and then why.
type observed struct {
	serve *check.Serve
	why   string
}

// observe determines how serve runs in the cluster, as far as the person may read it.
func (f *serviceFlags) observe(ctx context.Context, person *live.Person) (observed, error) {
	serve, why, err := check.ReadServe(ctx, person.Client(), f.installed.Namespace)
	return observed{serve, why}, err
}

// enforced adds Gatekeeper's enforcement to scope, as far as the person may read it.
func (f *serviceFlags) enforced(ctx context.Context, person *live.Person, scope *live.Scope) (err error) {
	if scope.BreakGlass, err = f.breakGlass(ctx, person); err != nil {
		return err
	}
	if scope.Stopped, scope.Unwatched, err = check.ReadStopped(ctx, person.Client(), f.installed.Namespace, time.Now()); err != nil {
		return err
	}
	scope.LeftOut = constraint.LeftOut
	scope.Action, err = check.ReadActions(ctx, person.Client())
	return err
}

// breakGlass returns the server's limit on break-glass, as far as the person may read it.
func (f *serviceFlags) breakGlass(ctx context.Context, person *live.Person) (live.Limit, error) {
	server, err := f.observe(ctx, person)
	if err != nil || server.serve == nil {
		return live.Limit{Why: server.why}, err
	}
	value, given := server.serve.Flag("break-glass")
	if !given {
		return live.Limit{Known: true}, nil
	}
	most, err := time.ParseDuration(value)
	if err != nil {
		return live.Limit{Why: "serve has --break-glass=" + program.Plain(value)}, nil //nolint:nilerr // nobody can say what that means
	}
	return live.Limit{Known: true, Most: most}, nil
}

// clusterResources returns the namespace of the objects that cluster resources reference.
func (f *serviceFlags) clusterResources(server observed) string {
	namespace := f.Options.ClusterResourceNamespace
	if namespace == "" && server.serve != nil {
		namespace, _ = server.serve.Flag(program.ClusterResourcesFlag)
	}
	return cmp.Or(namespace, f.installed.Namespace)
}

// asServer sets the exception flags that the person did not give to serve's values in the
// cluster. If these are unknown, break-glass neither applies nor is ruled out. Objects that
// the server may not read are not used either.
func (f *serviceFlags) asServer(ctx context.Context, person *live.Person, server observed, states ...*live.State) error {
	serve, why := server.serve, server.why
	if err := person.ReadableBy(ctx, f.server(serve), states...); err != nil {
		return err
	}
	if serve == nil {
		if !f.served.Changed("break-glass") {
			why = "it is unknown whether serve runs with --break-glass: " + why + "; if it does, repeat its value: --serve-flag=break-glass=24h"
			for _, state := range states {
				state.WithoutBreakGlass(why, time.Now())
			}
		}
		return nil
	}
	for _, name := range []string{"max-exception", "max-delegation", "break-glass"} {
		value, given := serve.Flag(name)
		if !given || f.served.Changed(name) {
			continue
		}
		if err := f.served.Set(name, value); err != nil {
			return fmt.Errorf("read the flags of serve in namespace %s: %w", f.installed.Namespace, err)
		}
	}
	return nil
}

// server returns the account of serve, which has its usual name if serve is nil.
func (f *serviceFlags) server(serve *check.Serve) live.Server {
	server := live.Server{Namespace: f.installed.Namespace, Account: f.installed.Name, ReferenceReaderRole: "landwaiter-reference-reader",
		Guessed: serve == nil}
	if serve != nil {
		server.Account = serve.Account()
		server.ReferenceReaderRole = serve.Named("cluster-role", "reference-reader", server.ReferenceReaderRole)
	}
	return server
}
