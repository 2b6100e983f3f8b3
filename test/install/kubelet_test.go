//go:build e2e || nightly

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	app      = "app.kubernetes.io/name"
	template = "pod-template-hash"
)

// kubelet does what kubelets and a Service do with Landwaiter's pods: it runs a process with the
// arguments, the account, the Secrets and the ConfigMaps of the newest pod, and reports the pods of the same
// template as ready once the process is. Then new connections go to it, and the process of the template before ends.
type kubelet struct {
	*cluster.Cluster
	binary, dir, authority string
	host                   string // of port, 127.0.0.1 if empty
	port                   int    // that Gatekeeper reaches

	logged  int                    // bytes that older processes logged
	running []served               // the newest last
	target  atomic.Pointer[string] // address of the process that is ready
}

// served is the process of the pods of a template.
type served struct {
	template, health, address string
	process                   *cluster.Process
}

// newest is the process that was started last.
func (k *kubelet) newest() served {
	if len(k.running) == 0 {
		return served{}
	}
	return k.running[len(k.running)-1]
}

// start watches pods until the test ends.
func (k *kubelet) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(k.host, "127.0.0.1"), "0"))
	require.NoError(t, err)
	k.port = listener.Addr().(*net.TCPAddr).Port
	before, err := os.ReadFile(k.log())
	require.True(t, err == nil || errors.Is(err, os.ErrNotExist), err)
	k.logged, k.running = len(before), nil
	k.target.Store(nil)
	go k.forward(listener)
	require.NoError(t, os.MkdirAll(k.dir, 0o700))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := ""
		for ctx.Err() == nil {
			if err := k.step(ctx); err != nil && err.Error() != last && ctx.Err() == nil {
				last = err.Error()
				fmt.Fprintln(os.Stderr, "kubelet:", last) // a test may not log from here
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		for _, s := range k.running {
			s.process.Kill()
		}
	}()
	t.Cleanup(func() { stop(); <-done; _ = listener.Close() })
}

// forward sends each connection to the process that is ready when it comes.
func (k *kubelet) forward(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = client.Close() }()
			address := k.target.Load()
			if address == nil {
				return
			}
			server, err := net.Dial("tcp", *address)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			go func() { // each side learns that the other one has closed
				_, _ = io.Copy(server, client)
				_ = server.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}

// step looks at the pods once.
func (k *kubelet) step(ctx context.Context) error {
	var pods corev1.PodList
	if err := k.Client.List(ctx, &pods, client.InNamespace(suite.System), client.MatchingLabels{app: "landwaiter"}); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	k.abandon(pods.Items)
	waiting := false
	for _, pod := range pods.Items {
		if !ready(pod) {
			waiting = true
			if err := k.run(ctx, pod); err != nil {
				return err
			}
		}
	}
	if !waiting {
		return nil
	}
	newest := k.newest()
	if _, err := stack.Get(ctx, newest.health+"/readyz"); err != nil {
		return err
	}
	k.target.Store(&newest.address)
	for _, old := range k.running[:len(k.running)-1] {
		old.process.Terminate(suite.Patience)
	}
	k.running = []served{newest}
	for _, pod := range pods.Items {
		if pod.Labels[template] == newest.template && !ready(pod) {
			if err := k.report(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// abandon ends the process of a template that was rolled back: its pods are gone, and those of another one are there.
func (k *kubelet) abandon(pods []corev1.Pod) {
	gone := k.newest()
	if len(k.running) < 2 || slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Labels[template] == gone.template }) {
		return
	}
	gone.process.Kill()
	k.running = k.running[:len(k.running)-1]
}

func ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// report says that a pod runs and is ready.
func (k *kubelet) report(ctx context.Context, pod corev1.Pod) error {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return client.IgnoreNotFound(k.Client.Status().Update(ctx, &pod))
}

// run replaces the process by one for the template of a pod, if there is none yet.
func (k *kubelet) run(ctx context.Context, pod corev1.Pod) error {
	if k.newest().template == pod.Labels[template] {
		return nil
	}
	container := pod.Spec.Containers[0]
	kubeconfig := filepath.Join(k.dir, "kubeconfig")
	if err := k.AccountKubeconfig(ctx, suite.System, pod.Spec.ServiceAccountName, kubeconfig); err != nil {
		return err
	}
	ports, err := cluster.FreePorts(3)
	if err != nil {
		return err
	}
	args := slices.Clone(container.Args)
	for i := range args {
		if strings.HasPrefix(args[i], "--timeout=drain=") {
			args[i] = "--timeout=drain=500ms" // this Service learns faster than that of a cluster
		}
		args[i] = strings.ReplaceAll(args[i], "$(POD_NAMESPACE)", suite.System)
		for _, mount := range container.VolumeMounts {
			args[i] = strings.ReplaceAll(args[i], mount.MountPath, filepath.Join(k.dir, mount.Name))
		}
	}
	if err := k.mount(ctx, pod.Spec.Volumes); err != nil {
		return err
	}
	environment := []string{"SSL_CERT_FILE=" + k.authority, "KUBECONFIG=" + kubeconfig}
	for _, variable := range container.Env {
		if variable.Value != "" {
			environment = append(environment, variable.Name+"="+variable.Value)
		}
	}
	next := served{template: pod.Labels[template], health: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), address: fmt.Sprintf("127.0.0.1:%d", ports[2])}
	next.process, err = cluster.StartProcess(k.LogDir(), cluster.Command{Name: "landwaiter", Path: k.binary, Env: environment,
		Args: append(args, "--address="+next.address,
			fmt.Sprintf("--health-address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[1]))})
	if err != nil {
		return err
	}
	k.running = append(k.running, next)
	return nil
}

// log is the file with what Landwaiter's processes say.
func (k *kubelet) log() string { return filepath.Join(k.LogDir(), "landwaiter.log") }

// said is what they have said since the start.
func (k *kubelet) said() string {
	text, err := os.ReadFile(k.log())
	if err != nil {
		return err.Error()
	}
	return string(text[min(k.logged, len(text)):])
}

// mount writes the Secrets and ConfigMaps of volumes into folders.
func (k *kubelet) mount(ctx context.Context, volumes []corev1.Volume) error {
	for _, volume := range volumes {
		files := map[string][]byte{}
		switch {
		case volume.Secret != nil:
			var secret corev1.Secret
			if err := k.Client.Get(ctx, client.ObjectKey{Namespace: suite.System, Name: volume.Secret.SecretName}, &secret); err != nil {
				return fmt.Errorf("mount a Secret: %w", err)
			}
			files = secret.Data
		case volume.ConfigMap != nil:
			var texts corev1.ConfigMap
			if err := k.Client.Get(ctx, client.ObjectKey{Namespace: suite.System, Name: volume.ConfigMap.Name}, &texts); err != nil {
				return fmt.Errorf("mount a ConfigMap: %w", err)
			}
			for name, text := range texts.Data {
				files[name] = []byte(text)
			}
		default:
			continue
		}
		folder := filepath.Join(k.dir, volume.Name)
		err := os.MkdirAll(folder, 0o700)
		for name, content := range files {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), content, 0o600))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
