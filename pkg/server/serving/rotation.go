package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// RotationOptions configure a [Rotation].
type RotationOptions struct {
	// Secret has ca.crt, ca.key, tls.crt and tls.key. It is created if it does not exist, and
	// created again, with another CA, if it is deleted.
	Secret types.NamespacedName
	// AuthorityFile has the CA of the serving certificate, in PEM, if somebody else issues the
	// certificate: then the Secret is not touched. It is read as often as the files of an
	// [Identity].
	AuthorityFile string
	// Service is the name under which Gatekeeper reaches the server, in the namespace of Secret.
	// Names are further DNS names and IP addresses in the certificate, which also contains the
	// hosts of the URLs of Providers.
	Service string
	Names   []string
	// Served returns the certificate in force, whose CA Providers need. Nil means that it is unknown.
	Served func() (*tls.Certificate, error)
	// Providers are the Provider objects of Gatekeeper to create and manage. One that is no
	// longer listed stays: another replica may list it.
	Providers []Provider
}

// Rotation issues and renews a serving certificate under its own CA, and manages Gatekeeper's Provider
// objects, which contain the CA. Every replica runs one, and the leader also calls [Rotation.Lead]:
// only the leader replaces certificates and decides the content of Provider objects. The others create
// the Secret if there is none, and add their CA to Provider objects without it, so that a replica with
// another certificate than the leader's, as in a rollout, is trusted before it is asked.
type Rotation struct {
	clients kubernetes.Interface
	objects dynamic.NamespaceableResourceInterface
	log     *logrus.Logger
	options RotationOptions
	names   []string // of the certificate
	readCA  reader   // of AuthorityFile, nil without one
	secret  watched
	live    cache.SharedIndexInformer // of Provider objects
	none    chan struct{}             // closed if the kind does not exist, without Gatekeeper
	running chan struct{}             // holds a token after a change, for Run
	leading chan struct{}             // as above, for Lead
	leads   atomic.Bool
	ready   atomic.Bool
	failure atomic.Pointer[error] // of the last step

	mu      sync.Mutex           // held by a step
	former  map[string]time.Time // when the additional CAs of Provider objects, in DER, were first seen
	from    time.Time            // when Gatekeeper knows the CA that Provider objects were given
	nextAdd time.Time            // when the CA may be added to Provider objects again
	// othersUntil is how long to wait for others' Provider objects.
	othersUntil time.Time
	pace        pace
	problem     string // with the certificate, as in the annotation of Provider objects
}

// NewRotation returns a Rotation that reaches the Secret with clients and Provider objects
// with objects, and logs to log.
func NewRotation(clients kubernetes.Interface, objects dynamic.Interface, log *logrus.Logger, options RotationOptions) (*Rotation, error) {
	if options.AuthorityFile == "" && (options.Secret.Namespace == "" || options.Secret.Name == "" || options.Service == "") {
		return nil, errors.New("new rotation: the Secret, its namespace and the Service are required")
	}
	r := &Rotation{clients: clients, objects: objects.Resource(providerResource()), log: log, options: options, none: make(chan struct{}),
		running: make(chan struct{}, 1), leading: make(chan struct{}, 1), former: map[string]time.Time{}}
	changed := func() { notify(r.running); notify(r.leading) }
	r.secret = watched{watch.NewObject("Secret", options.Secret, changed)}
	if options.AuthorityFile != "" {
		r.readCA = readFiles(defaultFileInterval, options.AuthorityFile)
	}
	var err error
	if r.names, err = options.names(); err != nil {
		return nil, fmt.Errorf("new rotation: %w", err)
	}
	return r, r.follow(objects, changed)
}

// names returns the names that the certificate needs.
func (o RotationOptions) names() ([]string, error) {
	wanted := slices.Clone(o.Names)
	if o.AuthorityFile == "" {
		service := fmt.Sprintf("%s.%s.svc", o.Service, o.Secret.Namespace)
		wanted = append([]string{service, service + ".cluster.local"}, wanted...)
	}
	for _, p := range o.Providers {
		parsed, err := url.Parse(p.URL)
		if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" {
			return nil,
				fmt.Errorf("Provider %s has the URL %q, it must be https://HOST:PORT with a path, and an IPv6 address in brackets", p.Name, p.URL)
		}
		wanted = append(wanted, parsed.Hostname())
	}
	return certificateNames(wanted)
}

// Ready returns nil once the existing Provider objects have had the CA for long enough that Gatekeeper
// knows it. It stays nil then.
func (r *Rotation) Ready() error {
	if r.ready.Load() {
		return nil
	}
	if why := r.failure.Load(); why != nil && *why != nil {
		return fmt.Errorf("this replica is not trusted by Gatekeeper yet: %w", *why)
	}
	return errors.New("the CA of this replica's certificate is not in Gatekeeper's Provider objects yet")
}

// Lead does the leader's work until ctx ends. Calls must not overlap.
func (r *Rotation) Lead(ctx context.Context) error {
	r.leads.Store(true)
	defer notify(r.running)
	defer r.leads.Store(false)
	r.loop(ctx, r.leading, true)
	return nil
}

// Run rotates until ctx ends. It acts on changes of the Secret and of Provider
// objects, at the end of an overlap, and when a renewal is due. It is called once.
func (r *Rotation) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	if r.readCA == nil {
		running.Go(func() { r.secret.Run(ctx, r.clients) })
	}
	running.Go(func() { r.live.RunWithContext(ctx) })
	r.loop(ctx, r.running, false)
	return nil
}

