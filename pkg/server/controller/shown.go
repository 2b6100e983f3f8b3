package controller

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// shownManager applies the ConfigMaps with the rules that are shown.
const shownManager = "landwaiter-effective-rules"

// showRules keeps a ConfigMap with the cluster's rules that apply in each namespace of a
// Tenant, until ctx ends. One round at a time follows a change; the next one waits for
// [pausePerCompile] times as long as the round computed. Waiting to write is no work.
func (c *Controller) showRules(ctx context.Context) error {
	w := &ruleWriter{Controller: c, written: map[verify.Namespace][sha256.Size]byte{}, told: map[verify.Namespace]bool{}, limiter: rate.NewLimiter(shownPerSecond, shownBurst)}
	var last *resolve.Snapshot
	var looked, tried time.Time
	for {
		snapshot, began := c.set.Snapshot(), time.Now()
		w.worked = 0
		if again := began.Sub(looked) >= lookAgain; snapshot != nil && (snapshot != last || again || w.failed && began.Sub(tried) >= maxRetryPause) {
			if again {
				clear(w.written) // somebody may have changed what was written
				looked = began
			}
			if err := w.round(ctx, snapshot, again); err != nil {
				return err
			}
			last, tried = snapshot, began
		}
		select {
		case <-time.After(max(shownPause, pausePerCompile*w.worked)):
		case <-ctx.Done():
			return nil
		}
	}
}

// ruleWriter writes ConfigMaps for one term of the lease.
type ruleWriter struct {
	*Controller
	limiter *rate.Limiter
	written map[verify.Namespace][sha256.Size]byte // the digests of the texts
	worked  time.Duration                          // what the last round computed
	failed  bool                                   // the last round did not write everything
	told    map[verify.Namespace]bool              // failures that are in the log
}

// round writes what differs from what was written, and removes what no Tenant's namespace
// needs. With look it also finds what earlier leaders have written. The rules are those of
// the moment: a change during the round is in the rest of it.
func (w *ruleWriter) round(ctx context.Context, snapshot *resolve.Snapshot, look bool) error {
	w.failed = false
	stale := map[verify.Namespace]bool{}
	for namespace := range w.written {
		stale[namespace] = true
	}
	if look {
		if err := w.findShown(ctx, stale); err != nil {
			return err
		}
	}
	for _, namespace := range snapshot.Namespaces() {
		text, ok, err := w.text(namespace)
		if !ok {
			continue
		}
		delete(stale, namespace)
		if err == nil {
			err = w.show(ctx, namespace, text)
		}
		if err != nil {
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
	options := metav1.ListOptions{Limit: shownPage, FieldSelector: "metadata.name=" + resource.ShownName, LabelSelector: v1beta1.LabelOwner + "=" + v1beta1.OwnerPlatform}
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

// text returns what is to be shown in a namespace now, and whether anything is.
func (w *ruleWriter) text(namespace verify.Namespace) (string, bool, error) {
	began := time.Now()
	defer func() { w.worked += time.Since(began) }()
	shown, ok := w.set.Snapshot().Shown(namespace)
	if !ok {
		return "", false, nil
	}
	text, err := shown.Text()
	return text, true, err
}

// show writes the ConfigMap of a namespace unless it was written with the same text.
func (w *ruleWriter) show(ctx context.Context, namespace verify.Namespace, text string) error {
	digest := sha256.Sum256([]byte(text))
	if w.written[namespace] == digest {
		return nil
	}
	if err := w.limiter.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	err := w.apply(ctx, namespace, text)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		evicted, failed := w.evict(ctx, namespace)
		if evicted {
			err = w.apply(ctx, namespace, text)
		}
		err = errors.Join(err, failed)
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the namespace ends
	case err != nil:
		return fmt.Errorf("apply ConfigMap %s: %w", resource.ShownName, err)
	}
	w.written[namespace] = digest
	return nil
}

func (w *ruleWriter) apply(ctx context.Context, namespace verify.Namespace, text string) error {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": resource.ShownName, "namespace": string(namespace), "labels": map[string]any{v1beta1.LabelOwner: v1beta1.OwnerPlatform}},
		"data":     map[string]any{resource.ShownKey: text}}}
	return w.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(shownManager), client.ForceOwnership)
}

// evict deletes the ConfigMap of a namespace if somebody made it, before Landwaiter did, so
// that nothing can be applied to it: immutable, or with other keys. It reports whether it did.
func (w *ruleWriter) evict(ctx context.Context, namespace verify.Namespace) (bool, error) {
	maps := w.clients.CoreV1().ConfigMaps(string(namespace))
	found, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + resource.ShownName})
	if err != nil {
		return false, fmt.Errorf("look at the one that is there: %w", err)
	}
	for i := range found.Items {
		if found.Items[i].Name != resource.ShownName || resource.NotShown(&found.Items[i]) == "" {
			continue
		}
		uid := found.Items[i].UID
		err := maps.Delete(ctx, resource.ShownName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("delete the one that is there: %w", err)
		}
		return true, nil
	}
	return false, nil
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
	delete(w.written, namespace)
	return nil
}
