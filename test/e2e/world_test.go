//go:build e2e

// Package e2e shows what users are promised, against a real API server with a
// real Gatekeeper in front: every case is a create, an update or a delete that a
// person could do with kubectl.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// settle bounds what is waited for. It is generous because machines differ; how
// long it took is logged.
const settle = 20 * time.Second

// w is what all tests share: one cluster, each test with namespaces of its own.
var w *world

type world struct {
	*stack.Stack
	platform, teamA, teamB, attacker *fixture.CosignKey

	// startLog is what the provider logged from its first start until it was ready and the
	// template was there.
	startLog string

	// Images by tag: signed by the platform, by team A, and by nobody.
	signed, byTeamA, unsigned string

	names atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landwaiter-e2e-")
	if err == nil {
		w, err = start(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	} else {
		code = m.Run()
		w.Stop()
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "e2e: logs are kept in", filepath.Join(dir, "logs"))
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
	return code
}

func start(dir string) (*world, error) {
	tools := map[string]string{}
	for _, name := range []string{"LANDWAITER_BINARY", "LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS"} {
		if tools[name] = os.Getenv(name); tools[name] == "" {
			return nil, fmt.Errorf("%s is not set; run make e2e", name)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := stack.Start(ctx, stack.Options{
		Options: cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: dir, Progress: os.Stderr, Workloads: true},
		Root:    "../..", Binary: tools["LANDWAITER_BINARY"], ChartTools: tools["LANDWAITER_CHART_TOOLS"],
		Values: map[string]any{
			// Gatekeeper pins tags from 3.23 on; make oldest has an older one.
			"mutation": map[string]any{"enabled": os.Getenv("LANDWAITER_WITHOUT_PINNING") == "", "workloads": true, "tenantNamespaces": []any{"pinned-tenant"},
				"excludedNamespaces": []any{"kube-system", "gatekeeper-system", "e2e-*"}},
			"networkPolicy": map[string]any{"metricsFrom": []any{map[string]any{"namespaceSelector": map[string]any{}}}},
			"autoscaling":   map[string]any{"enabled": true},
			"extraArgs":     []any{"--break-glass"}, // the chart's value needs guardrails, which other tests do without
		},
	})
	if err != nil {
		return nil, err
	}
	made := &world{Stack: s, startLog: s.Current().Tail(1000)}
	if err := made.prepare(ctx); err != nil {
		made.Stop()
		return nil, err
	}
	return made, nil
}

// prepare makes images and what the cluster says of namespaces that say nothing:
// images must be signed by the platform.
func (w *world) prepare(ctx context.Context) (err error) {
	for _, key := range []**fixture.CosignKey{&w.platform, &w.teamA, &w.teamB, &w.attacker} {
		if *key, err = fixture.NewCosignKey(fixture.ECDSAP256); err != nil {
			return err
		}
	}
	for _, made := range []struct {
		image      *string
		repository string
		keys       []*fixture.CosignKey
	}{
		{&w.signed, "platform/app", []*fixture.CosignKey{w.platform}},
		{&w.byTeamA, "team-a/app", []*fixture.CosignKey{w.teamA}},
		{&w.unsigned, "somebody/app", nil},
	} {
		if *made.image, err = w.push(ctx, made.repository, made.keys...); err != nil {
			return err
		}
	}
	objects, err := cluster.Decode([]byte(trustStore("", "platform-keys", w.platform) + verifier("", "platform-signature", "platform-keys") +
		"\n---\n" + `{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterVerificationPolicy, metadata: {name: signed},
  spec: {rules: [{images: ["**"], require: [{anyOf: [platform-signature]}]}]}}`))
	if err != nil {
		return err
	}
	if err := w.Apply(ctx, objects...); err != nil {
		return err
	}
	// The constraint is there once an unsigned image is denied by it, and the
	// cluster's resources once a signed one is admitted.
	return cluster.Until(ctx, func(ctx context.Context) error {
		if err := w.Client.Create(ctx, pod("default", "probe", w.unsigned), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "verified-images") {
			return fmt.Errorf("the constraint is not in force: %w", err)
		}
		return w.Client.Create(ctx, pod("default", "probe", w.signed), client.DryRunAll)
	})
}

// push makes an image, signed with keys, and returns its name with a tag.
func (w *world) push(ctx context.Context, repository string, keys ...*fixture.CosignKey) (string, error) {
	image, err := w.Registry.PushImage(ctx, repository, "v1")
	for _, key := range keys {
		if err == nil {
			_, err = w.Registry.SignCosign(ctx, image, key, fixture.CosignOptions{})
		}
	}
	return w.Registry.Host() + "/" + repository + ":v1", err
}

// within returns a context that ends when the test must have seen something.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	t.Cleanup(cancel)
	return ctx
}

// namespace makes a namespace of its own for a test.
func namespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("e2e-%d", w.names.Add(1))
	makeNamespace(t, name)
	return name
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, w.Client.Create(within(t), object))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete namespace %s: %v", name, err)
		}
	})
}

