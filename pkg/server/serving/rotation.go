package serving

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// RotationOptions say what a [Rotation] keeps up to date.
type RotationOptions struct {
	// Secret holds ca.crt, ca.key, tls.crt and tls.key. It is made if it does not
	// exist, and made again, with another CA, if it is deleted.
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

	bundle overlap // the CA for Provider objects; kept between calls of Run
}

// NewRotation returns a Rotation that reaches the Secret with clients and Provider
// objects with providers, and logs to log.
func NewRotation(clients kubernetes.Interface, providers dynamic.Interface, log *logrus.Logger, options RotationOptions) (*Rotation, error) {
	if options.Secret.Namespace == "" || options.Secret.Name == "" || options.Service == "" {
		return nil, errors.New("new rotation: the Secret, its namespace and the Service are required")
	}
	name := fmt.Sprintf("%s.%s.svc", options.Service, options.Secret.Namespace)
	return &Rotation{clients: clients, providers: providers, log: log, options: options, bundle: overlap{length: authorityOverlap},
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
	if changed {
		if x509.NewCertPool().AppendCertsFromPEM(data[authorityKey]) {
			r.bundle.join(data[authorityKey], now) // so that it overlaps with the next one
		}
		return time.Time{}, r.write(ctx, found, next) // Providers are next, after the change of the Secret
	}
	bundle, overlapEnd := r.bundle.join(data[authorityKey], now)
	return earlier(renewal, overlapEnd), r.keep(ctx, providers, bundle)
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
