package controller

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

const (
	// ReasonBreakGlassUsed is the reason of a namespace's Event about an image that break-glass
	// let in.
	ReasonBreakGlassUsed = "BreakGlassUsed"
	actionAdmit          = "Admit"
	kindNamespace        = "Namespace"
)

// told remembers the images with an Event within [tellAgain], by namespace.
type told struct {
	mu     sync.Mutex
	images map[verify.Namespace]map[string]time.Time
}

// first reports whether an image of a namespace has had no recent Event, and remembers it.
// Beyond [maxTold] images of a namespace it returns false: metrics and the log have all.
func (t *told) first(namespace verify.Namespace, image string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.images == nil {
		t.images = map[verify.Namespace]map[string]time.Time{}
	}
	known := t.images[namespace]
	if at, ok := known[image]; ok && now.Before(at.Add(tellAgain)) {
		return false
	}
	if len(known) >= maxTold {
		maps.DeleteFunc(known, func(_ string, at time.Time) bool { return !now.Before(at.Add(tellAgain)) })
		if len(known) >= maxTold {
			return false
		}
	}
	if known == nil {
		known = map[string]time.Time{}
		t.images[namespace] = known
	}
	known[image] = now
	return true
}

// forget drops the state of a namespace.
func (t *told) forget(namespace verify.Namespace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.images, namespace)
}

// Observe implements [provider.Observer]: it records an Event of the namespace for each image
// that break-glass lets in.
func (c *Controller) Observe(_ context.Context, o provider.Observation) {
	for i := range o.Keys {
		k := &o.Keys[i]
		if k.Answer != verify.AnswerByException || o.Source != provider.SourceAdmission || k.Repeated ||
			k.Result.Exception.Kind != kindNamespace {
			continue
		}
		image, name := k.Result.Reference.String(), string(k.Namespace)
		if !c.notified.first(k.Namespace, image, time.Now()) {
			continue
		}
		about := &corev1.ObjectReference{APIVersion: "v1", Kind: kindNamespace, Name: name, Namespace: name}
		if config, err := c.set.For(k.Namespace); err == nil {
			about.UID = types.UID(config.UID)
		}
		// Events that only differ in their note are merged, so the image is part of the related
		// object.
		related := *about
		related.FieldPath = image
		c.events.Eventf(about, &related, corev1.EventTypeWarning, ReasonBreakGlassUsed, actionAdmit,
			"break-glass allows image %s until %s (traceID %s)",
			image[:min(len(image), maxMessage/2)], k.Result.ExceptionEnds.UTC().Format(time.RFC3339), o.TraceID)
	}
}
