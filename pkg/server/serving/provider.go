package serving

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// fieldManager owns the fields of Provider objects. Nobody else applies these objects:
// Gatekeeper refuses a Provider without a caBundle, so whoever applied one without knowing
// the CA would have to write another one in its place.
const fieldManager = "landwaiter"

// Provider is one of Gatekeeper's Provider objects.
type Provider struct {
	Name string
	// URL is where Gatekeeper asks, with the path.
	URL string
	// TimeoutSeconds is how long Gatekeeper waits for an answer.
	TimeoutSeconds int64
	// Role is the ClusterRole that owns the object: Kubernetes deletes the object with it,
	// and without it the object is not made. Empty means that nobody owns the object.
	Role string
}

// providerResource is Gatekeeper's Provider.
func providerResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Resource: "providers"}
}

// keep makes Provider objects have the CA, and returns when to look again. The leader makes them what they should
// be; any other replica only adds the CA to those that lack it.
func (r *Rotation) keep(ctx context.Context, authority []byte, leads bool, now time.Time) (time.Time, error) {
	wanted, live := certificates(authority), map[string]*unstructured.Unstructured{}
	for _, p := range r.options.Providers {
		found, _, _ := r.live.GetStore().GetByKey(p.Name)
		if object, ok := found.(*unstructured.Unstructured); ok {
			live[p.Name] = object
		}
	}
	former, next := r.overlapping(live, wanted, now)
	bundle := authority
	if len(former) > 0 {
		bundle = both(authority, encoded(former))
	}
	trusted := true
	var failure error
	for _, p := range r.options.Providers {
		object := live[p.Name]
		lacking := object != nil && !has(certificates(bundleOf(object)), wanted)
		var err error
		switch {
		case leads && !p.is(object, bundle, r.problem):
			err = r.apply(ctx, p, bundle)
		case !leads && lacking:
			err = r.add(ctx, object, authority)
		}
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("apply Provider %s: %w", p.Name, err))
		}
		trusted = trusted && !lacking
	}
	return earlier(next, r.settle(trusted, now)), failure
}

// settle notes whether Provider objects have the CA, and returns when that has been so for long enough; zero if it
// has been, or a change comes first.
func (r *Rotation) settle(trusted bool, now time.Time) time.Time {
	switch {
	case r.ready.Load():
		return time.Time{}
	case !trusted:
		r.from = now.Add(authoritySettle)
		return time.Time{}
	case now.Before(r.from):
		return r.from
	}
	r.ready.Store(true)
	return time.Time{}
}

// overlapping returns the CAs that Provider objects have beside those that are wanted, and the first end of an
// overlap. Some replica may serve a certificate of theirs: one before a rotation, or of another version in a roll-out.
func (r *Rotation) overlapping(live map[string]*unstructured.Unstructured, wanted [][]byte, now time.Time) (former [][]byte, next time.Time) {
	present := map[string]bool{}
	for _, p := range r.options.Providers {
		if live[p.Name] == nil {
			continue
		}
		for _, certificate := range certificates(bundleOf(live[p.Name])) {
			present[string(certificate)] = true
			if _, known := r.former[string(certificate)]; !known && len(r.former) < maxFormer {
				r.former[string(certificate)] = now
			}
		}
	}
	for certificate, seen := range r.former {
		end := seen.Add(authorityOverlap)
		switch {
		case has(wanted, [][]byte{[]byte(certificate)}), !now.Before(end) && !present[certificate]:
			delete(r.former, certificate)
		case now.Before(end):
			former, next = append(former, []byte(certificate)), earlier(next, end)
		}
	}
	slices.SortFunc(former, bytes.Compare)
	return former, next
}

// is reports whether a live object, nil for none, is what it should be. If its owner was
// made again, Kubernetes deletes the object, which is a change.
func (p Provider) is(live *unstructured.Unstructured, bundle []byte, problem string) bool {
	if live == nil {
		return false
	}
	url, _, _ := unstructured.NestedString(live.Object, "spec", "url")
	timeout, _, _ := unstructured.NestedInt64(live.Object, "spec", "timeout")
	owned := slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Kind == "ClusterRole" && (p.Role == "" || o.Name == p.Role)
	})
	current, should := certificates(bundleOf(live)), certificates(bundle)
	return url == p.URL && timeout == p.TimeoutSeconds && len(current) == len(should) && has(current, should) &&
		owned == (p.Role != "") && live.GetAnnotations()[v1beta1.AnnotationCertificateProblem] == problem
}

// apply makes the object, or takes over its fields from those who changed them.
func (r *Rotation) apply(ctx context.Context, p Provider, bundle []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": p.URL, "timeout": p.TimeoutSeconds, "caBundle": base64.StdEncoding.EncodeToString(bundle)}}}
	object.SetGroupVersionKind(providerResource().GroupVersion().WithKind("Provider"))
	object.SetName(p.Name)
	if r.problem != "" {
		object.SetAnnotations(map[string]string{v1beta1.AnnotationCertificateProblem: r.problem})
	}
	if p.Role != "" {
		role, err := r.clients.RbacV1().ClusterRoles().Get(ctx, p.Role, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("look up its owner: %w", err)
		}
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: role.Name, UID: role.UID}})
	}
	_, err := r.objects.Apply(ctx, p.Name, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err == nil {
		r.log.WithField("provider", p.Name).Info("applied a Provider object")
	}
	return err
}

// add adds the CA to an object that exists. If somebody else was quicker, the watch brings that change.
func (r *Rotation) add(ctx context.Context, live *unstructured.Unstructured, authority []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": live.GetResourceVersion()},
		"spec": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(both(authority, bundleOf(live)))}})
	if err != nil {
		return err
	}
	_, err = r.objects.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		r.log.WithField("provider", live.GetName()).Info("added the CA to a Provider object")
	}
	return err
}

// bundleOf returns the CAs of a Provider object in PEM, nil if it has none that can be read.
func bundleOf(live *unstructured.Unstructured) []byte {
	text, _, _ := unstructured.NestedString(live.Object, "spec", "caBundle")
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(decoded) > maxFileBytes {
		return nil
	}
	return decoded
}

// certificates returns those of a PEM text, in DER, without what is none.
func certificates(text []byte) (all [][]byte) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, block.Bytes)
		}
	}
	return all
}

// encoded returns certificates in PEM.
func encoded(certificates [][]byte) (text []byte) {
	for _, certificate := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})...)
	}
	return text
}

// has reports whether all of some certificates are among others.
func has(all, some [][]byte) bool {
	return !slices.ContainsFunc(some, func(one []byte) bool {
		return !slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(one, other) })
	})
}
