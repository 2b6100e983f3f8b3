package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Options configure a [Cluster].
type Options struct {
	// Tools is the folder with kube-apiserver, kube-controller-manager, kubectl,
	// gatekeeper and gatekeeper.yaml, as test/tools/cluster/build.sh makes it.
	Tools string
	// Dir is an empty folder for data and logs.
	Dir string
	// Progress receives progress messages; nil discards them.
	Progress io.Writer
	// CacheTTL is how long Gatekeeper caches provider responses. Default 0.
	CacheTTL time.Duration
	// AuditInterval is the time between audits. Default 2 s.
	AuditInterval time.Duration
	// Workloads runs the controllers of Deployments, ReplicaSets and Jobs.
	Workloads bool
	// ManagerArgs are further arguments of kube-controller-manager; they win over its own.
	ManagerArgs []string
	// ServerArgs are further arguments of kube-apiserver; they win over its own.
	ServerArgs []string
	// WithoutGatekeeper starts the control plane alone.
	WithoutGatekeeper bool
	// WithoutWebhooks makes the API server keep webhooks and call none: they may then name
	// Services, and be as broken as a test needs.
	WithoutWebhooks bool
}

// Cluster is a running control plane with Gatekeeper.
type Cluster struct {
	// Config is that of an administrator, who may impersonate any user.
	Config *rest.Config
	// Client is the administrator's.
	Client client.Client

	options    Options
	ca         *fixture.Authority // of the API server
	token      string
	processes  []*Process // in start order
	gatekeeper gatekeeper
	kubeconfig string
}

const startTimeout = 2 * time.Minute

// Start starts the cluster and returns once Gatekeeper's webhook answers.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	if options.AuditInterval == 0 {
		options.AuditInterval = 2 * time.Second
	}
	ctrllog.SetLogger(logr.Discard()) // the client library complains without one
	c := &Cluster{options: options}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	if c.ca, err = fixture.NewAuthority("landwaiter-test"); err != nil {
		return nil, err
	}
	for _, step := range []struct {
		name  string
		start func(context.Context) error
	}{
		{"etcd and kube-apiserver", c.startControlPlane},
		{"kube-controller-manager", c.startControllerManager},
		{"gatekeeper", c.installGatekeeper},
	} {
		if step.name == "gatekeeper" && options.WithoutGatekeeper {
			continue
		}
		began := time.Now()
		if err := step.start(ctx); err != nil {
			return nil, fmt.Errorf("start %s: %w", step.name, err)
		}
		fmt.Fprintf(options.Progress, "cluster: %s started in %s\n", step.name, time.Since(began).Round(time.Millisecond))
	}
	return c, nil
}

// Stop kills the processes in reverse order. It skips a graceful shutdown, which takes
// Gatekeeper alone more than ten seconds.
func (c *Cluster) Stop() {
	for _, process := range slices.Backward(c.processes) {
		process.Kill()
	}
	c.processes = nil
}

// LogDir returns the folder of the processes' logs.
func (c *Cluster) LogDir() string { return filepath.Join(c.options.Dir, "logs") }

// Kubeconfig returns the path of the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// start starts a process that ends with the cluster.
func (c *Cluster) start(command Command) (*Process, error) {
	p, err := StartProcess(c.LogDir(), command)
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return p, err
}

