package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
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
// Gatekeeper refuses a Provider without a caBundle, so anyone who applied one without knowing
// the CA would have to write a wrong one.
const fieldManager = "landwaiter"

// Provider is one of Gatekeeper's Provider objects.
type Provider struct {
	Name string
	// URL is the address for Gatekeeper, with the path.
	URL string
	// TimeoutSeconds is how long Gatekeeper waits for an answer.
	TimeoutSeconds int64
	// Role is the ClusterRole that owns the object: Kubernetes deletes the object with it, and
	// without it the object is not created. Empty means no owner.
	Role string
}

// providerResource is Gatekeeper's Provider.
func providerResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Resource: "providers"}
}

// keep ensures that Provider objects contain the CA, and returns when to check again. The leader sets their whole
// content; any other replica only adds the CA to those that lack it.
func (r *Rotation) keep(ctx context.Context, authority []byte, leads bool, now time.Time) (time.Time, error) {
	wanted, live, added := certificates(authority), map[string]*unstructured.Unstructured{}, false
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
			err = r.apply(ctx, p, bundle, object)
		case !leads && lacking && !now.Before(r.nextAdd):
			added, err = true, r.add(ctx, object, authority)
		case !leads && lacking:
			next = earlier(next, r.nextAdd)
		}
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("apply Provider %s: %w", p.Name, err))
		}
		trusted = trusted && !lacking
	}
	if added {
		r.nextAdd = now.Add(addPause)
	}
	if err := r.fits(authority, now); err != nil {
		return next, errors.Join(failure, err)
	}
	if r.options.Served != nil && r.served() == nil { // it may not fit once it exists
		return earlier(next, now.Add(servedPause)), failure
	}
	if trusted && r.othersLack(wanted) {
		if r.othersUntil.IsZero() {
			r.othersUntil = now.Add(othersWait)
		}
		trusted, next = !now.Before(r.othersUntil), earlier(next, now.Add(addPause))
	}
	return earlier(next, r.settle(trusted, now)), failure
}

// fits reports why the certificate of a replica that is not ready cannot be the one that Gatekeeper expects, nil if
// it can be or there is none yet.
func (r *Rotation) fits(authority []byte, now time.Time) error {
	served := r.served()
	if served == nil || r.ready.Load() {
		return nil
	}
	for _, p := range r.options.Providers {
		parsed, err := url.Parse(p.URL)
		if err != nil {
			return fmt.Errorf("the URL of Provider %s: %w", p.Name, err)
		}
		if err := verifies(served, authority, parsed.Hostname(), now); err != nil {
			return fmt.Errorf("the certificate does not fit Provider %s: %w", p.Name, err)
		}
	}
	return nil
}

// served returns the certificate in force, nil if there is none yet.
func (r *Rotation) served() *tls.Certificate {
	if r.options.Served == nil {
		return nil
	}
	certificate, err := r.options.Served()
	if err != nil { // readiness says so
		return nil
	}
	return certificate
}

// verifies checks a certificate against CAs in PEM, and for a host unless it is empty. It ignores the expiry of the
// certificate itself, for which there is an alert.
func verifies(served *tls.Certificate, authority []byte, host string, now time.Time) error {
	chain := make([]*x509.Certificate, 0, len(served.Certificate))
	for _, der := range served.Certificate {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		chain = append(chain, certificate)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	if end := chain[0].NotAfter; now.After(end) {
		now = end
	}
	_, err := chain[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between, CurrentTime: now})
	return err
}

// Trusts reports whether all existing Provider objects contain the CA of a certificate.
func (r *Rotation) Trusts(certificate *tls.Certificate) bool {
	return !slices.ContainsFunc(r.options.Providers, func(p Provider) bool {
		found, _, _ := r.live.GetStore().GetByKey(p.Name)
		object, ok := found.(*unstructured.Unstructured)
		return ok && verifies(certificate, bundleOf(object), "", time.Now()) != nil
	})
}

// othersLack reports whether a Provider object that somebody else manages leads to this server and lacks its
// CA.
func (r *Rotation) othersLack(wanted [][]byte) bool {
	return slices.ContainsFunc(r.live.GetStore().List(), func(found any) bool {
		object, ok := found.(*unstructured.Unstructured)
		if !ok || slices.ContainsFunc(r.options.Providers, func(p Provider) bool { return p.Name == object.GetName() }) {
			return false
		}
		text, _, _ := unstructured.NestedString(object.Object, "spec", "url")
		theirs, err := url.Parse(text)
		return err == nil && slices.ContainsFunc(r.options.Providers, func(p Provider) bool {
			ours, err := url.Parse(p.URL)
			return err == nil && ours.Host == theirs.Host
		}) && !has(certificates(bundleOf(object)), wanted)
	})
}

