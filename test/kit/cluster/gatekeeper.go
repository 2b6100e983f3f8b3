package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Gatekeeper's namespace and the names of its certificate.
const (
	GatekeeperNamespace = "gatekeeper-system"
	GatekeeperSecret    = "gatekeeper-webhook-server-cert"
	GatekeeperName      = "gatekeeper-webhook-service.gatekeeper-system.svc"
	gatekeeperPod       = "gatekeeper-0"
	gatekeeperAccount   = "gatekeeper-admin"
)

// gatekeeper is the state of the running Gatekeeper.
type gatekeeper struct {
	adopted []string // arguments of its Deployments, if Helm installed it

	webhook, health, metrics int // ports
	certificates, kubeconfig string
	authority                *fixture.Authority
	manifests                []*unstructured.Unstructured
	webhooks                 []*unstructured.Unstructured // instead of those among manifests
	front                    int                          // port of what stands in for its Service; 0: none
	process                  *Process
}

// installGatekeeper applies the manifests of Gatekeeper's release except Deployments,
// with webhooks that point to a process.
func (c *Cluster) installGatekeeper(ctx context.Context) (err error) {
	g := &c.gatekeeper
	if g.manifests, err = DecodeFile(filepath.Join(c.options.Tools, "gatekeeper.yaml")); err != nil {
		return err
	}
	if err := c.Apply(ctx, g.plain()...); err != nil {
		return err
	}
	if err := c.runGatekeeper(ctx); err != nil {
		return err
	}
	return c.applyWebhooks(ctx, g.authority.CertificatePEM)
}

// runGatekeeper starts the process of an installed Gatekeeper.
func (c *Cluster) runGatekeeper(ctx context.Context) error {
	g := &c.gatekeeper
	ports, err := FreePorts(3)
	if err != nil {
		return err
	}
	g.webhook, g.health, g.metrics = ports[0], ports[1], ports[2]
	g.certificates = filepath.Join(c.options.Dir, "gatekeeper-certificates")
	for _, folder := range []string{g.certificates, c.auditDir()} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return fmt.Errorf("make a folder for Gatekeeper: %w", err)
		}
	}
	if g.authority, err = newGatekeeperAuthority(); err != nil {
		return err
	}
	if err := c.writeGatekeeperCertificate(ctx); err != nil {
		return err
	}
	if err := c.fakePod(ctx); err != nil {
		return err
	}
	g.kubeconfig = filepath.Join(c.options.Dir, "gatekeeper.kubeconfig")
	if err := c.AccountKubeconfig(ctx, GatekeeperNamespace, gatekeeperAccount, g.kubeconfig); err != nil {
		return err
	}
	return c.StartGatekeeper(ctx)
}

// newGatekeeperAuthority makes a CA that lasts ten years, as Gatekeeper's own do.
func newGatekeeperAuthority() (*fixture.Authority, error) {
	return fixture.NewAuthorityWith("gatekeeper-ca", fixture.CertificateOptions{NotAfter: time.Now().AddDate(10, 0, 0)})
}

// auditDir is the folder in which audits cache listed objects.
func (c *Cluster) auditDir() string { return filepath.Join(c.options.Dir, "gatekeeper-audit") }

// plain returns the manifests that are applied unchanged.
func (g *gatekeeper) plain() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, object := range g.manifests {
		switch object.GetKind() {
		case "Deployment", "PodDisruptionBudget", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Secret":
		default:
			objects = append(objects, object)
		}
	}
	return objects
}

// fakePod creates the Pod that Gatekeeper believes to run in. It owns Gatekeeper's status
// objects: with --debug-use-fake-pod their owner would not exist, and the garbage collector
// would delete each one as soon as Gatekeeper has made it again, which keeps a core busy.
func (c *Cluster) fakePod(ctx context.Context) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: gatekeeperPod, Namespace: GatekeeperNamespace}}
	none, no := false, true
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &no, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers = []corev1.Container{{Name: "manager", Image: "gatekeeper", SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: &none, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}}
	if err := c.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("make Gatekeeper's pod: %w", err)
	}
	return nil
}

// StartGatekeeper starts the process and waits until it is ready.
func (c *Cluster) StartGatekeeper(ctx context.Context) error {
	process, err := c.LaunchGatekeeper(gatekeeperPod)
	if err != nil {
		return err
	}
	return process.Await(ctx, process.Ready)
}

