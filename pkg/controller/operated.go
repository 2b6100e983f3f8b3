package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

const (
	// operatedManager applies the rules of the role.
	operatedManager = "landwaiter-operated-tenants"
	// operatedInterval is how often the rules are applied without a change of Tenants, in
	// case somebody else changed them.
	operatedInterval = time.Minute
)

// listOperated keeps the names of all Tenants in a ClusterRole, until ctx ends. A guardrail
// cannot ask whether an object exists, but whether somebody has a right: so the operator
// gets a right that names each Tenant, from an account other than its own.
func (c *Controller) listOperated(ctx context.Context) error {
	informer, err := c.manager.GetCache().GetInformer(ctx, &v1alpha1.Tenant{})
	if err != nil {
		return fmt.Errorf("watch Tenants: %w", err)
	}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // it is to be read already
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, DeleteFunc: func(any) { notify() }})
	if err != nil {
		return fmt.Errorf("watch Tenants: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }() // fails only if the informer has ended
	ticker := time.NewTicker(operatedInterval)
	defer ticker.Stop()
	for {
		if err := c.applyOperated(ctx); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// applyOperated writes the rules. They give nothing but to be listed: operate is a verb of
// no API.
func (c *Controller) applyOperated(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var tenants v1alpha1.TenantList
	if err := c.manager.GetCache().List(ctx, &tenants, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Tenants: %w", err)
	}
	rules := []any{} // a rule without names would cover all of them
	if len(tenants.Items) > 0 {
		names := make([]string, len(tenants.Items))
		for i := range tenants.Items {
			names[i] = tenants.Items[i].Name
		}
		slices.Sort(names)
		listed := make([]any, len(names))
		for i, name := range names {
			listed[i] = name
		}
		rules = append(rules, map[string]any{"apiGroups": []any{v1alpha1.Group}, "resources": []any{"tenants"}, "resourceNames": listed, "verbs": []any{"operate"}})
	}
	role := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": c.options.OperatedRole}, "rules": rules}}
	if err := c.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(role), client.FieldOwner(operatedManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ClusterRole %s: %w", c.options.OperatedRole, err)
	}
	return nil
}
