//go:build e2e

// Package reports shows what teams find in reports and Events, with a real API server, a
// real Gatekeeper, and replicas that have the rights of the chart's service account.
package reports

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// settle bounds what is waited for.
const settle = 45 * time.Second

// world is an installation with reports, and a rule that all images must be signed with key.
type world struct {
	*stack.Stack
	key *fixture.CosignKey
}

func start(t *testing.T) *world {
	t.Helper()
	tools := map[string]string{}
	for _, name := range []string{"LANDWAITER_BINARY", "LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS"} {
		tools[name] = os.Getenv(name)
		require.NotEmpty(t, tools[name], "%s is not set; run make e2e", name)
	}
	w := &world{}
	var err error
	w.Stack, err = stack.Start(t.Context(), stack.Options{
		Options: cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: t.TempDir(), Workloads: true},
		Root:    "../..", Binary: tools["LANDWAITER_BINARY"], ChartTools: tools["LANDWAITER_CHART_TOOLS"],
		Values: map[string]any{"reports": map[string]any{"enabled": true}},
	})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	w.key, err = fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	verifier := &v1alpha1.ClusterVerifier{ObjectMeta: metav1.ObjectMeta{Name: "release"}}
	verifier.Spec.Type = v1alpha1.VerifierTypeCosign
	verifier.Spec.Cosign = &v1alpha1.CosignVerifier{Signers: v1alpha1.Signers{Keys: &v1alpha1.Keys{TrustStoreRefs: []v1alpha1.TrustStoreRef{{Name: "keys"}}}}}
	for _, object := range []client.Object{keys(w.key), verifier, named("team-a"), named("team-b")} {
		require.NoError(t, w.Client.Create(t.Context(), object))
	}
	unsigned := w.image(t, "shared/probe", false)
	w.eventually(t, func(ctx context.Context) error { // the constraint is in force
		if err := w.Client.Create(ctx, pod("default", "probe", unsigned), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "verified-images") {
			return fmt.Errorf("an unsigned image is not denied: %w", err)
		}
		return nil
	})
	return w
}

func named(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func keys(key *fixture.CosignKey) *v1alpha1.ClusterTrustStore {
	store := &v1alpha1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: "keys"}}
	store.Spec.Type, store.Spec.Source.Inline = v1alpha1.TrustStoreTypePublicKeys, string(key.PEM)
	return store
}

func pod(namespace, name, image string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
}

func deployment(namespace, name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("", "", image).Spec}}}
}

// image pushes an image, signed if it is to be.
func (w *world) image(t *testing.T, repository string, signed bool) string {
	t.Helper()
	pushed, err := w.Registry.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	if signed {
		_, err = w.Registry.SignCosign(t.Context(), pushed, w.key, fixture.CosignOptions{})
		require.NoError(t, err)
	}
	return pushed.Reference.String()
}

func (w *world) eventually(t *testing.T, ok func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	if err := cluster.Until(ctx, ok); err != nil {
		require.NoError(t, err, "the log ends with:\n%s", w.Current().Tail(30))
	}
}

// report reads a report.
func (w *world) report(ctx context.Context, namespace, name string) (*openreports.Report, error) {
	found := newReport(namespace, name)
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return nil, fmt.Errorf("read report %s/%s: %w", namespace, name, err)
	}
	r := &openreports.Report{}
	return r, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, r)
}

func newReport(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.ReportGroup, Version: v1alpha1.ReportVersion, Kind: v1alpha1.ReportKind})
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// result waits for the one result about an image that holds what is asked for.
func (w *world) result(t *testing.T, namespace, name, image string, holds func(r *openreports.ReportResult) bool) *openreports.ReportResult {
	t.Helper()
	var found *openreports.ReportResult
	w.eventually(t, func(ctx context.Context) error {
		r, err := w.report(ctx, namespace, name)
		if err != nil {
			return err
		}
		for i := range r.Results {
			if found = &r.Results[i]; found.Properties[v1alpha1.PropertyImage] == image && holds(found) {
				return nil
			}
		}
		text, err := json.Marshal(r.Results)
		return fmt.Errorf("%s/%s has no such result about %s: %s, %w", namespace, name, image, text, err)
	})
	return found
}

// asker asks a replica as Gatekeeper does.
func (w *world) asker(t *testing.T, port int) *gatekeeper.Client {
	t.Helper()
	certificate, err := w.GatekeeperCertificate()
	require.NoError(t, err)
	c := gatekeeper.New(gatekeeper.Options{URL: fmt.Sprintf("https://localhost:%d", port), InsecureAnyServer: true, Certificate: &certificate, Timeout: 5 * time.Second})
	t.Cleanup(c.Close)
	return c
}

// events returns the Events of a namespace with a reason.
func (w *world) events(t *testing.T, namespace, reason string) []corev1.Event {
	t.Helper()
	var list corev1.EventList
	require.NoError(t, w.Client.List(t.Context(), &list, client.InNamespace(namespace)))
	var found []corev1.Event
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			found = append(found, list.Items[i])
		}
	}
	return found
}
