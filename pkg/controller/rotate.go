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

const (
	rotationAuthority = "landwaiter-ca"
	rotationCheck     = time.Hour
)

// rotate runs the cert-controller until ctx ends. It has a manager of its own,
// which lives no longer than this replica's turn to rotate.
func (c *Controller) rotate(ctx context.Context) error {
	r, namespace := c.options.Rotation, c.options.OwnNamespace
	if err := c.makeSecret(ctx, namespace, r.Secret); err != nil {
		return err
	}
	own, err := manager.New(c.config, manager.Options{Scheme: c.manager.GetScheme(), Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return fmt.Errorf("make the rotation's manager: %w", err)
	}
	marker, err := markMounted()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(marker) }() // an empty file is all that may stay
	name := fmt.Sprintf("%s.%s.svc", r.Service, namespace)
	rotation := &rotator.CertRotator{
		SecretKey: types.NamespacedName{Namespace: namespace, Name: r.Secret}, CertDir: marker,
		CAName: rotationAuthority, CAOrganization: "landwaiter", DNSName: name, ExtraDNSNames: append([]string{name + ".cluster.local"}, r.DNSNames...),
		IsReady: make(chan struct{}), RotationCheckFrequency: rotationCheck,
		// Another turn of this replica is another controller.
		ControllerName: fmt.Sprintf("certificates-%d", c.turns.Add(1)),
	}
	for _, provider := range r.Providers {
		rotation.Webhooks = append(rotation.Webhooks, rotator.WebhookInfo{Name: provider, Type: rotator.ExternalDataProvider})
	}
	if err := rotator.AddRotator(own, rotation); err != nil {
		return fmt.Errorf("add the cert-controller: %w", err)
	}
	if err := own.Start(ctx); err != nil {
		return fmt.Errorf("run the cert-controller: %w", err)
	}
	return nil
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
func (c *Controller) makeSecret(ctx context.Context, namespace, name string) error {
	_, err := c.clients.CoreV1().Secrets(namespace).Create(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}