// settle records whether Provider objects have the CA, and returns when that has been so for long enough; zero if
// it has been, or a change comes first.
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

// overlapping returns the additional CAs of Provider objects, and the first end of an overlap. Some replica may serve
// a certificate of theirs: from before a rotation, or of another version during a rollout.
func (r *Rotation) overlapping(live map[string]*unstructured.Unstructured, wanted [][]byte,
	now time.Time) (former [][]byte, next time.Time) {
	present := map[string]bool{}
	for _, p := range r.options.Providers {
		if live[p.Name] == nil {
			continue
		}
		for _, certificate := range certificates(bundleOf(live[p.Name])) {
			present[string(certificate)] = true
			seen, known := r.former[string(certificate)]
			switch {
			case has(wanted, [][]byte{certificate}), !known && len(r.former) >= maxFormer:
			case !known, now.After(seen.Add(authorityOverlap + overlapAgain)): // some replica still serves a certificate of it
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
		case r.serves([]byte(certificate), wanted, now):
			former = append(former, []byte(certificate))
		}
	}
	slices.SortFunc(former, bytes.Compare)
	return former, next
}

// serves reports whether only a former CA vouches for this replica's certificate: it must not be removed.
func (r *Rotation) serves(former []byte, wanted [][]byte, now time.Time) bool {
	served := r.served()
	return served != nil && verifies(served, encoded(wanted), "", now) != nil && verifies(served, encoded([][]byte{former}), "", now) == nil
}

// is reports whether a live object, nil for none, has the wanted content. If its owner was
// created again, Kubernetes deletes the object, which is a change.
func (p Provider) is(live *unstructured.Unstructured, bundle []byte, problem string) bool {
	if live == nil {
		return false
	}
	address, _, _ := unstructured.NestedString(live.Object, "spec", "url")
	timeout, _, _ := unstructured.NestedInt64(live.Object, "spec", "timeout")
	owned := slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Kind == "ClusterRole" && (p.Role == "" || o.Name == p.Role)
	})
	current, should := certificates(bundleOf(live)), certificates(bundle)
	return address == p.URL && timeout == p.TimeoutSeconds && has(current, should) && has(should, current) &&
		owned == (p.Role != "") && live.GetAnnotations()[v1beta1.AnnotationCertificateProblem] == problem
}

// apply creates the object, or takes over fields that others changed.
func (r *Rotation) apply(ctx context.Context, p Provider, bundle []byte, live *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"url": p.URL, "timeout": p.TimeoutSeconds,
			"caBundle": base64.StdEncoding.EncodeToString(bundle)}}}
	object.SetGroupVersionKind(providerResource().GroupVersion().WithKind("Provider"))
	object.SetName(p.Name)
	// the text of announce stays unless it is cleared
	if r.problem != "" || live != nil && live.GetAnnotations()[v1beta1.AnnotationCertificateProblem] != "" {
		object.SetAnnotations(map[string]string{v1beta1.AnnotationCertificateProblem: r.problem})
	}
	if p.Role != "" {
		role, err := r.clients.RbacV1().ClusterRoles().Get(ctx, p.Role, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("look up its owner: %w", err)
		}
		object.SetOwnerReferences(
			[]metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: role.Name, UID: role.UID}})
	}
	_, err := r.objects.Apply(ctx, p.Name, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err == nil {
		r.log.WithField("provider", p.Name).Info("applied a Provider object")
	}
	return err
}

// add adds the CA to an existing object. If somebody else was faster, the watch reports that change.
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

// announce writes the problem to existing objects that it cannot fix.
func (r *Rotation) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1beta1.AnnotationCertificateProblem: r.problem}}})
	if err != nil {
		return err
	}
	var failure error
	for _, p := range r.options.Providers {
		found, _, _ := r.live.GetStore().GetByKey(p.Name)
		object, ok := found.(*unstructured.Unstructured)
		if !ok || object.GetAnnotations()[v1beta1.AnnotationCertificateProblem] == r.problem {
			continue
		}
		_, err := r.objects.Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		failure = errors.Join(failure, err)
	}
	return failure
}

// bundleOf returns the CAs of a Provider object in PEM, nil if it has no valid ones.
func bundleOf(live *unstructured.Unstructured) []byte {
	text, _, _ := unstructured.NestedString(live.Object, "spec", "caBundle")
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(decoded) > maxFileBytes {
		return nil
	}
	return decoded
}

// certificates returns the valid certificates of a PEM text, in DER.
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

// has reports whether a set of certificates contains all of another one.
func has(all, some [][]byte) bool {
	return !slices.ContainsFunc(some, func(one []byte) bool {
		return !slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(one, other) })
	})
}
