package live

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// ClusterRoles of the chart, by their names if the release is called landwaiter.
// ReaderRole reads the rules of a namespace and what runs there, but no Secrets; admins of
// the namespace have all of it, so they may bind it. ClusterReaderRole reads the rules of the
// cluster, and TenantReaderRole who is in which team. ReportReaderRole reads reports, as the
// roles view, edit and admin do.
const (
	ReaderRole        = "landwaiter-reader"
	ClusterReaderRole = "landwaiter-cluster-reader"
	TenantReaderRole  = "landwaiter-tenant-reader"
	ReportReaderRole  = "landwaiter-report-reader"
)

// Right is a permission that the person lacks.
type Right struct {
	Verb      string
	Resource  schema.GroupResource
	Namespace string // "" for resources of the cluster, and for those of all namespaces
	Name      string // "" for all
}

// String says that the permission is missing, and how to get it.
func (r Right) String() string {
	object, where := r.Resource.String(), ""
	if r.Name != "" {
		object += "/" + r.Name
	}
	if r.Namespace != "" {
		where = " in namespace " + r.Namespace
	}
	return fmt.Sprintf("you may not %s %s%s; %s", r.Verb, object, where, r.Remedy())
}

// Remedy says who can grant the permission, and how.
func (r Right) Remedy() string {
	switch r.Resource.Resource {
	case "secrets", "configmaps", "serviceaccounts":
		return fmt.Sprintf("to grant it for this one: kubectl create role NAME -n %s --verb=get --resource=%s --resource-name=%s, and bind the role to yourself", r.Namespace, r.Resource, r.Name)
	}
	role := ReaderRole
	if r.Resource.Group == v1beta1.ReportGroup {
		role = ReportReaderRole
	} else if r.Resource.Group == v1beta1.GroupVersion.Group && slices.ContainsFunc(v1beta1.Kinds(), func(k v1beta1.Kind) bool { return k.Plural == r.Resource.Resource && !k.Namespaced }) {
		role = ClusterReaderRole
		if kind, _ := v1beta1.KindNamed(v1beta1.KindTenant); r.Resource.Resource == kind.Plural {
			role = TenantReaderRole
		}
	}
	if role == ReaderRole && r.Namespace != "" {
		return "ask an admin of the namespace to bind ClusterRole " + ReaderRole + " there"
	}
	return "ask a cluster admin to bind ClusterRole " + role
}

// MissingError is the error for a read without which there is nothing to say.
type MissingError struct{ Right Right }

// Error says which permission is missing, and how to get it.
func (e MissingError) Error() string { return e.Right.String() }
