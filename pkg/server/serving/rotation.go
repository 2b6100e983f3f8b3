package serving

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// RotationOptions say what a [Rotation] keeps up to date.
type RotationOptions struct {
	// Secret holds ca.crt, ca.key, tls.crt and tls.key, and after a change of the CA the
	// previous one and until when it counts. It is made if it does not exist, and made
	// again, with another CA, if it is deleted.
	Secret types.NamespacedName
	// Service is the name under which Gatekeeper reaches the server, in the
	// namespace of Secret. DNSNames are further names in the certificate.
	Service  string
	DNSNames []string
	// Providers are Gatekeeper's Provider objects that are made and kept. One that is
	// no longer listed stays: another replica may list it.
	Providers []Provider
}

// Rotation makes and renews a serving certificate under a CA of its own,
// and keeps Gatekeeper's Provider objects, which have the CA. Only one replica may
// run one; all replicas serve the certificate with an [Identity].
type Rotation struct {
	clients   kubernetes.Interface
	providers dynamic.Interface
	log       *logrus.Logger
	options   RotationOptions
	names     []string // DNS names of the certificate

	last []byte // the CA that Provider objects had; kept between calls of Run
}

// NewRotation returns a Rotation that reaches the Secret with clients and Provider
// objects with providers, and logs to log.
func NewRotation(clients kubernetes.Interface, providers dynamic.Interface, log *logrus.Logger, options RotationOptions) (*Rotation, error) {
	if options.Secret.Namespace == "" || options.Secret.Name == "" || options.Service == "" {
		return nil, errors.New("new rotation: the Secret, its namespace and the Service are required")
	}
	name := fmt.Sprintf("%s.%s.svc", options.Service, options.Secret.Namespace)
	return &Rotation{clients: clients, providers: providers, log: log, options: options,
		names: append([]string{name, name + ".cluster.local"}, options.DNSNames...)}, nil
}

// Run rotates until ctx ends. It acts on changes of the Secret and of Provider
// objects, at the end of an overlap, and when a renewal is due. Calls must not
// overlap.
func (r *Rotation) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	secret := watched{watch.NewObject("Secret", r.options.Secret, func() { notify(changed) })}
	providers, err := r.watchProviders(func() { notify(changed) })
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { secret.Run(ctx, r.clients) })
	running.Go(func() { providers.RunWithContext(ctx) })

	if r.last == nil {
		// The CA that they have may be in use still. Without Gatekeeper there are none.
		select {
		case <-providers.HasSyncedChecker().Done():
		case <-time.After(providersWait):
		case <-ctx.Done():
		}
	}
	initial := wait.Backoff{Duration: firstRetry, Factor: 2, Steps: 10, Cap: maxRetry}
	backoff := initial
	for {
		next, err := r.rotate(ctx, secret, providers.GetStore(), time.Now())
		if err == nil {
			backoff = initial
		} else if ctx.Err() == nil {
			r.log.WithError(err).Error("cannot rotate certificates, will try again")
			next = earlier(next, time.Now().Add(backoff.Step()))
		}
		if !sleep(ctx, changed, next) {
			return nil
		}
	}
}

// rotate does whatever is due now and returns when the next thing is, zero for
// never.
func (r *Rotation) rotate(ctx context.Context, secret watched, providers cache.Store, now time.Time) (time.Time, error) {
	if _, answered, err := secret.Content(); !answered && err == nil {
		return time.Time{}, nil // the first answer is a change
	}
	found, err := secret.load()
	if err != nil {
		return time.Time{}, err
	}
	var data map[string][]byte
	if found != nil {
		data = found.Data
	}
	next, changed, renewal, err := renewed(data, r.names, now)
	if err != nil {
		return time.Time{}, err
	}
	if before := r.before(data, providers); before != nil && !bytes.Equal(before, next[authorityKey]) && !bytes.Equal(before, data[previousKey]) {
		next, changed = remember(next, before, now), true
	}
	if changed {
		if err := r.write(ctx, found, next); err != nil || !bytes.Equal(next[authorityKey], data[authorityKey]) {
			return time.Time{}, err // Providers are next, after the change of the Secret
		}
		data = next // the CA is known already; if somebody takes the previous one from the Secret, Providers have had both
	}
	bundle, overlapEnd := withPrevious(data, now)
	if err = r.keep(ctx, providers, bundle); err == nil {
		r.last = data[authorityKey]
	}
	return earlier(renewal, overlapEnd), err
}

