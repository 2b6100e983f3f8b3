package operator

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Row is one Tenant of a list.
type Row struct {
	Name        string `json:"name"`
	Home        string `json:"homeNamespace"`
	Namespaces  int    `json:"namespaces"` // besides the home namespace
	PolicyLevel string `json:"policyLevel"`
	Reconciler  string `json:"reconciler,omitempty"` // namespace/name of its account, "" if it has none
	// Ready and Provisioned are statuses of conditions, with the reason unless True.
	Ready       string `json:"ready"`
	Provisioned string `json:"provisioned"`
}

// NamespaceRow is one namespace that some tenant has.
type NamespaceRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`             // of the Tenant, or what flux-multitenant-demo calls the tenant
	Tenant    string `json:"tenant,omitempty"` // "" if no Tenant has it
	Status    string `json:"status"`
}

// List returns all Tenants, by name.
func (e *Engine) List(ctx context.Context) ([]Row, error) {
	w, _, err := e.look(ctx, nil)
	if err != nil {
		return nil, err
	}
	rows := []Row{}
	for _, tenant := range w.all {
		row := Row{Name: tenant.Name, Home: tenant.Spec.HomeNamespace, PolicyLevel: string(tenant.Spec.Verification.PolicyLevel),
			Ready: conditionText(tenant, v1beta1.ConditionReady), Provisioned: conditionText(tenant, v1beta1.ConditionProvisioned)}
		others := slices.DeleteFunc(w.tenants.ActiveNamespaces(tenant, w.namespaces), func(n string) bool { return n == tenant.Spec.HomeNamespace })
		row.Namespaces = len(others)
		if account := onboard.Account(tenant); account != "" {
			row.Reconciler = tenant.Spec.HomeNamespace + "/" + account
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	return rows, nil
}

func conditionText(tenant *v1beta1.Tenant, kind string) string {
	condition := meta.FindStatusCondition(tenant.Status.Conditions, kind)
	switch {
	case condition == nil:
		return "-"
	case condition.Status == metav1.ConditionTrue:
		return string(condition.Status)
	}
	return string(condition.Status) + ": " + condition.Reason
}

// Namespaces returns the namespaces that carry a tenant's label, by name.
func (e *Engine) Namespaces(ctx context.Context) ([]NamespaceRow, error) {
	var namespaces corev1.NamespaceList
	if err := e.reader.List(ctx, &namespaces); err != nil {
		return nil, explained("list namespaces", err)
	}
	rows := []NamespaceRow{}
	for i := range namespaces.Items {
		n := &namespaces.Items[i]
		row := NamespaceRow{Namespace: n.Name, Tenant: n.Labels[v1beta1.LabelTenant], Status: string(n.Status.Phase)}
		if row.Name = cmp.Or(n.Labels[onboard.LabelDemo], row.Tenant); row.Name != "" {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b NamespaceRow) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return rows, nil
}
