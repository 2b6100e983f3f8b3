package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Rotation says which certificate OPA's cert-controller makes and renews, and
// which Provider objects it gives the authority to.
type Rotation struct {
	// Secret in the own namespace with ca.crt, ca.key, tls.crt and tls.key; made
	// if it is not there.
	Secret string
	// Service is the name under which Gatekeeper reaches us in the own namespace.
	Service string
	// DNSNames are other names that the certificate gets.
	DNSNames []string
	// Providers are the names of Gatekeeper's Provider objects whose caBundle is set.
	Providers []string
}

// AuthoritySettle is how long the certificate of another authority should not be
// served: until Gatekeeper has learned of the changed Provider objects.
const AuthoritySettle = 5 * time.Second

const (
	rotationAuthority = "landwaiter-ca"
	rotationCheck     = time.Hour
	secretCheck       = time.Second
	// authorityOverlap is how long Provider objects have the old authority beside
	// the new one.
	authorityOverlap = 10 * time.Minute
)

// rotate runs the cert-controller until ctx ends. It has a manager of its own,
// which lives no longer than this replica's turn to rotate.
func (c *Controller) rotate(ctx context.Context) error {
	own, err := manager.New(c.config, manager.Options{Scheme: c.manager.GetScheme(), Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return fmt.Errorf("make the rotation's manager: %w", err)
	}
	marker, err := markMounted()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(marker) }() // an empty file is all that may stay
	turn := c.turns.Add(1)
	if err := rotator.AddRotator(own, c.rotator(marker, turn)); err != nil {
		return fmt.Errorf("add the cert-controller: %w", err)
	}
	if err := c.addInjector(own, turn); err != nil {
		return err
	}
	if err := own.Add(manager.RunnableFunc(c.keepSecret)); err != nil {
		return fmt.Errorf("add the keeper of the certificate's Secret: %w", err)
	}
	if err := c.makeSecret(ctx); err != nil { // the cert-controller does not begin without it
		return err
	}
	if err := own.Start(ctx); err != nil {
		return fmt.Errorf("run the cert-controller: %w", err)
	}
	return nil
}

// rotator is OPA's cert-controller for the Secret. It injects nothing: it would
// replace the old authority by the new one before anybody can change over.
func (c *Controller) rotator(marker string, turn int64) *rotator.CertRotator {
	r, namespace := c.options.Rotation, c.options.OwnNamespace
	name := fmt.Sprintf("%s.%s.svc", r.Service, namespace)
	return &rotator.CertRotator{
		SecretKey: types.NamespacedName{Namespace: namespace, Name: r.Secret}, CertDir: marker,
		CAName: rotationAuthority, CAOrganization: "landwaiter", DNSName: name,
		ExtraDNSNames: append([]string{name + ".cluster.local"}, r.DNSNames...),
		IsReady:       make(chan struct{}), RotationCheckFrequency: rotationCheck,
		ControllerName: fmt.Sprintf("certificates-%d", turn), // another turn of this replica is another controller
	}
}

// markMounted makes what the cert-controller waits for, a directory with a
// certificate file. Nothing reads it: the server takes its certificate from the
// Secret through the API, without the minutes that a mounted file is behind.
func markMounted() (string, error) {
	dir, err := os.MkdirTemp("", "landwaiter-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the cert-controller: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, corev1.TLSCertKey), nil, 0o600); err != nil {
		return "", fmt.Errorf("make a file for the cert-controller: %w", err)
	}
	return dir, nil
}

// makeSecret makes the empty Secret that the cert-controller fills.
func (c *Controller) makeSecret(ctx context.Context) error {
	namespace, name := c.options.OwnNamespace, c.options.Rotation.Secret
	_, err := c.clients.CoreV1().Secrets(namespace).Create(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}

// keepSecret makes the Secret anew if somebody deletes it, as is done to get
// another authority.
func (c *Controller) keepSecret(ctx context.Context) error {
	ticker := time.NewTicker(secretCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if _, answered, err := c.authority.watch.Content(); err == nil && answered {
			if _, err := c.authority.Read(authorityKey); err == nil {
				continue
			}
		}
		if err := c.makeSecret(ctx); err != nil && ctx.Err() == nil {
			c.log.WithError(err).Error("the certificate's Secret is missing")
		}
	}
}
