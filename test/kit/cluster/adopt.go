package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookTimeout returns what the install guide sets, in seconds: more than the timeout of
// Provider objects, so that Gatekeeper can still say that a provider did not answer.
func webhookTimeout(kind string) int64 {
	if kind == "MutatingWebhookConfiguration" {
		return 2
	}
	return 5
}

// AdoptGatekeeper runs the Gatekeeper that Helm has installed, as a process with the
// arguments of its Deployments, and makes the installed webhooks point to it. Nothing else
// of them changes: what users set when they install it is in force.
func (c *Cluster) AdoptGatekeeper(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, name := range []string{"gatekeeper-audit", "gatekeeper-controller-manager"} {
		var deployment appsv1.Deployment
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: GatekeeperNamespace, Name: name}, &deployment); err != nil {
			return fmt.Errorf("get Gatekeeper's Deployment: %w", err)
		}
		for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
			if !slices.Contains(c.gatekeeper.adopted, arg) {
				c.gatekeeper.adopted = append(c.gatekeeper.adopted, arg)
			}
		}
	}
	if err := c.runGatekeeper(ctx); err != nil {
		return err
	}
	if err := c.adoptWebhooks(ctx); err != nil {
		return err
	}
	return Until(ctx, func(ctx context.Context) error { // the API server calls the webhook before it creates anything
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "landwaiter-probe"}}
		return c.Client.Create(ctx, namespace, client.DryRunAll)
	})
}

// asAdopted returns the arguments of the Deployments, and of ours those without which a
// process outside of the cluster does not run. Of an argument that is there twice the last
// one counts.
func (g *gatekeeper) asAdopted(ours []string) []string {
	chosen := []string{"--external-data-provider-response-cache-ttl", "--constraint-violations-limit", "--max-serving-threads", "--exempt-namespace",
		"--operation", "--log-level"}
	return append(slices.Clone(g.adopted), slices.DeleteFunc(slices.Clone(ours), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(chosen, name)
	})...)
}

// adoptWebhooks replaces the Service in installed webhooks by the address of the process.
func (c *Cluster) adoptWebhooks(ctx context.Context) error {
	var validating admissionv1.ValidatingWebhookConfiguration
	var mutating admissionv1.MutatingWebhookConfiguration
	err := errors.Join(c.Client.Get(ctx, client.ObjectKey{Name: "gatekeeper-validating-webhook-configuration"}, &validating),
		c.Client.Get(ctx, client.ObjectKey{Name: "gatekeeper-mutating-webhook-configuration"}, &mutating))
	if err != nil {
		return fmt.Errorf("get Gatekeeper's webhooks: %w", err)
	}
	var targets []*admissionv1.WebhookClientConfig
	for i := range validating.Webhooks {
		targets = append(targets, &validating.Webhooks[i].ClientConfig)
	}
	for i := range mutating.Webhooks {
		targets = append(targets, &mutating.Webhooks[i].ClientConfig)
	}
	for _, target := range targets {
		if target.Service == nil || target.Service.Path == nil {
			return errors.New("adopt Gatekeeper's webhooks: one has no Service with a path")
		}
		url := "https://" + loopback(c.gatekeeper.webhook) + *target.Service.Path
		*target = admissionv1.WebhookClientConfig{URL: &url, CABundle: c.gatekeeper.authority.CertificatePEM}
	}
	if err := errors.Join(c.Client.Update(ctx, &validating), c.Client.Update(ctx, &mutating)); err != nil {
		return fmt.Errorf("adopt Gatekeeper's webhooks: %w", err)
	}
	return nil
}
