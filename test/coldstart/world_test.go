//go:build e2e

// Package coldstart cuts the power: Landwaiter, Gatekeeper, Redis and the control plane
// end at once, and come back in every order. Controllers, API server and all programs are
// real; only scheduler, kubelet and kube-proxy are stood in for. Gatekeeper's webhooks
// are those of its own chart.
package coldstart

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

const (
	root     = "../.."
	nodeName = "node"
	// team is a namespace in which images must be signed.
	team = "team-a"
	// settle bounds what is waited for; how long it took is logged.
	settle = 2 * time.Minute
)

var w *world

type world struct {
	*stack.Stack
	node             *node
	signed, unsigned string   // images
	request          []byte   // of a node for its certificate
	front            *service // Gatekeeper's
	webhooks         []*unstructured.Unstructured
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landwaiter-coldstart-")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err == nil {
		err = start(ctx, dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "coldstart:", err)
	} else {
		code = m.Run()
	}
	cancel()
	if w != nil {
		w.node.working.Wait()
		w.node.kill()
		w.Stop()
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "coldstart: logs are kept in", filepath.Join(dir, "logs"))
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "coldstart:", err)
	}
	return code
}

// start starts a stack and hands its parts over to the stand-ins.
func start(ctx context.Context, dir string) error {
	tools := map[string]string{}
	for _, name := range []string{"LANDWAITER_BINARY", "LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS"} {
		if tools[name] = os.Getenv(name); tools[name] == "" {
			return fmt.Errorf("%s is not set; run make e2e", name)
		}
	}
	starting, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	s, err := stack.Start(starting, stack.Options{
		Options: cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: dir, Progress: os.Stderr, Workloads: true,
			// As in a cluster, but a dead holder of its lease is replaced after 4 s instead of 15.
			ManagerArgs: []string{"--controllers=endpointslice-controller", "--leader-elect=true", "--leader-elect-lease-duration=4s",
				"--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms"}},
		Root: root, Binary: tools["LANDWAITER_BINARY"], ChartTools: tools["LANDWAITER_CHART_TOOLS"],
		Values: map[string]any{
			"redis":    map[string]any{"install": true, "existingSecret": map[string]any{"name": "landwaiter-redis"}},
			"mutation": map[string]any{"enabled": true},
		},
	})
	if err != nil {
		return err
	}
	w = &world{Stack: s}
	w.node = &node{w: w, returned: map[string]bool{}, running: map[types.UID]*container{}}
	if err := w.furnish(starting); err != nil {
		return err
	}
	return w.handOver(ctx, starting)
}

// furnish makes images, what must be signed, and the objects of a cluster with nodes.
func (w *world) furnish(ctx context.Context) error {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		return err
	}
	for name, keys := range map[string][]*fixture.CosignKey{"signed": {key}, "unsigned": nil} {
		image, err := w.Registry.PushImage(ctx, name, "v1")
		for _, key := range keys {
			if err == nil {
				_, err = w.Registry.SignCosign(ctx, image, key, fixture.CosignOptions{})
			}
		}
		if err != nil {
			return err
		}
	}
	w.signed, w.unsigned = w.Registry.Host()+"/signed:v1", w.Registry.Host()+"/unsigned:v1"
	text, err := json.Marshal(string(key.PEM))
	if err != nil {
		return err
	}
	objects, err := cluster.Decode(fmt.Appendf(nil, `
{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterTrustStore, metadata: {name: keys}, spec: {type: PublicKeys, source: {inline: %s}}}
---
{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterVerifier, metadata: {name: signature}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}]}}}}
---
{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterVerificationPolicy, metadata: {name: signed}, spec: {rules: [{images: ["**"], require: [{anyOf: [signature]}]}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: %s}}
---
{apiVersion: v1, kind: Node, metadata: {name: %s}}
`, text, team, nodeName))
	if err != nil {
		return err
	}
	if w.request, err = certificateRequest(); err != nil {
		return err
	}
	return w.Apply(ctx, objects...)
}

// certificateRequest is what a new node asks for.
func certificateRequest() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:another-node", Organization: []string{"system:nodes"}}}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

