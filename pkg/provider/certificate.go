package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

// Files are paths of PEM files, read again from time to time: Kubernetes
// replaces mounted secrets in place.
type Files struct {
	// Certificate is the server's certificate with its intermediates, Key its
	// private key.
	Certificate, Key string
	// ClientCAs hold the authorities of client certificates. Several files are
	// one set, so that an old and a new authority can overlap.
	ClientCAs []string
	// Read returns the content of a path; nil reads files.
	Read func(path string) ([]byte, error)
	// Wait lets a server start before its files can be read: until then it is not
	// ready and refuses every connection.
	Wait bool
}

// identity is what is in force: never changed, replaced whole.
type identity struct {
	certificate *tls.Certificate
	clientCAs   *x509.CertPool // nil: clients need no certificate
	config      *tls.Config
}

// keychain holds the server's identity and keeps it fresh. A file that cannot be
// used leaves the old content in force.
type keychain struct {
	files   Files
	names   []string // DNS names of which a client must have one; none: any
	log     *logrus.Logger
	metrics *metrics
	current atomic.Pointer[identity]

	// Only refresh uses these, and only one goroutine calls it.
	pair, authorities []byte // content in force
	complaints        map[string]string
}

func newKeychain(files Files, names []string, log *logrus.Logger, metrics *metrics) (*keychain, error) {
	k := &keychain{files: files, log: log, metrics: metrics, complaints: map[string]string{}}
	for _, name := range names {
		k.names = append(k.names, strings.ToLower(name))
	}
	if k.files.Read == nil {
		k.files.Read = ReadFile
	}
	next := &identity{}
	if err := errors.Join(k.readPair(next), k.readAuthorities(next)); err != nil {
		if !files.Wait {
			return nil, err
		}
		log.WithError(err).Warn("waiting for the certificate and the client CA")
	}
	k.put(next)
	return k, nil
}

// ready returns why connections are refused, nil if they are not.
func (k *keychain) ready() error {
	current := k.current.Load()
	switch {
	case current.certificate == nil:
		return errors.New("the serving certificate has not been read yet")
	case current.clientCAs == nil && len(k.files.ClientCAs) > 0:
		return errors.New("the client CA has not been read yet")
	}
	return nil
}

// watch refreshes until ctx ends. It polls: a secret that is mounted is a chain
// of symbolic links that are swapped, which notifications miss in some forms.
func (k *keychain) watch(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			k.refresh()
		case <-ctx.Done():
			return
		}
	}
}

// refresh takes over what has changed, certificate and authorities each on their
// own: a broken CA file must not keep an expired certificate in place.
func (k *keychain) refresh() {
	current := k.current.Load()
	next := &identity{certificate: current.certificate, clientCAs: current.clientCAs}
	k.complain("certificate", k.readPair(next))
	k.complain("clientCA", k.readAuthorities(next))
	if next.certificate != current.certificate || next.clientCAs != current.clientCAs {
		k.put(next)
		k.log.Info("certificate files reloaded")
	}
}

// complain counts every failure and logs a new one.
func (k *keychain) complain(file string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
		k.metrics.reloadErrors.WithLabelValues(file).Inc()
	}
	if text != "" && text != k.complaints[file] {
		k.log.WithField("file", file).WithError(err).Error("a changed file cannot be used, the old content stays in force")
	}
	k.complaints[file] = text
}

// readPair puts the certificate of the files into next if it is a new one.
func (k *keychain) readPair(next *identity) error {
	certificate, err := k.files.Read(k.files.Certificate)
	if err != nil {
		return err
	}
	key, err := k.files.Read(k.files.Key)
	if err != nil {
		return err
	}
	content := bytes.Join([][]byte{certificate, key}, []byte{0})
	if bytes.Equal(content, k.pair) {
		return nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("load certificate %s and its key: %w", k.files.Certificate, err)
	}
	next.certificate, k.pair = &pair, content
	return nil
}

// readAuthorities puts the authorities of the files into next if they are new.
func (k *keychain) readAuthorities(next *identity) error {
	if len(k.files.ClientCAs) == 0 {
		return nil
	}
	pool := x509.NewCertPool()
	var content []byte
	for _, name := range k.files.ClientCAs {
		text, err := k.files.Read(name)
		if err != nil {
			return err
		}
		if !pool.AppendCertsFromPEM(text) {
			return fmt.Errorf("load client CA %s: no certificate in it", name)
		}
		content = append(append(content, text...), 0)
	}
	if !bytes.Equal(content, k.authorities) {
		next.clientCAs, k.authorities = pool, content
	}
	return nil
}

// ReadFile returns the content of a certificate file, which may have 1 MiB.
func ReadFile(name string) (content []byte, err error) {
	file, err := os.Open(name) //nolint:gosec // the path is an operator's setting
	if err != nil {
		return nil, fmt.Errorf("read certificate file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, maxCertificateFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read certificate file: %w", err)
	}
	if len(content) > maxCertificateFileBytes {
		return nil, fmt.Errorf("read certificate file %s: it is larger than %d bytes", name, maxCertificateFileBytes)
	}
	return content, nil
}

// put makes an identity the one in force.
func (k *keychain) put(next *identity) {
	if next.certificate != nil {
		next.config = k.config(next)
		if leaf := next.certificate.Leaf; leaf != nil {
			k.metrics.expiry.Set(float64(leaf.NotAfter.Unix()))
		}
	}
	k.current.Store(next)
}
