//go:build e2e || nightly

// Package admission shows what users are promised, against a real API server with a
// real Gatekeeper in front: every case is a create, an update or a delete that a
// person could do with kubectl.
package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var parts = suite.New("admission")

func TestMain(m *testing.M) { os.Exit(parts.Run(m)) }

// world is a cluster in which every image must be signed; each test has namespaces of its own.
type world struct {
	*stack.Stack
	platform, teamA, teamB *fixture.CosignKey

	// startLog is what the provider logged from its first start until it was ready and the
	// template was there.
	startLog string

	// Images by tag: signed by the platform, by team A, and by nobody.
	signed, byTeamA, unsigned string

	names atomic.Int64
}

var installed = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*world, error) {
	s, err := e.Stack(ctx, cluster.Options{Workloads: true}, map[string]any{
		// Gatekeeper pins tags from 3.23 on; make nightly PART=oldest has an older one.
		"mutation": map[string]any{"enabled": os.Getenv("LANDWAITER_WITHOUT_PINNING") == "", "workloads": true, "namespaces": []any{"pinned-tenant"},
			"excludedNamespaces": []any{"kube-system", "gatekeeper-system", "e2e-*"}},
		"networkPolicy": map[string]any{"metricsFrom": []any{map[string]any{"namespaceSelector": map[string]any{}}}},
		"autoscaling":   map[string]any{"enabled": true},
		"extraArgs":     []any{"--break-glass=24h"}, // the chart's value needs guardrails, which other tests do without
	})
	if err != nil {
		return nil, err
	}
	w := &world{Stack: s, startLog: s.Current().Tail(1000)}
	return w, w.prepare(ctx)
})

// prepare makes images and what the cluster says of namespaces that say nothing:
// images must be signed by the platform.
func (w *world) prepare(ctx context.Context) error {
	if err := w.resources(ctx); err != nil {
		return err
	}
	return w.inForce(ctx)
}

// resources makes keys, images and the rules of the cluster.
func (w *world) resources(ctx context.Context) (err error) {
	for _, key := range []**fixture.CosignKey{&w.platform, &w.teamA, &w.teamB} {
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
		"\n---\n" + `{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: signed},
  spec: {rules: [{images: ["**"], require: [{anyOf: [platform-signature]}]}]}}`))
	if err != nil {
		return err
	}
	return w.Apply(ctx, objects...)
}

// inForce waits until Gatekeeper answers by these rules.
func (w *world) inForce(ctx context.Context) error {
	// The constraint is there once an unsigned image is denied by it, and the
	// cluster's resources once a signed one is admitted.
	return cluster.Until(ctx, func(ctx context.Context) error {
		if err := w.Client.Create(ctx, suite.Pod("default", "probe", w.unsigned), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "verified-images") {
			return fmt.Errorf("the constraint is not in force: %w", err)
		}
		return w.Client.Create(ctx, suite.Pod("default", "probe", w.signed), client.DryRunAll)
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

// namespace makes a namespace of its own for a test.
func (w *world) namespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("e2e-%d", w.names.Add(1))
	w.makeNamespace(t, name)
	return name
}

// makeNamespace makes a namespace for the length of a test. It waits for one of that name
// that is being deleted.
func (w *world) makeNamespace(t *testing.T, name string) {
	t.Helper()
	object := suite.Namespace(name)
	suite.Eventually(t, func(ctx context.Context) error { return w.Client.Create(ctx, object.DeepCopy()) })
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete namespace %s: %v", name, err)
		}
	})
}

func (w *world) apply(t *testing.T, text string) {
	t.Helper()
	suite.Apply(t, w.Cluster, text)
}

// remove deletes what YAML describes.
func (w *world) remove(t *testing.T, text string) {
	t.Helper()
	objects, err := cluster.Decode([]byte(text))
	require.NoError(t, err)
	for _, object := range objects {
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
	}
}

// during applies YAML for the length of a test.
func (w *world) during(t *testing.T, text string) {
	t.Helper()
	w.apply(t, text)
	t.Cleanup(func() { w.remove(t, text) })
}

// constraint makes a VerifiedImages constraint for the length of a test.
func (w *world) constraint(t *testing.T, name, spec string) {
	t.Helper()
	w.during(t, "{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: "+name+"}, spec: {"+spec+"}}")
}

// create makes a pod, really, and returns what the API server says.
func (w *world) create(t *testing.T, namespace, image string) error {
	t.Helper()
	return w.Client.Create(suite.Within(t), suite.Pod(namespace, fmt.Sprintf("pod-%d", w.names.Add(1)), image))
}

// try asks whether a pod could be made.
func (w *world) try(ctx context.Context, namespace, image string) error {
	return w.Client.Create(ctx, suite.Pod(namespace, "probe", image), client.DryRunAll)
}

// admitted and denied wait until a pod with the image could, or could not, be made in the
// namespace. Denials must give the reason.
func (w *world) admitted(t *testing.T, namespace, image string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error { return w.try(ctx, namespace, image) })
}

func (w *world) denied(t *testing.T, namespace, image string, reasons ...string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error { return deniedFor(w.try(ctx, namespace, image), reasons...) })
}

// deniedFor returns nil if err is a denial by our constraint with all reasons.
func deniedFor(err error, reasons ...string) error {
	return deniedBy(err, "verified-images", reasons...)
}

func deniedBy(err error, constraint string, reasons ...string) error {
	if err == nil {
		return errors.New("it was admitted")
	}
	for _, reason := range append(reasons, "["+constraint+"]") {
		if !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("%q is not in: %w", reason, err)
		}
	}
	return nil
}

// debug adds an ephemeral container to a pod, as kubectl debug does, and returns the pod.
func (w *world) debug(t *testing.T, running *corev1.Pod, image string, options ...client.SubResourceUpdateOption) (*corev1.Pod, error) {
	t.Helper()
	changed := running.DeepCopy()
	changed.Spec.EphemeralContainers = append(changed.Spec.EphemeralContainers,
		corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: fmt.Sprintf("debug-%d", w.names.Add(1)), Image: image}})
	return changed, w.Client.SubResource("ephemeralcontainers").Update(suite.Within(t), changed, options...)
}

// condition waits until a resource's condition Ready is as wanted and about the
// resource as it is, and returns it.
func (w *world) condition(t *testing.T, object v1beta1.Object, namespace, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	return w.conditionOf(t, v1beta1.ConditionReady, object, namespace, name, status, reason)
}

// effective does the same for the condition Effective.
func (w *world) effective(t *testing.T, object v1beta1.Object, namespace, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	return w.conditionOf(t, v1beta1.ConditionEffective, object, namespace, name, status, reason)
}

func (w *world) conditionOf(t *testing.T, kind string, object v1beta1.Object, namespace, name string, status metav1.ConditionStatus,
	reason string) metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	suite.Eventually(t, func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			return err
		}
		found = meta.FindStatusCondition(object.CommonStatus().Conditions, kind)
		if found == nil || found.Status != status || found.Reason != reason || found.ObservedGeneration != object.GetGeneration() {
			return fmt.Errorf("the condition is %+v, not %s %s", found, status, reason)
		}
		return nil
	})
	return *found
}