// handOver ends what the stack started, so that pods are all that runs anything, and puts
// Services in front.
func (w *world) handOver(ctx, starting context.Context) error {
	deployment, err := w.Deployment("gatekeeper-controller-manager")
	if err != nil {
		return err
	}
	if err := w.Apply(starting, deployment); err != nil {
		return err
	}
	w.Current().Kill()
	w.Kill("gatekeeper")
	w.Redis.Kill()
	if _, err := w.listen(ctx, stack.Namespace, "landwaiter", w.Port()); err != nil {
		return err
	}
	if _, err := w.listen(ctx, stack.Namespace, "landwaiter-redis", w.Redis.Port()); err != nil {
		return err
	}
	w.front, err = w.listen(ctx, cluster.GatekeeperNamespace, "gatekeeper-webhook-service", 0)
	if err != nil {
		return err
	}
	if w.webhooks, err = w.gatekeeperChart(starting, "--values", root+"/config/gatekeeper/values.yaml"); err != nil {
		return err
	}
	if err := w.UseWebhooks(starting, w.webhooks, w.front.port()); err != nil {
		return err
	}
	w.node.manager = true
	w.node.working.Go(func() { w.node.run(ctx) })
	for _, part := range []string{landwaiter, gatekeeper, redis} {
		w.node.giveBack(part)
	}
	return cluster.Until(starting, w.works)
}

// gatekeeperChart renders the webhook configurations of Gatekeeper's chart, which comes
// with its module.
func (w *world) gatekeeperChart(ctx context.Context, args ...string) ([]*unstructured.Unstructured, error) {
	list := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/open-policy-agent/gatekeeper/v3")
	list.Dir = root + "/test/tools/cluster"
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find Gatekeeper's chart: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	helm := exec.CommandContext(ctx, filepath.Join(os.Getenv("LANDWAITER_CHART_TOOLS"), "helm"),
		append([]string{"template", "gatekeeper", filepath.Join(module.Dir, "charts", "gatekeeper"), "--namespace", cluster.GatekeeperNamespace}, args...)...)
	helm.Stdout, helm.Stderr = &stdout, &stderr
	if err := helm.Run(); err != nil {
		return nil, fmt.Errorf("render Gatekeeper's chart: %w: %s", err, stderr.String())
	}
	objects, err := cluster.Decode(stdout.Bytes())
	var webhooks []*unstructured.Unstructured
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			webhooks = append(webhooks, object)
		}
	}
	if len(webhooks) != 2 {
		return nil, errors.Join(fmt.Errorf("Gatekeeper's chart has %d webhook configurations", len(webhooks)), err)
	}
	return webhooks, err
}

// works returns nil if a signed image is admitted, pinned, and an unsigned one is denied
// by the constraint.
func (w *world) works(ctx context.Context) error {
	err := try(ctx, w.unsigned)
	if err == nil {
		return errors.New("the unsigned image is admitted")
	}
	if !strings.Contains(err.Error(), "[verified-images]") || !strings.Contains(err.Error(), "no signature was found") {
		return fmt.Errorf("the unsigned image is not denied by the constraint: %w", err)
	}
	return try(ctx, w.signed)
}

// try asks whether a pod with an image could be made.
func try(ctx context.Context, image string) error {
	return w.Client.Create(ctx, pod(team, "probe", image), client.DryRunAll)
}

func pod(namespace, name, image string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}}
}

// compliant makes a pod keep to the restricted Pod Security Standard.
func compliant(pod *corev1.Pod) *corev1.Pod {
	yes, no := true, false
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	}
	return pod
}

// within returns a context that ends when the test must have seen something.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	t.Cleanup(cancel)
	return ctx
}

// await waits until is returns nil, and logs how long that took.
func await(t *testing.T, what string, is func(context.Context) error) {
	t.Helper()
	began := time.Now()
	var last error // the one before the deadline says more
	err := cluster.Until(within(t), func(ctx context.Context) error {
		err := is(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err
	})
	require.NoError(t, err, "%s: %v", what, last)
	t.Logf("%s after %s", what, time.Since(began).Round(10*time.Millisecond))
}

// lease returns the content of a Lease.
func (w *world) lease(ctx context.Context, namespace, name string) (coordinationv1.LeaseSpec, error) {
	var found coordinationv1.Lease
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)
	return found.Spec, err
}

// recreated returns nil if the controllers have made the pods of a part again.
func recreated(part string, want int) func(context.Context) error {
	return func(ctx context.Context) error {
		found := 0
		for _, ns := range []string{stack.Namespace, cluster.GatekeeperNamespace} {
			var pods corev1.PodList
			if err := w.Client.List(ctx, &pods, client.InNamespace(ns)); err != nil {
				return err
			}
			for i := range pods.Items {
				if partOf(&pods.Items[i]) == part {
					found++
				}
			}
		}
		if found != want {
			return fmt.Errorf("%d of %d pods of %s are there", found, want, part)
		}
		return nil
	}
}