// before returns the CA that Gatekeeper has trusted so far, nil if there was none: that of the Secret before it
// changed or, for a leader that has not seen the Secret before, what Provider objects have unless the CA is among it.
func (r *Rotation) before(data map[string][]byte, providers cache.Store) []byte {
	if r.last != nil {
		return r.last
	}
	current := bytes.TrimSpace(data[authorityKey])
	if trusted := r.trusted(providers); trusted != nil && (len(current) == 0 || !bytes.Contains(trusted, current)) {
		return trusted
	}
	if x509.NewCertPool().AppendCertsFromPEM(current) {
		return data[authorityKey]
	}
	return nil
}

// trusted returns the CAs that a Provider object has, nil if there are none.
func (r *Rotation) trusted(providers cache.Store) []byte {
	for _, p := range r.options.Providers {
		found, _, _ := providers.GetByKey(p.Name)
		live, ok := found.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		encoded, _, _ := unstructured.NestedString(live.Object, "spec", "caBundle")
		if bundle, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(bundle) <= maxFileBytes && x509.NewCertPool().AppendCertsFromPEM(bundle) {
			return bundle
		}
	}
	return nil
}

// write creates the Secret, or updates found. If somebody else was quicker, the
// watch on the Secret brings that change.
func (r *Rotation) write(ctx context.Context, found *corev1.Secret, data map[string][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	secrets := r.clients.CoreV1().Secrets(r.options.Secret.Namespace)
	var err error
	if found == nil {
		_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: r.options.Secret.Name}, Data: data}, metav1.CreateOptions{})
	} else {
		next := found.DeepCopy()
		next.Data = maps.Clone(data)
		_, err = secrets.Update(ctx, next, metav1.UpdateOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || found != nil && apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", r.options.Secret, err)
	}
	r.log.WithField("secret", r.options.Secret.String()).Info("issued a serving certificate")
	return nil
}

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

// watchProviders returns an informer for Provider objects that calls changed after
// a change of one that is kept, or its deletion.
func (r *Rotation) watchProviders(changed func()) (cache.SharedIndexInformer, error) {
	providers := r.providers.Resource(providerResource())
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return providers.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			return providers.Watch(ctx, options)
		},
	}, r.providers), &unstructured.Unstructured{}, 0, nil)
	ours := func(object any) {
		name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err == nil && slices.ContainsFunc(r.options.Providers, func(p Provider) bool { return p.Name == name }) {
			changed()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: ours, UpdateFunc: func(_, object any) { ours(object) }, DeleteFunc: ours})
	if err != nil {
		return nil, fmt.Errorf("watch Provider objects: %w", err)
	}
	return informer, nil
}

// keep applies the Provider objects that differ from what they should be.
func (r *Rotation) keep(ctx context.Context, providers cache.Store, bundle []byte) error {
	var failure error
	for _, p := range r.options.Providers {
		found, _, err := providers.GetByKey(p.Name)
		live, _ := found.(*unstructured.Unstructured)
		if encoded := base64.StdEncoding.EncodeToString(bundle); err == nil && !p.is(live, encoded) {
			err = r.apply(ctx, p, encoded)
		}
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("apply Provider %s: %w", p.Name, err))
		}
	}
	return failure
}

// is reports whether a live object, nil for none, is what it should be. If its owner was
// made again, Kubernetes deletes the object, which is a change.
func (p Provider) is(live *unstructured.Unstructured, bundle string) bool {
	if live == nil {
		return false
	}
	url, _, _ := unstructured.NestedString(live.Object, "spec", "url")
	timeout, _, _ := unstructured.NestedInt64(live.Object, "spec", "timeout")
	current, _, _ := unstructured.NestedString(live.Object, "spec", "caBundle")
	owned := p.Role == "" || slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Kind == "ClusterRole" && o.Name == p.Role
	})
	return url == p.URL && timeout == p.TimeoutSeconds && current == bundle && owned
}

// apply makes the object, or takes over its fields from those who changed them.
func (r *Rotation) apply(ctx context.Context, p Provider, bundle string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": p.URL, "timeout": p.TimeoutSeconds, "caBundle": bundle}}}
	object.SetGroupVersionKind(providerResource().GroupVersion().WithKind("Provider"))
	object.SetName(p.Name)
	if p.Role != "" {
		role, err := r.clients.RbacV1().ClusterRoles().Get(ctx, p.Role, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("look up its owner: %w", err)
		}
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: role.Name, UID: role.UID}})
	}
	_, err := r.providers.Resource(providerResource()).Apply(ctx, p.Name, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err == nil {
		r.log.WithField("provider", p.Name).Info("applied a Provider object")
	}
	return err
}