func (c *Cluster) startControlPlane(ctx context.Context) error {
	ports, err := FreePorts(3)
	if err != nil {
		return err
	}
	etcd := "http://" + loopback(ports[0])
	if _, err := c.start(Command{Name: "etcd", Path: "etcd", Args: []string{
		"--data-dir", c.data(), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", "http://" + loopback(ports[1]),
	}, Env: []string{"ETCD_UNSUPPORTED_ARCH=arm64"}}); err != nil {
		return err
	}
	files, err := c.apiServerFiles()
	if err != nil {
		return err
	}
	disabled := "ServiceAccount"
	if c.options.WithoutWebhooks {
		disabled += ",MutatingAdmissionWebhook,ValidatingAdmissionWebhook"
	}
	apiserver, err := c.start(Command{Name: "kube-apiserver", Path: filepath.Join(c.options.Tools, "kube-apiserver"), Args: append([]string{
		"--etcd-servers=" + etcd, fmt.Sprintf("--secure-port=%d", ports[2]), "--bind-address=127.0.0.1",
		"--cert-dir=" + c.options.Dir, "--tls-cert-file=" + files["apiserver.crt"], "--tls-private-key-file=" + files["apiserver.key"],
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + files["accounts.crt"],
		"--service-account-signing-key-file=" + files["accounts.key"], "--service-cluster-ip-range=10.0.0.0/24",
		"--token-auth-file=" + files["tokens.csv"], "--authorization-mode=RBAC",
		"--disable-admission-plugins=" + disabled, "--allow-privileged=true", "--max-requests-inflight=800",
	}, c.options.ServerArgs...)})
	if err != nil {
		return err
	}
	server := "https://" + loopback(ports[2])
	c.Config = &rest.Config{Host: server, BearerToken: c.token, QPS: 200, Burst: 400,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.CertificatePEM}}
	c.kubeconfig = filepath.Join(c.options.Dir, "kubeconfig")
	if err := c.WriteKubeconfig(c.kubeconfig, c.token); err != nil {
		return err
	}
	if err := apiserver.Await(ctx, c.healthy); err != nil {
		return err
	}
	c.Client, err = c.NewClient(c.Config)
	return err
}

// apiServerFiles writes the files of kube-apiserver, and returns their paths.
func (c *Cluster) apiServerFiles() (map[string]string, error) {
	serving, err := c.ca.IssueServer("127.0.0.1", "localhost", "kubernetes.default.svc")
	if err != nil {
		return nil, err
	}
	accounts, err := fixture.NewAuthorityWith("service accounts", fixture.CertificateOptions{})
	if err != nil {
		return nil, err
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make the administrator's token: %w", err)
	}
	c.token = hex.EncodeToString(random)
	paths := map[string]string{}
	for name, content := range map[string][]byte{
		"apiserver.crt": serving.CertificatePEM, "apiserver.key": serving.KeyPEM, "accounts.key": accounts.KeyPEM, "accounts.crt": accounts.CertificatePEM,
		"tokens.csv": []byte(c.token + ",admin,admin,system:masters\n"),
	} {
		paths[name] = filepath.Join(c.options.Dir, name)
		if err := os.WriteFile(paths[name], content, 0o600); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	return paths, nil
}

// healthy returns nil if kube-apiserver is ready.
func (c *Cluster) healthy(ctx context.Context) error {
	httpClient, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return answers(ctx, httpClient, c.Config.Host+"/readyz")
}

// answers returns an error unless a GET of url has the status 200.
func answers(ctx context.Context, httpClient *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil || response.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("%s answered %s: %s", url, response.Status, body), err)
	}
	return nil
}

// newScheme returns the types that the clients use.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	return scheme, nil
}

// NewClient returns a client for a configuration other than the administrator's.
func (c *Cluster) NewClient(config *rest.Config) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return made, nil
}

// controllers lists the controllers of kube-controller-manager to run.
func (c *Cluster) controllers() string {
	names := "clusterrole-aggregation-controller,namespace-controller,serviceaccount-controller,resourcequota-controller,garbage-collector-controller"
	if c.options.Workloads {
		names += ",deployment-controller,replicaset-controller,job-controller,disruption-controller"
	}
	return names
}

func (c *Cluster) startControllerManager(ctx context.Context) error {
	ports, err := FreePorts(1)
	if err != nil {
		return err
	}
	manager, err := c.start(Command{Name: "kube-controller-manager", Path: filepath.Join(c.options.Tools, "kube-controller-manager"), Args: append([]string{
		"--kubeconfig=" + c.kubeconfig, "--authentication-kubeconfig=" + c.kubeconfig, "--authorization-kubeconfig=" + c.kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]), "--cert-dir=" + c.options.Dir, "--leader-elect=false",
		"--controllers=" + c.controllers(), "--resource-quota-sync-period=5s", // how soon it counts kinds that were not known before; five minutes by default
		"--service-account-private-key-file=" + filepath.Join(c.options.Dir, "accounts.key"), "--use-service-account-credentials=false",
	}, c.options.ManagerArgs...)})
	if err != nil {
		return err
	}
	// It is ready when it aggregates, which installs wait for where they need it.
	select {
	case <-manager.Ended():
		return fmt.Errorf("it ended; its log ends with:\n%s", manager.Tail(20))
	case <-ctx.Done():
		return ctx.Err()
	default:
		return nil
	}
}
