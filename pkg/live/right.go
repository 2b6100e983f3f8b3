package live

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

// ClusterRoles of the chart, by their names if the release is called landwaiter.
// PreviewerRole has every right to read that a preview needs, except on Secrets;
// ClusterPreviewerRole has those of them that no binding in a namespace can give.
// ViewerRole has those on the kinds of landwaiter.dev in a namespace, which its admins have,
// too, so that they may bind it. ReportViewerRole reads reports, as the roles view, edit and
// admin do.
const (
	ViewerRole           = "landwaiter-viewer"
	PreviewerRole        = "landwaiter-previewer"
	ClusterPreviewerRole = "landwaiter-cluster-previewer"
	ReportViewerRole     = "landwaiter-report-viewer"
)

// Right is a right that the person lacks.
type Right struct {
	Verb      string
	Resource  schema.GroupResource
	Namespace string // "" for resources of the cluster, and for those of all namespaces
	Name      string // "" for all
}

// String says that the right is missing, and how to get it.
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

// Remedy says who can grant the right, and how.
func (r Right) Remedy() string {
	switch r.Resource.Resource {
	case "secrets", "configmaps", "serviceaccounts":
		return fmt.Sprintf("to grant it for this one: kubectl create role NAME -n %s --verb=get --resource=%s --resource-name=%s, and bind the role to yourself", r.Namespace, r.Resource, r.Name)
	}
	role := PreviewerRole
	if r.Resource.Group == v1alpha1.ReportGroup {
		role = ReportViewerRole
	} else if r.Resource.Group == v1alpha1.GroupVersion.Group && slices.ContainsFunc(v1alpha1.Kinds(), func(k v1alpha1.Kind) bool { return k.Plural == r.Resource.Resource && !k.Namespaced }) {
		role = ClusterPreviewerRole
	}
	if own := r.Resource.Group == v1alpha1.GroupVersion.Group && role == PreviewerRole; own && r.Namespace != "" {
		return "ask an admin of the namespace to bind ClusterRole " + ViewerRole + " there"
	}
	return "ask a cluster admin to bind ClusterRole " + role
}

// MissingError is the error for a read without which there is nothing to say.
type MissingError struct{ Right Right }

// Error says which right is missing, and how to get it.
func (e MissingError) Error() string { return e.Right.String() }
