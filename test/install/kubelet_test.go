//go:build e2e || nightly

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// kubelet does what kubelets do with Landwaiter's pods: it runs a process with the arguments,
// the account and the Secrets of the newest pod, and reports the pods of the same template
// as ready once the process is. There is one process for all of them, since Gatekeeper
// reaches Landwaiter at one address.
type kubelet struct {
	*cluster.Cluster
	binary, dir, authority string
	port                   int // that Gatekeeper reaches

	template string // of the pods that the process runs for
	process  *cluster.Process
	health   string
}

// start watches pods until the test ends.
func (k *kubelet) start(t *testing.T) {
	t.Helper()
	ports, err := cluster.FreePorts(1)
	require.NoError(t, err)
	k.port = ports[0]
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
		if k.process != nil {
			k.process.Kill()
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

// step looks at the pods once.
func (k *kubelet) step(ctx context.Context) error {
	var pods corev1.PodList
	if err := k.Client.List(ctx, &pods, client.InNamespace(suite.System), client.MatchingLabels{app: "landwaiter"}); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	newest := ""
	for _, pod := range pods.Items {
		if len(pod.Status.Conditions) == 0 || !ready(pod) {
			newest = pod.Labels[template]
			if err := k.run(ctx, pod); err != nil {
				return err
			}
		}
	}
	if newest == "" {
		return nil
	}
	if _, err := stack.Get(ctx, k.health+"/readyz"); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.Labels[template] == k.template && !ready(pod) {
			if err := k.report(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
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
	if k.template == pod.Labels[template] {
		return nil
	}
	container := pod.Spec.Containers[0]
	kubeconfig := filepath.Join(k.dir, "kubeconfig")
	if err := k.AccountKubeconfig(ctx, suite.System, pod.Spec.ServiceAccountName, kubeconfig); err != nil {
		return err
	}
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return err
	}
	args := slices.DeleteFunc(slices.Clone(container.Args), func(arg string) bool {
		return strings.HasPrefix(arg, "--timeout=drain=") // which is for load balancers
	})
	for i := range args {
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
	if k.process != nil {
		k.process.Terminate(suite.Patience) // or the next one would wait for its lease to run out
	}
	k.health, k.template = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), pod.Labels[template]
	k.process, err = cluster.StartProcess(k.LogDir(), cluster.Command{Name: "landwaiter", Path: k.binary, Env: environment,
		Args: append(args, fmt.Sprintf("--address=127.0.0.1:%d", k.port),
			fmt.Sprintf("--health-address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[1]))})
	return err
}

// mount writes the Secrets of volumes into folders.
func (k *kubelet) mount(ctx context.Context, volumes []corev1.Volume) error {
	for _, volume := range volumes {
		if volume.Secret == nil {
			continue
		}
		var secret corev1.Secret
		if err := k.Client.Get(ctx, client.ObjectKey{Namespace: suite.System, Name: volume.Secret.SecretName}, &secret); err != nil {
			return fmt.Errorf("mount a Secret: %w", err)
		}
		folder := filepath.Join(k.dir, volume.Name)
		err := os.MkdirAll(folder, 0o700)
		for name, content := range secret.Data {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), content, 0o600))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
