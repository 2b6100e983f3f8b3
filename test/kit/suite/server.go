package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// ServerOptions configure a server that runs without a cluster, or beside one.
type ServerOptions struct {
	// Binary is the variable with the path of the program, such as [LandwaiterServer].
	Binary string
	// Args are further arguments of serve: where resources come from, at least.
	Args []string
	// Env has further variables.
	Env []string
	// Timeout bounds one question. Default 10 s.
	Timeout time.Duration
}

// Server is a running provider that is asked as Gatekeeper asks.
type Server struct {
	*cluster.Process
	// Certificates are those of the server and of its client.
	Certificates *gatekeeper.Certificates
	// Client asks the server.
	Client *gatekeeper.Client
	// URL, HealthURL and MetricsURL are the three addresses, without a path.
	URL, HealthURL, MetricsURL string
}

// Server starts serve with certificates of its own on free ports, and waits until it is
// ready.
func (e *Env) Server(ctx context.Context, options ServerOptions) (*Server, error) {
	binary, err := Tool(options.Binary)
	if err != nil {
		return nil, err
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	issued, err := gatekeeper.Issue(e.Dir)
	if err != nil {
		return nil, err
	}
	ports, err := cluster.FreePorts(3)
	if err != nil {
		return nil, err
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	s := &Server{Certificates: issued, URL: "https://" + at(0), HealthURL: "http://" + at(1), MetricsURL: "http://" + at(2)}
	s.Process, err = cluster.StartProcess(e.LogDir(), cluster.Command{Name: "landwaiter", Path: binary, Env: options.Env, Args: append([]string{"serve",
		"--address", at(0), "--health-address", at(1), "--metrics-address", at(2),
		"--tls-dir", issued.Dir(), "--client-ca", issued.CAFile()}, options.Args...)})
	if err != nil {
		return nil, err
	}
	e.OnStop(s.Kill)
	s.Client = issued.Ask(s.URL, options.Timeout)
	e.OnStop(s.Client.Close)
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return s, s.Await(ctx, func(ctx context.Context) error { _, err := stack.Get(ctx, s.HealthURL+"/readyz"); return err })
}
