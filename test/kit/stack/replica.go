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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// replicaTimeout bounds the wait for a provider to be ready.
const replicaTimeout = 2 * time.Minute

// Replica is one running provider, or operator.
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
	args, environment, err := Container(s.Rendered, release)
	if err != nil {
		return nil, err
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], mounts, s.mounted())
	}
	// Draining is for load balancers, which this stack does not have.
	args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--timeout=drain=") })
	for i, arg := range args { // the Service of the chart's own Redis has no name here
		if strings.HasPrefix(arg, "--redis-url=") {
			args[i] = "--redis-url-file=" + filepath.Join(s.mounted(), "redis", "url")
		}
	}
	name := fmt.Sprintf("landwaiter-%d", len(s.replicas))
	r, err := launch(ctx, s.Cluster, s.options.Dir, release,
		cluster.Command{Name: name, Path: s.options.Binary, Args: append(args, fmt.Sprintf("--address=127.0.0.1:%d", port)), Env: environment})
	if err != nil {
		return nil, err
	}
	s.replicas = append(s.replicas, r)
	return r, nil
}

// LaunchOperator starts the operator of a rendered chart, with the permissions of its account and
// more arguments after those of its Deployment, and does not wait. Its kubeconfig is in dir.
func LaunchOperator(ctx context.Context, c *cluster.Cluster, rendered []*unstructured.Unstructured, binary, name, dir string,
	more ...string) (*Replica, error) {
	const account = release + "-operator"
	args, environment, err := Container(rendered, account)
	if err != nil {
		return nil, err
	}
	return launch(ctx, c, dir, account, cluster.Command{Name: name, Path: binary, Args: append(args, more...), Env: environment})
}

// launch starts a command with free ports for health and metrics, as an account of the chart.
func launch(ctx context.Context, c *cluster.Cluster, dir, account string, command cluster.Command) (*Replica, error) {
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, command.Name+".kubeconfig")
	if err := c.AccountKubeconfig(ctx, Namespace, account, kubeconfig); err != nil {
		return nil, err
	}
	r := &Replica{HealthURL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), MetricsURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1])}
	command.Args = append(command.Args, fmt.Sprintf("--health-address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[1]))
	command.Env = append(command.Env, "KUBECONFIG="+kubeconfig)
	r.Process, err = cluster.StartProcess(c.LogDir(), command)
	return r, err
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
