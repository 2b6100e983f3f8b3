// Package serving manages the server's TLS identity: its certificate, and the CAs of its
// clients. Both come from files or from Secrets and are replaced while the server runs.
// [Rotation] issues the certificate, under its own CA, and manages Gatekeeper's Provider
// objects, which contain that CA.
//
// It never replaces a usable certificate or CA by unusable content, and never falls back to
// the CAs of the system.
package serving

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/landwaiter/landwaiter/pkg/resources/watch"
)

// Options configure the sources of an [Identity]. The certificate needs either files or a
// Secret; client CAs may come from both.
type Options struct {
	// CertificateFile has the certificate with its intermediates, KeyFile its private key, both
	// in PEM.
	CertificateFile, KeyFile string
	// CertificateSecret has them as tls.crt and tls.key. If its ca.crt changes, the new
	// certificate is served 5 seconds later: clients have to learn of the new CA first.
	CertificateSecret types.NamespacedName
	// ClientCAFiles and ClientCASecrets have the CAs of client certificates. All of them form
	// one set.
	ClientCAFiles   []string
	ClientCASecrets []SecretKey
	// ClientCAOverlap is how long a replaced CA of a Secret is still trusted. Default 0: not at
	// all.
	ClientCAOverlap time.Duration
	// FileInterval is how often files are read. Default 10 s.
	FileInterval time.Duration
	// Metrics registers the metrics; nil disables them.
	Metrics prometheus.Registerer
}

// SecretKey names one key of a Secret.
type SecretKey struct{ Namespace, Name, Key string }

// Identity is the certificate in force and the client CAs in force. It is
// used once: New, Run. Its other methods are safe for concurrent use.
type Identity struct {
	clients kubernetes.Interface
	log     *logrus.Logger
	errors  *prometheus.CounterVec // by part
	changed chan struct{}          // holds a token after a Secret has changed
	watches []watched

	readPair reader        // of a certificate with its intermediates and its key
	settling *settlingPair // nil if the certificate comes from files
	readCAs  []reader
	again    time.Time // when Run reads next without a change
	current  atomic.Pointer[state]

	// Only refresh uses these, and only one goroutine calls it.
	pair       [][]byte // content in force
	authority  []byte   // content in force
	complaints map[part]string
}

// state is never modified, only replaced.
type state struct {
	certificate *tls.Certificate // nil: not read yet
	clientCAs   *x509.CertPool   // nil: not read yet, or clients need no certificate
}

// part is one of the two parts of an Identity, as metrics name it.
type part string

const (
	partCertificate part = "certificate"
	partClientCA    part = "client_ca"
)

// New returns an Identity that reads Secrets with clients, which may be nil if options name
// none, and logs to log. Unusable files are an error, unless a Secret is named: then the
// Identity waits for all of its content.
func New(clients kubernetes.Interface, log *logrus.Logger, options Options) (*Identity, error) {
	i := &Identity{clients: clients, log: log, changed: make(chan struct{}, 1), complaints: map[part]string{}}
	if err := i.connect(options); err != nil {
		return nil, fmt.Errorf("new TLS identity: %w", err)
	}
	i.errors = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "landwaiter_tls_reload_errors_total",
		Help: "Changed certificates or client CAs that could not be used, so that the old ones stayed in force."}, []string{"part"})
	for _, part := range []part{partCertificate, partClientCA} {
		i.errors.WithLabelValues(string(part)) // exported from the start, so that the first error is an increase
	}
	next := &state{}
	now := time.Now()
	first, certificateErr := i.updateCertificate(next, now)
	second, authorityErr := i.updateClientCAs(next, now)
	if err := errors.Join(certificateErr, authorityErr); err != nil {
		if len(i.watches) == 0 {
			return nil, fmt.Errorf("new TLS identity: %w", err)
		}
		// Not a warning: the watches that read Secrets have only just started.
		log.WithError(err).Info("waiting for the certificate and the client CA")
	}
	i.current.Store(next)
	i.again = earlier(first, second)
	if options.Metrics != nil {
		if err := options.Metrics.Register(i.errors); err != nil {
			return nil, fmt.Errorf("new TLS identity: register metrics: %w", err)
		}
	}
	return i, nil
}

