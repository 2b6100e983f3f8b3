//go:build linux

// Package node starts a real node of a test cluster: containerd, runc and the kubelet. Its pods use the host's
// network, it needs root, and it asks no registry but one of the test, as a mirror of all.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// Options configure a [Node].
type Options struct {
	// Kubelet is the program, as test/tools/cluster/kubelet.sh builds it.
	Kubelet string
	// Dir is an empty folder for data and logs. Its path must be short: sockets are in it.
	Dir string
	// Name is that of the Node object.
	Name string
	// Mirror is the host and port of a registry on loopback that is asked for every image, by plain HTTP, with
	// the registry that was meant as the query parameter ns. Empty means that registries are asked themselves.
	Mirror string
}

// Node is a running node.
type Node struct {
	Options

	cluster   *cluster.Cluster
	binary    string // pause
	processes []*cluster.Process
}

const (
	pauseImage   = "local.test/pause:1"
	startTimeout = 2 * time.Minute
)

// Start starts a node and returns once it is Ready.
func Start(ctx context.Context, c *cluster.Cluster, options Options) (_ *Node, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a node needs root, for its containers")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	n := &Node{Options: options, cluster: c, binary: filepath.Join(options.Dir, "pause")}
	defer func() {
		if err != nil {
			n.Stop()
		}
	}()
	for _, step := range []func(context.Context) error{n.build, n.startContainerd, n.importPause, n.startKubelet} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("start node %s: %w", n.Name, err)
		}
	}
	return n, nil
}

// build compiles what images run.
func (n *Node) build(ctx context.Context) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", n.binary, "github.com/landwaiter/landwaiter/test/kit/node/pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build pause: %w: %s", err, output)
	}
	return nil
}

// Image makes an image that waits, with an ID of its own for each author.
func (n *Node) Image(author string) (v1.Image, error) {
	return n.StandIn(author, v1.Config{Entrypoint: []string{"/pause"}}, "pause")
}

// StandIn makes an image that says of itself what another one says, and whose program, at the path that the
// other one's has, waits.
func (n *Node) StandIn(author string, says v1.Config, program string) (v1.Image, error) {
	text, err := os.ReadFile(n.binary)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	layer, err := layerOf(program, text)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	file = file.DeepCopy()
	file.Author, file.OS, file.Architecture = author, "linux", "amd64"
	file.Config = says
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	return image, nil
}

// Import puts an image on the node under a name, as if somebody's pod had pulled it.
func (n *Node) Import(ctx context.Context, image v1.Image, called string) error {
	tag, err := name.NewTag(called)
	if err != nil {
		return fmt.Errorf("import %s: %w", called, err)
	}
	file := filepath.Join(n.Dir, "import.tar")
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		return fmt.Errorf("import %s: %w", called, err)
	}
	_, err = n.ctr(ctx, "images", "import", file)
	return err
}

func (n *Node) importPause(ctx context.Context) error {
	image, err := n.Image("pause")
	if err != nil {
		return err
	}
	return n.Import(ctx, image, pauseImage)
}

func (n *Node) socket() string { return filepath.Join(n.Dir, "c.sock") }

// ctr runs containerd's own client in the namespace of Kubernetes.
func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "ctr", append([]string{"-a", n.socket(), "-n", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

func (n *Node) startContainerd(ctx context.Context) error {
	if err := n.write(map[string]string{
		"cni/99-loopback.conflist": `{"cniVersion": "0.4.0", "name": "loopback", "plugins": [{"type": "loopback"}]}`,
		"containerd.toml":          n.containerdConfig(),
	}); err != nil {
		return err
	}
	if n.Mirror != "" {
		if err := n.write(
			map[string]string{"certs/_default/hosts.toml": fmt.Sprintf("[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", "http://"+n.Mirror)}); err != nil {
			return err
		}
	}
	p, err := cluster.StartProcess(filepath.Join(n.Dir, "logs"),
		cluster.Command{Name: "containerd", Path: "containerd", Args: []string{"-c", filepath.Join(n.Dir, "containerd.toml")}})
	if err != nil {
		return err
	}
	n.processes = append(n.processes, p)
	return p.Await(ctx, func(ctx context.Context) error {
		_, err := n.ctr(ctx, "version")
		return err
	})
}

// containerdConfig has no AppArmor and no scores for running out of memory, which need permissions that a test
// machine may not have.
func (n *Node) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
  address = "%[2]s"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[3]s"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%[1]s/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "%[1]s/certs"
`, n.Dir, n.socket(), pauseImage)
}

func (n *Node) startKubelet(ctx context.Context) error {
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return err
	}
	if err := n.write(map[string]string{"kubelet.yaml": fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
evictionHard: {}
containerRuntimeEndpoint: unix://%[2]s
podLogsDir: %[1]s/pods
address: 127.0.0.1
port: %[3]d
readOnlyPort: 0
healthzPort: 0
registryPullQPS: 0
eventRecordQPS: 0
syncFrequency: 10s
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: ""}}
authorization: {mode: AlwaysAllow}
`, n.Dir, n.socket(), ports[0])}); err != nil {
		return err
	}
	p, err := cluster.StartProcess(filepath.Join(n.Dir, "logs"), cluster.Command{Name: "kubelet", Path: n.Kubelet, Args: []string{
		"--config=" + filepath.Join(n.Dir, "kubelet.yaml"), "--kubeconfig=" + n.cluster.Kubeconfig(), "--root-dir=" + filepath.Join(n.Dir, "kubelet"),
		"--cert-dir=" + filepath.Join(n.Dir, "pki"), "--hostname-override=" + n.Name,
	}})
	if err != nil {
		return err
	}
	n.processes = append(n.processes, p)
	return p.Await(ctx, func(ctx context.Context) error {
		var node corev1.Node
		if err := n.cluster.Client.Get(ctx, client.ObjectKey{Name: n.Name}, &node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				if condition.Status == corev1.ConditionTrue {
					return nil
				}
				return errors.New(condition.Message)
			}
		}
		return errors.New("the node has no condition Ready")
	})
}

// write writes files below the node's folder.
func (n *Node) write(files map[string]string) error {
	for file, content := range files {
		path := filepath.Join(n.Dir, file)
		err := os.MkdirAll(filepath.Dir(path), 0o750)
		if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	return nil
}

// Pod makes a pod of the node with one container, for which admission is not asked: the API server that the node
// belongs to decides that.
func (n *Node) Pod(namespace, called, image string, pull corev1.PullPolicy) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, called
	now, no := int64(0), false
	pod.Spec = corev1.PodSpec{NodeName: n.Name, HostNetwork: true, TerminationGracePeriodSeconds: &now, AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "app", Image: image, ImagePullPolicy: pull}}}
	return pod
}

// Stop ends the kubelet, then all containers, then containerd, and takes away the mounts that they leave.
func (n *Node) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if len(n.processes) > 1 {
		n.processes[1].Kill()
	}
	if tasks, err := n.ctr(ctx, "tasks", "list", "-q"); err == nil {
		for task := range strings.FieldsSeq(tasks) {
			_, _ = n.ctr(ctx, "tasks", "delete", "--force", task) // it may have ended
		}
	}
	if len(n.processes) > 0 {
		n.processes[0].Terminate(10 * time.Second)
	}
	n.detach()
}

// detach takes away what is mounted below the node's folder, the last mount first.
func (n *Node) detach() {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return
	}
	var below []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], n.Dir+"/") {
			below = append(below, fields[1])
		}
	}
	for i := len(below) - 1; i >= 0; i-- {
		_ = syscall.Unmount(below[i], syscall.MNT_DETACH) // the folder is removed next, which says more
	}
}
