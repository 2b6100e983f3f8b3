package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kill kills processes by the names of their logs. Those that have ended stay so.
func (c *Cluster) Kill(names ...string) {
	for _, process := range slices.Backward(c.processes) {
		if slices.Contains(names, process.name) {
			process.Kill()
		}
	}
}

// Restart starts killed processes again, as they were and with the data that they had,
// and waits until the API server is ready.
func (c *Cluster) Restart(ctx context.Context, names ...string) error {
	for i, process := range c.processes {
		if !slices.Contains(names, process.name) {
			continue
		}
		next, err := StartProcess(c.LogDir(), process.command)
		if err != nil {
			return err
		}
		c.processes[i] = next
		if next.name == "kube-apiserver" {
			if err := next.Await(ctx, c.healthy); err != nil {
				return err
			}
		}
	}
	return nil
}

// UseWebhooks replaces the webhook configurations of Gatekeeper's release, such as by
// those of its chart, unless they are nil, and makes the API server call port instead of the process.
func (c *Cluster) UseWebhooks(ctx context.Context, configurations []*unstructured.Unstructured, port int) error {
	c.gatekeeper.webhooks, c.gatekeeper.front = configurations, port
	return c.ResetWebhooks(ctx)
}

// ResetWebhooks applies the webhook configurations again, whatever they are now, and
// does not wait for Gatekeeper.
func (c *Cluster) ResetWebhooks(ctx context.Context) error {
	return c.setWebhooks(ctx, c.gatekeeper.authority.CertificatePEM)
}

// ReplaceGatekeeperCA gives Gatekeeper another CA and certificate while it is
// down: nothing trusts the old one any longer.
func (c *Cluster) ReplaceGatekeeperCA(ctx context.Context) (err error) {
	if c.gatekeeper.authority, err = newGatekeeperAuthority(); err != nil {
		return err
	}
	if err := c.ResetWebhooks(ctx); err != nil {
		return err
	}
	return c.writeGatekeeperCertificate(ctx)
}

// Deployment returns a Deployment of Gatekeeper's release with one replica.
func (c *Cluster) Deployment(name string) (*unstructured.Unstructured, error) {
	for _, object := range c.gatekeeper.manifests {
		if object.GetKind() != "Deployment" || object.GetName() != name {
			continue
		}
		one := object.DeepCopy()
		if err := unstructured.SetNestedField(one.Object, int64(1), "spec", "replicas"); err != nil {
			return nil, fmt.Errorf("scale %s: %w", name, err)
		}
		return one, nil
	}
	return nil, fmt.Errorf("gatekeeper's release has no Deployment %s", name)
}

// Process returns a process of the control plane by the name of its log.
func (c *Cluster) Process(name string) *Process {
	for _, process := range c.processes {
		if process.name == name {
			return process
		}
	}
	return nil
}

// Backup keeps a copy of etcd's data, for [Cluster.Restore]. It stops etcd for a moment.
func (c *Cluster) Backup(ctx context.Context) error {
	c.Kill("etcd")
	if err := os.CopyFS(c.backup(), os.DirFS(c.data())); err != nil {
		return fmt.Errorf("copy etcd's data: %w", err)
	}
	if err := c.Restart(ctx, "etcd"); err != nil {
		return err
	}
	return Until(ctx, c.healthy)
}

// Restore restores the cluster from its [Cluster.Backup] as an administrator does: with the
// API server and Kubernetes' controllers stopped. Whatever else runs goes on. Resource versions
// go back to those of the backup.
func (c *Cluster) Restore(ctx context.Context) error {
	all := []string{"kube-controller-manager", "kube-apiserver", "etcd"}
	c.Kill(all...)
	if err := os.RemoveAll(c.data()); err != nil {
		return fmt.Errorf("remove etcd's data: %w", err)
	}
	if err := os.CopyFS(c.data(), os.DirFS(c.backup())); err != nil {
		return fmt.Errorf("restore etcd's data: %w", err)
	}
	return c.Restart(ctx, all...)
}

// data is the folder of etcd's data, and backup that of the copy.
func (c *Cluster) data() string   { return filepath.Join(c.options.Dir, "etcd") }
func (c *Cluster) backup() string { return filepath.Join(c.options.Dir, "etcd-backup") }