// connect creates the readers for options.
func (i *Identity) connect(options Options) error {
	fromSecret := options.CertificateSecret != types.NamespacedName{}
	fromFiles := options.CertificateFile != "" && options.KeyFile != ""
	switch {
	case fromSecret == fromFiles:
		return errors.New("the certificate needs either two files or a Secret")
	case i.clients == nil && (fromSecret || len(options.ClientCASecrets) > 0):
		return errors.New("a Secret is named, but there is no client for the Kubernetes API")
	case options.ClientCAOverlap < 0 || options.FileInterval < 0:
		return errors.New("a negative time makes no sense")
	}
	interval := cmp.Or(options.FileInterval, defaultFileInterval)
	if fromSecret {
		i.settling = &settlingPair{secret: i.watch(options.CertificateSecret), settle: authoritySettle}
		i.readPair = i.settling.read
	} else {
		i.readPair = readFiles(interval, options.CertificateFile, options.KeyFile)
	}
	for _, name := range options.ClientCAFiles {
		i.readCAs = append(i.readCAs, readFiles(interval, name))
	}
	for _, s := range options.ClientCASecrets {
		secret := i.watch(types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		i.readCAs = append(i.readCAs, (&overlappingCA{secret: secret, key: s.Key, overlap: overlap{length: options.ClientCAOverlap}}).read)
	}
	return nil
}

// watch registers a watch that Run runs.
func (i *Identity) watch(name types.NamespacedName) watched {
	w := watched{watch.NewObject("Secret", name, func() { notify(i.changed) })}
	i.watches = append(i.watches, w)
	return w
}

// Certificate returns the certificate in force. An error says why there is none
// yet.
func (i *Identity) Certificate() (*tls.Certificate, error) {
	if current := i.current.Load(); current.certificate != nil {
		return current.certificate, nil
	}
	return nil, errors.New("the serving certificate has not been read yet")
}

// ClientCAs returns the client CAs in force, the same pool until they change. An error says
// why there are none yet. nil without an error means that options named none.
func (i *Identity) ClientCAs() (*x509.CertPool, error) {
	current := i.current.Load()
	if current.clientCAs == nil && len(i.readCAs) > 0 {
		return nil, errors.New("the client CA has not been read yet")
	}
	return current.clientCAs, nil
}

// Await delays a certificate of another CA in a Secret until trusts says that clients have that CA, or until the
// certificate in force has expired. Call it before Run.
func (i *Identity) Await(trusts func(*tls.Certificate) bool) {
	if i.settling != nil {
		i.settling.trusts = trusts
	}
}

// Run keeps the identity up to date until ctx ends.
func (i *Identity) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, w := range i.watches {
		running.Go(func() { w.Run(ctx, i.clients) })
	}
	for again := i.again; sleep(ctx, i.changed, again); {
		again = i.refresh(time.Now())
	}
	return nil
}

// refresh applies changes and returns when to check again without a change, zero for never.
// The certificate and the CAs are independent: a broken CA file must not keep an expired
// certificate in place.
func (i *Identity) refresh(now time.Time) time.Time {
	current := i.current.Load()
	next := &state{certificate: current.certificate, clientCAs: current.clientCAs}
	first, err := i.updateCertificate(next, now)
	i.complain(partCertificate, current.certificate != nil, err)
	second, err := i.updateClientCAs(next, now)
	i.complain(partClientCA, current.clientCAs != nil, err)
	if *next != *current {
		i.current.Store(next)
		i.log.Info("TLS identity reloaded")
	}
	return earlier(first, second)
}

// complain counts every failure and logs a new one. Until a part is in force for the first
// time, a missing Secret is not a failure: [New] has logged that it waits, and readiness
// reports it meanwhile.
func (i *Identity) complain(part part, inForce bool, err error) {
	text := ""
	if err != nil && (inForce || !onlyWaiting(err)) {
		text = err.Error()
		i.errors.WithLabelValues(string(part)).Inc()
	}
	if text != "" && text != i.complaints[part] {
		i.log.WithField("part", string(part)).WithError(err).Error("cannot load the TLS identity, keeping the current one")
	}
	i.complaints[part] = text
}

// updateCertificate puts a changed certificate into next.
func (i *Identity) updateCertificate(next *state, now time.Time) (again time.Time, err error) {
	content, again, err := i.readPair(now)
	if err != nil {
		return again, err
	}
	if slices.EqualFunc(content, i.pair, bytes.Equal) {
		return again, nil
	}
	certificate, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return again, fmt.Errorf("load certificate and key: %w", err)
	}
	next.certificate, i.pair = &certificate, content
	return again, nil
}

// updateClientCAs puts changed client CAs into next.
func (i *Identity) updateClientCAs(next *state, now time.Time) (again time.Time, err error) {
	var failure error
	pool := x509.NewCertPool()
	var content []byte
	for _, read := range i.readCAs {
		text, at, err := read(now)
		again = earlier(again, at)
		if err == nil && !pool.AppendCertsFromPEM(text[0]) {
			err = errors.New("load client CA: no certificate in it")
		}
		failure = errors.Join(failure, err)
		content = append(append(content, bytes.Join(text, nil)...), 0)
	}
	if failure != nil || string(content) == string(i.authority) {
		return again, failure
	}
	next.clientCAs, i.authority = pool, content
	return again, nil
}

// notify puts a token into changed, unless there is one already.
func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// sleep waits for a token in changed or for a time, zero for no time. It returns
// false once ctx has ended.
func sleep(ctx context.Context, changed <-chan struct{}, until time.Time) bool {
	var timer <-chan time.Time
	if !until.IsZero() {
		timer = time.After(time.Until(until))
	}
	select {
	case <-changed:
	case <-timer:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// reader returns contents in PEM, and when to read them again even without a notification;
// zero for never.
type reader func(now time.Time) (contents [][]byte, again time.Time, err error)

// readFiles reads files again after interval. It polls, because a mounted Secret is a chain
// of symbolic links that are swapped, and file notifications can miss that.
func readFiles(interval time.Duration, names ...string) reader {
	return func(now time.Time) ([][]byte, time.Time, error) {
		contents := make([][]byte, len(names))
		var err error
		for i, name := range names {
			if contents[i], err = readFile(name); err != nil {
				break
			}
		}
		return contents, now.Add(interval), err
	}
}

func readFile(name string) (content []byte, err error) {
	file, err := os.Open(name) //nolint:gosec // the path is an operator's setting
	if err != nil {
		return nil, fmt.Errorf("read certificate file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read certificate file: %w", err)
	}
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("read certificate file %s: it is larger than %d bytes", name, maxFileBytes)
	}
	return content, nil
}