// Gatekeeper is one running process of it.
type Gatekeeper struct {
	*Process
	// Port is that of its webhook.
	Port int

	health               int
	secret, certificates string // folders: what the Secret has, and what kubelet has mounted
}

// Mount gives the process the certificate that the Secret has, as kubelet does: for each pod at a
// time of its own. Without something that stands in for the Service, there is one pod, which shares
// the Secret's files.
func (g *Gatekeeper) Mount() error {
	if g.certificates == g.secret {
		return nil
	}
	if err := os.MkdirAll(g.certificates, 0o750); err != nil {
		return fmt.Errorf("make a folder for Gatekeeper: %w", err)
	}
	for _, name := range certificateFiles() {
		content, err := os.ReadFile(filepath.Join(g.secret, name))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(g.certificates, name), content, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// certificateFiles are the keys of Gatekeeper's Secret, the certificate last: its change is what
// Gatekeeper waits for.
func certificateFiles() []string { return []string{"ca.crt", "tls.key", "tls.crt"} }

// Ready is its readiness probe.
func (g *Gatekeeper) Ready(ctx context.Context) error {
	return answers(ctx, http.DefaultClient, fmt.Sprintf("http://%s/readyz", loopback(g.health)))
}

// LaunchGatekeeper starts the process as a pod of its namespace, and does not wait. If
// something stands in for its Service it gets ports of its own, and the pod must exist.
func (c *Cluster) LaunchGatekeeper(pod string) (_ *Gatekeeper, err error) {
	g := &c.gatekeeper
	certificates, audits := g.certificates, c.auditDir()
	if g.front != 0 {
		ports, err := FreePorts(3)
		if err != nil {
			return nil, err
		}
		g.webhook, g.health, g.metrics = ports[0], ports[1], ports[2]
		certificates, audits = certificates+"-"+pod, audits+"-"+pod
		if err := os.MkdirAll(audits, 0o750); err != nil {
			return nil, fmt.Errorf("make a folder for Gatekeeper: %w", err)
		}
	}
	launched := &Gatekeeper{Port: g.webhook, health: g.health, secret: g.certificates, certificates: certificates}
	if err := launched.Mount(); err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + g.kubeconfig, "--host=127.0.0.1", fmt.Sprintf("--port=%d", g.webhook), "--cert-dir=" + certificates,
		"--disable-cert-rotation", "--health-addr=" + loopback(g.health),
		fmt.Sprintf("--prometheus-port=%d", g.metrics), "--logtostderr", "--log-level=INFO",
		"--external-data-provider-response-cache-ttl=" + c.options.CacheTTL.String(),
		"--api-cache-dir=" + audits, fmt.Sprintf("--audit-interval=%d", int(max(c.options.AuditInterval, time.Second).Seconds())), "--constraint-violations-limit=50",
		"--max-serving-threads=64",
		"--exempt-namespace=" + GatekeeperNamespace, "--exempt-namespace=landwaiter-system", "--exempt-namespace=kube-system",
	}
	for _, operation := range []string{"webhook", "mutation-webhook", "status", "mutation-status", "generate", "audit"} {
		args = append(args, "--operation="+operation)
	}
	if g.adopted != nil {
		args = g.asAdopted(args)
	}
	g.process, err = c.start(Command{Name: "gatekeeper", Path: filepath.Join(c.options.Tools, "gatekeeper"), Args: args, Env: []string{
		"POD_NAME=" + pod, "POD_NAMESPACE=" + GatekeeperNamespace, "NAMESPACE=" + GatekeeperNamespace, "CONTAINER_NAME=manager",
	}})
	launched.Process = g.process
	return launched, err
}

// GatekeeperPID returns the process ID of Gatekeeper.
func (c *Cluster) GatekeeperPID() int { return c.gatekeeper.process.PID() }

// GatekeeperCertificate returns the client certificate that Gatekeeper sends to providers.
func (c *Cluster) GatekeeperCertificate() (tls.Certificate, error) {
	dir := c.gatekeeper.certificates
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return certificate, fmt.Errorf("read Gatekeeper's certificate: %w", err)
	}
	return certificate, nil
}

// GatekeeperCA returns the CA of its certificate.
func (c *Cluster) GatekeeperCA() []byte { return c.gatekeeper.authority.CertificatePEM }