// loop does due work until ctx ends, as the leader or not.
func (r *Rotation) loop(ctx context.Context, changed <-chan struct{}, leads bool) {
	select { // the additional CAs of Provider objects may still be in use
	case <-r.live.HasSyncedChecker().Done():
	case <-r.none:
	case <-ctx.Done():
		return
	}
	initial := wait.Backoff{Duration: firstRetry, Factor: 2, Steps: 10, Cap: maxRetry}
	backoff := initial
	for {
		next, err := r.step(ctx, leads, time.Now())
		if err == nil {
			backoff = initial
		} else if ctx.Err() == nil {
			r.log.WithError(err).Error("cannot rotate certificates, will try again")
			next = earlier(next, time.Now().Add(backoff.Step()))
		}
		if !sleep(ctx, changed, next) {
			return
		}
	}
}

// step does due work and returns when the next is due, zero for never. While the replica
// leads, only Lead does anything.
func (r *Rotation) step(ctx context.Context, leads bool, now time.Time) (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads.Load() != leads {
		return time.Time{}, nil
	}
	authority, next, err := r.authority(ctx, leads, now)
	if err == nil && authority != nil {
		var after time.Time
		after, err = r.keep(ctx, authority, leads, now)
		next = earlier(next, after)
	}
	if err == nil && authority == nil {
		next, err = r.without(ctx, next, now)
	}
	r.failure.Store(&err)
	return next, err
}

// without does the possible work while the CA is unknown: somebody else may have created the Secret, which Gatekeeper
// already trusts.
func (r *Rotation) without(ctx context.Context, next, now time.Time) (time.Time, error) {
	if r.problem != "" {
		return next, errors.Join(errors.New(r.problem), r.announce(ctx))
	}
	if served := r.served(); served != nil && r.Trusts(served) {
		return earlier(next, r.settle(true, now)), nil
	}
	return earlier(next, now.Add(servedPause)), nil
}

// authority returns the CA of the serving certificate, nil if there is none yet, and when to look again. It issues
// the certificate if that is due.
func (r *Rotation) authority(ctx context.Context, leads bool, now time.Time) ([]byte, time.Time, error) {
	if r.readCA != nil {
		content, again, err := r.readCA(now)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(content[0]) {
			err = fmt.Errorf("load the CA: no certificate in %s", r.options.AuthorityFile)
		}
		if err != nil {
			return nil, again, err
		}
		return content[0], again, nil
	}
	if _, answered, err := r.secret.Content(); !answered && err == nil {
		return nil, time.Time{}, nil // the first answer is a change
	}
	found, err := r.secret.load()
	if err != nil {
		return nil, time.Time{}, err
	}
	var data map[string][]byte
	if found != nil {
		data = found.Data
	}
	next, changed, renewal, err := renewed(data, r.names, now)
	if err != nil {
		return nil, time.Time{}, err
	}
	if r.problem = ""; changed && (leads || found == nil) {
		again := r.pace.next(now)
		if !now.Before(again) {
			return nil, time.Time{}, r.write(ctx, found, next, now) // Providers are next, after the change of the Secret
		}
		renewal, r.problem = again,
			fmt.Sprintf("Secret %s does not keep the certificate that Landwaiter issues: %s changes it again and again", r.options.Secret,
				r.stranger(ctx))
		r.log.WithField("problem", r.problem).Error("the certificate is not issued again yet")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data[authorityKey]) {
		return nil, renewal, nil
	}
	return data[authorityKey], renewal, nil
}

// write creates the Secret, or updates found. If somebody else was faster, the watch on the
// Secret reports that change.
func (r *Rotation) write(ctx context.Context, found *corev1.Secret, data map[string][]byte, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	secrets := r.clients.CoreV1().Secrets(r.options.Secret.Namespace)
	var err error
	if found == nil {
		_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: r.options.Secret.Name}, Data: data},
			metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		next := found.DeepCopy()
		next.Data = maps.Clone(data)
		_, err = secrets.Update(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || found != nil && apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", r.options.Secret, err)
	}
	r.pace.issued(now)
	r.log.WithField("secret", r.options.Secret.String()).Info("issued a serving certificate")
	return nil
}

// stranger names who else last changed the Secret, according to the API server: the watched copy does not
// say.
func (r *Rotation) stranger(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name, last := "somebody", metav1.Time{}
	secret, err := r.clients.CoreV1().Secrets(r.options.Secret.Namespace).Get(ctx, r.options.Secret.Name, metav1.GetOptions{})
	if err != nil {
		return name
	}
	for _, entry := range secret.ManagedFields {
		if entry.Manager != fieldManager && entry.Time != nil && last.Before(entry.Time) {
			name, last = fmt.Sprintf("%q", entry.Manager), *entry.Time
		}
	}
	return name
}

// follow prepares the informer for Provider objects, which calls changed after a change of a managed one.
func (r *Rotation) follow(objects dynamic.Interface, changed func()) error {
	end := sync.OnceFunc(func() { close(r.none) })
	r.live = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := r.objects.List(ctx, options)
			if apierrors.IsNotFound(err) {
				end()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			return r.objects.Watch(ctx, options)
		},
	}, objects), &unstructured.Unstructured{}, 0, nil)
	ours := func(object any) {
		name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err == nil && slices.ContainsFunc(r.options.Providers, func(p Provider) bool { return p.Name == name }) {
			changed()
		}
	}
	_, err := r.live.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: ours, UpdateFunc: func(_, object any) { ours(object) },
		DeleteFunc: ours})
	if err != nil {
		return fmt.Errorf("watch Provider objects: %w", err)
	}
	return nil
}
