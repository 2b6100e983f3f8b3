//go:build nightly

package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// What comes back after a power cut.
const (
	landwaiterPods = "landwaiter"
	gatekeeperPods = "gatekeeper"
	redisPods      = "redis"
	manager        = "kube-controller-manager"
)

// period is how often the stand-ins look at the API server.
const period = 50 * time.Millisecond

// node stands in for scheduler and kubelet: it binds the pods that the real controllers
// make, runs the real program of each as a process, probes it and says in the pod's status
// whether it is ready. It runs a part only once that part was returned.
type node struct {
	w       *coldCluster
	working sync.WaitGroup

	mu       sync.Mutex
	returned map[string]bool
	running  map[types.UID]*podProcess
	manager  bool // kube-controller-manager is to run: it ends when it loses its lease
}

// podProcess is the process of a pod.
type podProcess struct {
	*cluster.Process
	part  string
	port  int
	probe func(context.Context) error
	ready bool
}

// partOf says what a pod runs, or "".
func partOf(pod *corev1.Pod) string {
	switch {
	case pod.Labels["app.kubernetes.io/name"] == "landwaiter":
		return landwaiterPods
	case pod.Labels["app.kubernetes.io/name"] == "landwaiter-redis":
		return redisPods
	case pod.Labels["control-plane"] == "controller-manager":
		return gatekeeperPods
	}
	return ""
}

// giveBack lets a part run again.
func (n *node) giveBack(part string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.returned[part] = true
}

// controlPlane starts what of the control plane was killed, and keeps it running.
func (n *node) controlPlane(ctx context.Context, names ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.manager = n.manager || slices.Contains(names, manager)
	return n.w.Restart(ctx, names...)
}

// killControlPlane kills it.
func (n *node) killControlPlane() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.manager = false
	n.w.Kill(manager, "kube-apiserver", "etcd")
}

// kill kills all processes of pods at once and takes back all parts.
func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.running {
		c.Kill()
	}
	clear(n.running)
	clear(n.returned)
}

// port returns where the process of a pod listens.
func (n *node) port(pod types.UID) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.running[pod]
	if c == nil {
		return 0, false
	}
	return c.port, true
}

// isReady says whether want processes of a part are ready.
func (n *node) isReady(part string, want int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	got := 0
	for c := range maps.Values(n.running) {
		if c.part == part && c.ready {
			got++
		}
	}
	if got < want {
		return fmt.Errorf("%d of %d processes of %s are ready", got, want, part)
	}
	return nil
}

// run works until ctx ends.
func (n *node) run(ctx context.Context) {
	every(ctx, period, func() {
		n.keepManager(ctx)
		var all []corev1.Pod
		for _, ns := range []string{suite.System, cluster.GatekeeperNamespace} {
			var pods corev1.PodList
			if err := n.w.Client.List(ctx, &pods, client.InNamespace(ns)); err != nil {
				return // the API server is away
			}
			all = append(all, pods.Items...)
		}
		n.end(ctx, all)
		for i := range all {
			if part := partOf(&all[i]); part != "" && all[i].DeletionTimestamp == nil {
				n.sync(ctx, &all[i], part)
			}
		}
	})
}

// keepManager starts kube-controller-manager again if it has ended, as a kubelet does.
func (n *node) keepManager(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.w.Process(manager).Ended():
		if n.manager {
			_ = n.w.Restart(ctx, manager)
		}
	default:
	}
}

// end kills the processes of pods that are deleted, and takes these out of the API server.
func (n *node) end(ctx context.Context, pods []corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := map[types.UID]bool{}
	for i := range pods {
		kept[pods[i].UID] = pods[i].DeletionTimestamp == nil
		if !kept[pods[i].UID] {
			_ = n.w.Client.Delete(ctx, &pods[i], client.GracePeriodSeconds(0))
		}
	}
	for pod, c := range n.running {
		if !kept[pod] {
			c.Kill()
			delete(n.running, pod)
		}
	}
}

// sync does for one pod what is due. Errors are not kept: it is called again.
func (n *node) sync(ctx context.Context, pod *corev1.Pod, part string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if pod.Spec.NodeName == "" {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			Target: corev1.ObjectReference{Kind: "Node", Name: nodeName}}
		_ = n.w.Client.SubResource("binding").Create(ctx, pod, binding)
		return
	}
	if !n.returned[part] {
		return
	}
	c := n.running[pod.UID]
	if c != nil {
		select {
		case <-c.Ended(): // a kubelet restarts it
			c = nil
		default:
		}
	}
	if c == nil {
		started, err := n.w.launch(ctx, pod, part)
		if err != nil {
			return
		}
		n.running[pod.UID] = started
		return
	}
	c.ready = c.probe(ctx) == nil
	status := corev1.ConditionFalse
	if c.ready {
		status = corev1.ConditionTrue
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == status {
			return
		}
	}
	address := fmt.Sprintf("10.1.%d.%d", c.PID()/250%250, c.PID()%250+1)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: status}}
	_ = n.w.Client.Status().Update(ctx, pod)
}

// launch starts the process of a pod and does not wait for it.
func (w *coldCluster) launch(ctx context.Context, pod *corev1.Pod, part string) (*podProcess, error) {
	switch part {
	case gatekeeperPods:
		process, err := w.LaunchGatekeeper(pod.Name)
		if err != nil {
			return nil, err
		}
		return &podProcess{Process: process.Process, part: part, port: process.Port, probe: process.Ready}, nil
	case redisPods:
		server, err := cluster.StartRedis(ctx, w.LogDir())
		if err != nil {
			return nil, err
		}
		return &podProcess{Process: server.Process, part: part, port: server.Port(), probe: func(context.Context) error { return nil }}, nil
	default:
		ports, err := cluster.FreePorts(1)
		if err != nil {
			return nil, err
		}
		replica, err := w.LaunchReplica(ctx, ports[0])
		if err != nil {
			return nil, err
		}
		return &podProcess{Process: replica.Process, part: part, port: ports[0], probe: replica.Ready}, nil
	}
}

// every calls do each period until ctx ends.
func every(ctx context.Context, period time.Duration, do func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}
