package flux

import (
	"context"
	_ "embed" // for the accounts
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// Namespace is where Flux is installed.
const Namespace = "flux-system"

// startTimeout bounds how long the controllers take to be ready.
const startTimeout = 2 * time.Minute

//go:embed accounts.yaml
var accounts []byte

// Lockdown returns the arguments of the multi-tenancy lockdown: no references to other
// namespaces, no remote bases, and the account "default" where none is named.
func Lockdown(controller string) []string {
	switch controller {
	case "kustomize-controller":
		return []string{"--no-cross-namespace-refs=true", "--no-remote-bases=true", "--default-service-account=default"}
	case "helm-controller":
		return []string{"--no-cross-namespace-refs=true", "--default-service-account=default"}
	default:
		return nil
	}
}

// Options configure the controllers.
type Options struct {
	// Tools is the folder that test/tools/flux/build.sh prints.
	Tools string
	// Dir is an existing folder for data; the logs go to the cluster's.
	Dir string
	// Helm starts helm-controller as well.
	Helm bool
	// Env is added to the environment of the controllers.
	Env []string
	// Open leaves out the lockdown: Flux as it is installed by default.
	Open bool
}

// Flux is a set of running controllers.
type Flux struct {
	cluster   *cluster.Cluster
	options   Options
	processes []*cluster.Process
}

// Components returns what `flux install` makes besides Deployments: the CRDs of Flux's resources,
// its accounts and its roles.
func Components(tools string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(tools, "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find Flux's CRDs in %s: %d files, %w", tools, len(files), err)
	}
	objects, err := cluster.Decode(accounts)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		definitions, err := cluster.DecodeFile(file)
		if err != nil {
			return nil, err
		}
		objects = append(objects, definitions...)
	}
	return objects, nil
}

// Install applies the [Components].
func Install(ctx context.Context, c *cluster.Cluster, tools string) error {
	objects, err := Components(tools)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, objects...); err != nil {
		return fmt.Errorf("install Flux: %w", err)
	}
	return nil
}

// Start installs Flux and starts its controllers. It returns once they are ready.
func Start(ctx context.Context, c *cluster.Cluster, options Options) (_ *Flux, err error) {
	if err := Install(ctx, c, options.Tools); err != nil {
		return nil, err
	}
	return Run(ctx, c, options)
}

// Run starts the controllers of an installed Flux, and returns once they are ready.
func Run(ctx context.Context, c *cluster.Cluster, options Options) (_ *Flux, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	f := &Flux{cluster: c, options: options}
	defer func() {
		if err != nil {
			f.Stop()
		}
	}()
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return nil, err
	}
	artifacts := fmt.Sprintf("127.0.0.1:%d", ports[0])
	storage := filepath.Join(options.Dir, "flux-artifacts")
	if err := os.MkdirAll(storage, 0o750); err != nil {
		return nil, fmt.Errorf("make a folder for artifacts: %w", err)
	}
	// Kustomize refuses paths with symbolic links in them.
	if storage, err = filepath.EvalSymlinks(storage); err != nil {
		return nil, fmt.Errorf("find the folder for artifacts: %w", err)
	}
	if err := f.start(ctx, "source-controller", nil, "--storage-path="+storage, "--storage-addr="+artifacts, "--storage-adv-addr="+artifacts); err != nil {
		return nil, err
	}
	consumers := []string{"kustomize-controller"}
	if options.Helm {
		consumers = append(consumers, "helm-controller")
	}
	for _, name := range consumers {
		var args []string
		if !options.Open {
			args = Lockdown(name)
		}
		if err := f.start(ctx, name, []string{"SOURCE_CONTROLLER_LOCALHOST=" + artifacts}, args...); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// start starts a controller with the token of its account, and waits until it is ready.
func (f *Flux) start(ctx context.Context, name string, env []string, args ...string) error {
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(f.options.Dir, name+".kubeconfig")
	if err := f.cluster.AccountKubeconfig(ctx, Namespace, name, kubeconfig); err != nil {
		return err
	}
	scratch := filepath.Join(f.options.Dir, name)
	if err := os.MkdirAll(scratch, 0o750); err != nil {
		return fmt.Errorf("make a folder for %s: %w", name, err)
	}
	health := fmt.Sprintf("127.0.0.1:%d", ports[0])
	process, err := cluster.StartProcess(f.cluster.LogDir(), cluster.Command{
		Name: name, Path: filepath.Join(f.options.Tools, name),
		Args: append([]string{"--watch-all-namespaces=true", "--log-level=info", "--enable-leader-election=false", "--health-addr=" + health,
			fmt.Sprintf("--metrics-addr=127.0.0.1:%d", ports[1]),
			// What failed is tried again soon: nobody waits for a test as long as for a cluster.
			"--requeue-dependency=1s", "--min-retry-delay=200ms", "--max-retry-delay=2s"}, args...),
		Env: append([]string{"KUBECONFIG=" + kubeconfig, "RUNTIME_NAMESPACE=" + Namespace, "TMPDIR=" + scratch}, append(env, f.options.Env...)...),
	})
	if err != nil {
		return err
	}
	f.processes = append(f.processes, process)
	return process.Await(ctx, func(ctx context.Context) error { return ready(ctx, "http://"+health+"/readyz") })
}

// ready returns nil if a readiness probe succeeds.
func ready(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

// Stop ends the controllers, in reverse order.
func (f *Flux) Stop() {
	for _, process := range slices.Backward(f.processes) {
		process.Kill()
	}
	f.processes = nil
}
