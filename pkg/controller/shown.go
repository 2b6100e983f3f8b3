package controller

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// shownManager applies the ConfigMaps with the rules that are shown.
const shownManager = "landwaiter-effective-rules"

// showRules keeps a ConfigMap with the cluster's rules that apply in each namespace of a
// Tenant, until ctx ends. One round at a time follows a change; the next one waits for
// [pausePerCompile] times as long as the round took.
func (c *Controller) showRules(ctx context.Context) error {
	w := &ruleWriter{Controller: c, texts: map[verify.Namespace]string{}, told: map[verify.Namespace]bool{}, limiter: rate.NewLimiter(shownPerSecond, shownBurst)}
	var last *compile.Snapshot
	var looked, tried time.Time
	for {
		snapshot, began := c.set.Snapshot(), time.Now()
		if again := began.Sub(looked) >= lookAgain; snapshot != nil && (snapshot != last || again || w.failed && began.Sub(tried) >= maxRetryPause) {
			if again {
				clear(w.texts) // somebody may have changed what was written
				looked = began
			}
			if err := w.round(ctx, snapshot, again); err != nil {
				return err
			}
			last, tried = snapshot, began
		}
		pause := time.NewTimer(max(shownPause, pausePerCompile*time.Since(began)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// ruleWriter writes ConfigMaps for one term of the lease.
type ruleWriter struct {
	*Controller
	limiter *rate.Limiter
	texts   map[verify.Namespace]string // as they were written
	failed  bool                        // the last round did not write everything
	told    map[verify.Namespace]bool   // failures that are in the log
}

// round writes what differs from what was written, and removes what no Tenant's namespace
// needs. With look it also finds what earlier leaders have written.
func (w *ruleWriter) round(ctx context.Context, snapshot *compile.Snapshot, look bool) error {
	w.failed = false
	stale := map[verify.Namespace]bool{}
	for namespace := range w.texts {
		stale[namespace] = true
	}
	if look {
		if err := w.findShown(ctx, stale); err != nil {
			return err
		}
	}
	for _, namespace := range snapshot.Namespaces() {
		shown, ok := snapshot.Shown(namespace)
		if !ok {
			continue
		}
		delete(stale, namespace)
		if err := w.show(ctx, namespace, shown); err != nil {
			w.fail(ctx, namespace, err)
		}
	}
	for namespace := range stale {
		if err := w.remove(ctx, namespace); err != nil {
			w.fail(ctx, namespace, err)
		}
	}
	return ctx.Err()
}

func (w *ruleWriter) fail(ctx context.Context, namespace verify.Namespace, err error) {
	if ctx.Err() != nil {
		return
	}
	w.failed = true
	if w.told[namespace] {
		return
	}
	w.told[namespace] = true
	w.log.WithField("namespace", namespace.Label()).WithError(err).Warn("cannot show the rules that apply, will try again each minute")
}

// findShown adds the namespaces that have the ConfigMap.
func (w *ruleWriter) findShown(ctx context.Context, found map[verify.Namespace]bool) error {
	options := metav1.ListOptions{Limit: shownPage, FieldSelector: "metadata.name=" + resource.ShownName, LabelSelector: v1alpha1.LabelOwner + "=" + v1alpha1.OwnerPlatform}
	for {
		page, err := w.clients.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list ConfigMaps %s: %w", resource.ShownName, err)
		}
		for i := range page.Items {
			if page.Items[i].Name == resource.ShownName {
				found[verify.Namespace(page.Items[i].Namespace)] = true
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// show writes the ConfigMap of a namespace unless it was written with the same text.
func (w *ruleWriter) show(ctx context.Context, namespace verify.Namespace, shown resource.Shown) error {
	text, err := shown.Text()
	if err != nil || w.texts[namespace] == text {
		return err
	}
	if err := w.limiter.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": resource.ShownName, "namespace": string(namespace), "labels": map[string]any{v1alpha1.LabelOwner: v1alpha1.OwnerPlatform}},
		"data":     map[string]any{resource.ShownKey: text}}}
	err = w.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(shownManager), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the namespace ends
	case err != nil:
		return fmt.Errorf("apply ConfigMap %s: %w", resource.ShownName, err)
	}
	w.texts[namespace] = text
	return nil
}

// remove deletes the ConfigMap of a namespace that no Tenant holds any more.
func (w *ruleWriter) remove(ctx context.Context, namespace verify.Namespace) error {
	if err := w.limiter.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	err := w.clients.CoreV1().ConfigMaps(string(namespace)).Delete(ctx, resource.ShownName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ConfigMap %s: %w", resource.ShownName, err)
	}
	delete(w.texts, namespace)
	return nil
}