// apply applies YAML.
func apply(t *testing.T, text string) {
	t.Helper()
	objects, err := cluster.Decode([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Apply(within(t), objects...))
}

// constraint makes a VerifiedImages constraint for the length of a test.
func constraint(t *testing.T, name, spec string) {
	t.Helper()
	text := "{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: " + name + "}, spec: {" + spec + "}}"
	apply(t, text)
	t.Cleanup(func() { remove(t, text) })
}

func pod(namespace, name, image string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}}
}

// create makes a pod, really, and returns what the API server says.
func create(t *testing.T, namespace, image string) error {
	t.Helper()
	return w.Client.Create(within(t), pod(namespace, fmt.Sprintf("pod-%d", w.names.Add(1)), image))
}

// try asks whether a pod could be made.
func try(ctx context.Context, namespace, image string) error {
	return w.Client.Create(ctx, pod(namespace, "probe", image), client.DryRunAll)
}

// admitted and denied wait until a pod with the image could, or could not, be
// made in the namespace, and log how long it took. Denials must give the reason.
func admitted(t *testing.T, namespace, image string) {
	t.Helper()
	began := time.Now()
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error { return try(ctx, namespace, image) }))
	t.Logf("admitted after %s", time.Since(began).Round(time.Millisecond))
}

func denied(t *testing.T, namespace, image string, reasons ...string) {
	t.Helper()
	began := time.Now()
	var last error
	err := cluster.Until(within(t), func(ctx context.Context) error {
		last = try(ctx, namespace, image)
		return deniedFor(last, reasons...)
	})
	require.NoError(t, err, "%v", last)
	t.Logf("denied after %s", time.Since(began).Round(time.Millisecond))
}

// deniedFor returns nil if err is a denial by our constraint with all reasons.
func deniedFor(err error, reasons ...string) error {
	if err == nil {
		return fmt.Errorf("it was admitted")
	}
	for _, reason := range append(reasons, "[verified-images]") {
		if !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("%q is not in: %w", reason, err)
		}
	}
	return nil
}

// condition waits until a resource's condition Ready is as wanted and about the
// resource as it is, and returns it.
func condition(t *testing.T, object v1alpha1.Object, namespace, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	return conditionOf(t, v1alpha1.ConditionReady, object, namespace, name, status, reason)
}

// effective does the same for the condition Effective.
func effective(t *testing.T, object v1alpha1.Object, namespace, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	return conditionOf(t, v1alpha1.ConditionEffective, object, namespace, name, status, reason)
}

func conditionOf(t *testing.T, kind string, object v1alpha1.Object, namespace, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	err := cluster.Until(within(t), func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			return err
		}
		found = meta.FindStatusCondition(object.CommonStatus().Conditions, kind)
		if found == nil || found.Status != status || found.Reason != reason || found.ObservedGeneration != object.GetGeneration() {
			return fmt.Errorf("the condition is %+v, not %s %s", found, status, reason)
		}
		return nil
	})
	require.NoError(t, err)
	return *found
}