// RotateGatekeeperCA gives Gatekeeper a new CA and certificate. The API server
// trusts both CAs until Gatekeeper uses the new one.
func (c *Cluster) RotateGatekeeperCA(ctx context.Context) error {
	g := &c.gatekeeper
	next, err := newGatekeeperAuthority()
	if err != nil {
		return err
	}
	if err := c.applyWebhooks(ctx, bytes.Join([][]byte{g.authority.CertificatePEM, next.CertificatePEM}, nil)); err != nil {
		return err
	}
	g.authority = next
	return c.writeGatekeeperCertificate(ctx)
}

// GatekeeperServes returns nil once Gatekeeper serves a certificate of authority. It
// uses the same one as a client of providers.
func (c *Cluster) GatekeeperServes(ctx context.Context, authority *x509.Certificate) error {
	return (&Gatekeeper{Port: c.gatekeeper.webhook}).Serves(ctx, authority)
}

// Serves is the same for one of several processes.
func (g *Gatekeeper) Serves(ctx context.Context, authority *x509.Certificate) error {
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}
	connection, err := dialer.DialContext(ctx, "tcp", loopback(g.Port))
	if err != nil {
		return fmt.Errorf("connect to Gatekeeper: %w", err)
	}
	defer func() { _ = connection.Close() }() // nothing was sent
	if secured, ok := connection.(*tls.Conn); ok {
		if err := secured.ConnectionState().PeerCertificates[0].CheckSignatureFrom(authority); err != nil {
			return fmt.Errorf("check Gatekeeper's certificate: %w", err)
		}
	}
	return nil
}

// writeGatekeeperCertificate issues a certificate. It writes it to the Secret from which
// providers read the CA, and to Gatekeeper's files, as kubelet would do later.
func (c *Cluster) writeGatekeeperCertificate(ctx context.Context) error {
	g := &c.gatekeeper
	certificate, err := g.authority.IssueServerAndClient(GatekeeperName, "localhost", "127.0.0.1")
	if err != nil {
		return err
	}
	data := map[string][]byte{"ca.crt": g.authority.CertificatePEM, "tls.crt": certificate.CertificatePEM, "tls.key": certificate.KeyPEM}
	encoded := map[string]any{}
	for name, content := range data {
		encoded[name] = base64.StdEncoding.EncodeToString(content)
	}
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": GatekeeperSecret, "namespace": GatekeeperNamespace}, "data": encoded}}
	if err := c.Apply(ctx, secret); err != nil {
		return err
	}
	for _, name := range certificateFiles() {
		if err := os.WriteFile(filepath.Join(g.certificates, name), data[name], 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// applyWebhooks makes the API server call Gatekeeper, and deny if it does not answer, as
// the install guide requires.
func (c *Cluster) applyWebhooks(ctx context.Context, authorities []byte) error {
	if err := c.setWebhooks(ctx, authorities); err != nil {
		return err
	}
	return Until(ctx, func(ctx context.Context) error { // the API server calls the webhook before it creates anything
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "landwaiter-probe"}}
		return c.Client.Create(ctx, namespace, client.DryRunAll)
	})
}

func (c *Cluster) setWebhooks(ctx context.Context, authorities []byte) error {
	g := &c.gatekeeper
	objects, port := g.manifests, g.webhook
	if g.webhooks != nil {
		objects = g.webhooks
	}
	if g.front != 0 {
		port = g.front
	}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "ValidatingWebhookConfiguration" && kind != "MutatingWebhookConfiguration" {
			continue
		}
		changed := object.DeepCopy()
		webhooks, _, err := unstructured.NestedSlice(changed.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("read webhooks: %w", err)
		}
		for _, entry := range webhooks {
			webhook, ok := entry.(map[string]any)
			if !ok {
				return errors.New("read webhooks: one is no object")
			}
			path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			if err != nil {
				return fmt.Errorf("read webhooks: %w", err)
			}
			webhook["clientConfig"] = map[string]any{"url": "https://" + loopback(port) + path,
				"caBundle": base64.StdEncoding.EncodeToString(authorities)}
			webhook["failurePolicy"] = "Fail"
			webhook["timeoutSeconds"] = webhookTimeout(changed.GetKind())
		}
		if err := unstructured.SetNestedSlice(changed.Object, webhooks, "webhooks"); err != nil {
			return fmt.Errorf("change webhooks: %w", err)
		}
		if err := c.Apply(ctx, changed); err != nil {
			return err
		}
	}
	return nil
}
