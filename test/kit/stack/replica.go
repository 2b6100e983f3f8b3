package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// replicaTimeout bounds the wait for a provider to be ready.
const replicaTimeout = 2 * time.Minute

// Replica is one running provider.
type Replica struct {
	*cluster.Process
	// HealthURL and MetricsURL are the URLs of probes and metrics.
	HealthURL, MetricsURL string
}

// StartReplica starts a provider with the chart's command line, and waits until
// it is ready. Gatekeeper calls the replica at Port.
func (s *Stack) StartReplica(ctx context.Context, port int) (*Replica, error) {
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	r, err := s.LaunchReplica(ctx, port)
	if err != nil {
		return nil, err
	}
	if err := r.Await(ctx, r.Ready); err != nil {
		return nil, err
	}
	return r, nil
}

// LaunchReplica starts a provider at port and does not wait.
func (s *Stack) LaunchReplica(ctx context.Context, port int) (*Replica, error) {
	args, environment, err := s.deploymentContainer()
	if err != nil {
		return nil, err
	}
	for i := range args {
		args[i] = strings.ReplaceAll(strings.ReplaceAll(args[i], "$(POD_NAMESPACE)", Namespace), mounts, s.mounted())
	}
	// Draining is for load balancers, which this stack does not have.
	args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--timeout=drain=") })
	for i, arg := range args { // the Service of the chart's own Redis has no name here
		if strings.HasPrefix(arg, "--redis-url=") {
			args[i] = "--redis-url-file=" + filepath.Join(s.mounted(), "redis", "url")
		}
	}
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("landwaiter-%d", len(s.replicas))
	kubeconfig := filepath.Join(s.options.Dir, name+".kubeconfig")
	if err := s.AccountKubeconfig(ctx, Namespace, release, kubeconfig); err != nil {
		return nil, err
	}
	args = append(args, fmt.Sprintf("--address=127.0.0.1:%d", port),
		fmt.Sprintf("--health-address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[1]))
	process, err := cluster.StartProcess(s.LogDir(), cluster.Command{Name: name, Path: s.options.Binary, Args: args, Env: append(environment, "KUBECONFIG="+kubeconfig)})
	if err != nil {
		return nil, err
	}
	r := &Replica{Process: process, HealthURL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), MetricsURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1])}
	s.replicas = append(s.replicas, r)
	return r, nil
}

// Ready is the replica's readiness probe.
func (r *Replica) Ready(ctx context.Context) error {
	_, err := Get(ctx, r.HealthURL+"/readyz")
	return err
}

// Port returns the port that Gatekeeper calls.
func (s *Stack) Port() int { return s.port }

// Current returns the replica that was started last.
func (s *Stack) Current() *Replica { return s.replicas[len(s.replicas)-1] }

// maxBody bounds a response body.
const maxBody = 16 << 20

// Get returns the body of url, and an error unless the status is 200.
func Get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return "", fmt.Errorf("get %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("get %s: %s: %s", url, response.Status, body)
	}
	return string(body), nil
}
