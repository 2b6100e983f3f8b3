package flux

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// Kinds of Flux that are asked for most.
const (
	sourceGroup    = "source.toolkit.fluxcd.io"
	kustomizeGroup = "kustomize.toolkit.fluxcd.io"
	helmGroup      = "helm.toolkit.fluxcd.io"
)

// Kustomization is the kind of that name.
func Kustomization() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kustomizeGroup, Version: "v1", Kind: "Kustomization"}
}

// GitRepository is the kind of that name.
func GitRepository() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: sourceGroup, Version: "v1", Kind: "GitRepository"}
}

// HelmRelease is the kind of that name.
func HelmRelease() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: helmGroup, Version: "v2", Kind: "HelmRelease"}
}

// Reconcile asks Flux to look at an object now, as `flux reconcile` does.
func Reconcile(ctx context.Context, c *cluster.Cluster, kind schema.GroupVersionKind, namespace, name string) error {
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{"reconcile.fluxcd.io/requestedAt": time.Now().Format(time.RFC3339Nano)}}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	object := empty(kind, namespace, name)
	if err := c.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("ask for %s %s/%s to be reconciled: %w", kind.Kind, namespace, name, err)
	}
	return nil
}

func empty(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// State is what Flux says of an object.
type State struct {
	// Ready is the condition of that type, empty without one.
	Ready metav1.Condition
	// Attempted is the revision that was applied last, or tried, such as "main@sha1:…".
	Attempted string
	// Applied is the revision that was applied last.
	Applied string
}

// StateOf reads the state of an object.
func StateOf(ctx context.Context, c *cluster.Cluster, kind schema.GroupVersionKind, namespace, name string) (s State, err error) {
	object := empty(kind, namespace, name)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return s, fmt.Errorf("get %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	s.Attempted, _, _ = unstructured.NestedString(object.Object, "status", "lastAttemptedRevision") // absent until something was tried
	s.Applied, _, _ = unstructured.NestedString(object.Object, "status", "lastAppliedRevision")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		text, err := json.Marshal(entry)
		if err != nil {
			return s, fmt.Errorf("read conditions: %w", err)
		}
		var condition metav1.Condition
		if err := json.Unmarshal(text, &condition); err != nil {
			return s, fmt.Errorf("read conditions: %w", err)
		}
		if condition.Type == "Ready" && condition.ObservedGeneration == object.GetGeneration() {
			s.Ready = condition
		}
	}
	return s, nil
}

// Await waits until Flux is done with a commit, and returns the state: ready, or failed
// with the reason. With an empty commit any will do.
func Await(ctx context.Context, c *cluster.Cluster, kind schema.GroupVersionKind, namespace, name, commit string,
	status metav1.ConditionStatus) (s State, err error) {
	err = cluster.Until(ctx, func(ctx context.Context) error {
		if s, err = StateOf(ctx, c, kind, namespace, name); err != nil {
			return err
		}
		if s.Ready.Status == status && strings.HasSuffix(s.Attempted, commit) {
			return nil
		}
		return fmt.Errorf("%s %s/%s: Ready is %q at %q, not %q at %q: %s", kind.Kind, namespace, name, s.Ready.Status, s.Attempted, status, commit, s.Ready.Message)
	})
	return s, err
}
