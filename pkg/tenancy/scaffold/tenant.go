package scaffold

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Team describes a Tenant's part of a repository.
type Team struct {
	Tenant *v1beta1.Tenant
	// Landwaiter is the ServiceAccount that reads the Secrets of the home namespace.
	Landwaiter types.NamespacedName
	// Places are the environments, groups or clusters with the Tenant; empty means all.
	Places []string
	// In has the Tenant of each place whose Tenant is in the tree. All others have Tenant.
	In map[string]*v1beta1.Tenant
	// wrote are an earlier run's files for places that differ.
	wrote map[string]bool
	// App is the application that the platform deploys for the Tenant, in the layout arc. A run that names none
	// keeps the one of the tree, unless WithoutApp is set.
	App        App
	WithoutApp bool
	// Apps has the application of each place whose application is not App, such as another version of its chart.
	Apps map[string]App
	// From is the file of the tree with the Tenant that was extended, the first if each cluster has one;
	// empty if the Tenant is from elsewhere.
	From string
	// Auth is the encrypted Secret with the Git credentials; empty if it is kept elsewhere.
	Auth string
	// only are the folders that a run for some of the team's places may change; empty for a run for
	// all.
	only []string
	// own are the patches of the Tenant that such a run writes, by place.
	own map[string]string
}

// App is an application of a Tenant.
type App struct {
	Name  string
	Chart Chart
	// Shared makes the Tenant's application an overlay of one in base-deployments.
	Shared bool
}

// NewTeam returns the files of a Tenant in the platform's repository.
func NewTeam(p Platform, team Team) (Tree, error) {
	p, err := p.Complete()
	if err != nil {
		return Tree{}, err
	}
	if team.Tenant == nil {
		return Tree{}, fmt.Errorf("no Tenant is described")
	}
	team.Tenant, team.In = team.Tenant.DeepCopy(), maps.Clone(team.In)
	for place, own := range team.In {
		team.In[place] = own.DeepCopy()
	}
	if err := team.place(p); err != nil {
		return Tree{}, err
	}
	t := Tree{By: "platform scaffold " + team.Tenant.Name, Only: team.only}
	switch p.Layout {
	case LayoutFlux, LayoutGroups:
		set, err := team.manifests(p)
		if err != nil {
			return Tree{}, err
		}
		if err := team.inBase(p, &t, set); err != nil {
			return Tree{}, err
		}
	case LayoutArc:
		if err := team.inClusters(p, &t); err != nil {
			return Tree{}, err
		}
	case LayoutDemo:
		return Tree{},
			fmt.Errorf("the layout demo keeps no tenants in Git: use landwaiter tenant add --tenant-name %s --tenant-namespace NAMESPACE",
				team.Tenant.Name)
	}
	return t, t.sort()
}

// TenantFiles returns patterns of the files with a Tenant in the layouts.
func TenantFiles(name string) []string {
	return []string{"tenants/base/" + name + "/tenant.yaml", "clusters/*/" + name + "/tenant.yaml", "clusters/*/*/" + name + "/tenant.yaml"}
}

// place sets the places of the Tenant, and refuses places that the platform does not have.
func (team *Team) place(p Platform) error {
	all := p.places()
	kind := map[Layout]string{LayoutFlux: "environment", LayoutGroups: "group", LayoutArc: "cluster"}[p.Layout]
	for _, name := range team.Places {
		if !slices.Contains(all, name) {
			return fmt.Errorf("--place %s: the platform has no such %s for teams; use %s", name, kind, strings.Join(all, ", "))
		}
	}
	if len(team.Places) == 0 {
		team.Places = all
	}
	if p.Layout != LayoutArc && team.App != (App{}) {
		return fmt.Errorf("--app means nothing in the layout %s: the team's own repository has its applications", p.Layout)
	}
	if r := team.Tenant.Spec.Reconciler; p.Layout == LayoutGroups && r != nil && r.Source != nil && r.Path == "" {
		r.Path = "./clusters/${cluster_name}"
	}
	return nil
}

// manifests are a Tenant and its objects, sorted by file.
type manifests struct {
	tenant, namespaces, rights, sync []object
}

// manifests renders the Tenant. With the operator, only the Tenant itself is in Git.
func (team Team) manifests(p Platform) (manifests, error) {
	own, err := onboard.Manifest(team.Tenant)
	if err != nil {
		return manifests{}, err
	}
	set := manifests{tenant: []object{own.Object}}
	rendered, err := onboard.Objects(team.Tenant, team.rendered())
	if err != nil || p.Operator {
		return set, err
	}
	for _, o := range rendered {
		switch {
		case strings.HasSuffix(o.GroupVersionKind().Group, ".toolkit.fluxcd.io"):
			set.sync = append(set.sync, o.Object)
		case isRight(o):
			set.rights = append(set.rights, o.Object)
		default:
			set.namespaces = append(set.namespaces, o.Object)
		}
	}
	return set, nil
}

// rendered returns everything of a Tenant in a tree.
func (team Team) rendered() onboard.Options {
	return onboard.Options{Landwaiter: team.Landwaiter, ClusterRights: true, Constraints: true}
}

func isRight(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ServiceAccount" || o.GroupVersionKind().Group == "rbac.authorization.k8s.io"
}

// keepNamespaces keeps Flux from deleting the namespaces, with their content, with the files
// of a Tenant with namespaceReclaimPolicy: Retain.
func (team Team) keepNamespaces() []object {
	if team.Tenant.Spec.NamespaceReclaimPolicy == v1beta1.NamespaceReclaimPolicyDeleteCreated {
		return nil
	}
	return []object{{
		"target": object{"kind": "Namespace"},
		"patch": encode(object{"apiVersion": "v1", "kind": "Namespace",
			"metadata": object{"name": "any", "annotations": object{pruneAnnotation: pruneDisabled}}}),
	}}
}

// replaceBindings lets Flux replace a binding with another role: the API server refuses to change it, and Flux
// would then apply nothing of any team.
func (team Team) replaceBindings() []object {
	return []object{{
		"target": object{"kind": "(RoleBinding|ClusterRoleBinding)", "labelSelector": v1beta1.LabelTenant + "=" + team.Tenant.Name},
		"patch": encode(object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
			"metadata": object{"name": "any", "annotations": object{forceAnnotation: forceEnabled}}}),
	}}
}

// inBase adds the files of the layouts that have one base for all places.
func (team Team) inBase(p Platform, t *Tree, set manifests) error {
	name := team.Tenant.Name
	base := path.Join("tenants/base", name)
	resources := team.files(t, base,
		[]list{{"tenant.yaml", set.tenant}, {"objects.yaml", slices.Concat(set.namespaces, set.rights)}, {"sync.yaml", set.sync}})
	var patches []object
	if !p.Operator {
		patches = append(team.keepNamespaces(), team.replaceBindings()...)
	}
	t.add(path.Join(base, "kustomization.yaml"), kustomization("", resources, object{"patches": patches}))
	for _, place := range team.Places {
		edit := Edit{Path: path.Join("tenants", place, "kustomization.yaml"), Resources: []string{"../base/" + name}, Initial: tenantList()}
		if patch := team.overlay(p, place); patch != "" {
			edit.Patches = []string{name + "-patch.yaml"}
			t.add(path.Join("tenants", place, edit.Patches[0]), patch)
		}
		if patch := team.own[place]; patch != "" {
			edit.Patches = append(edit.Patches, ownFile(name))
			t.Files = append(t.Files, File{Path: path.Join("tenants", place, ownFile(name)), Text: patch, Settings: true, Bare: true})
		}
		if err := team.differing(p, t, place, &edit); err != nil {
			return err
		}
		t.Edits = append(t.Edits, edit)
	}
	return nil
}

// list is the content of one file.
type list struct {
	name    string
	objects []object
}

// files adds the lists that are not empty, and the encrypted Secret, and returns their names.
func (team Team) files(t *Tree, folder string, lists []list) []string {
	var resources []string
	for _, l := range lists {
		if len(l.objects) > 0 {
			name := path.Join(folder, l.name)
			t.Files = append(t.Files, File{Path: name, Text: document("", l.objects...), Tenant: l.name == "tenant.yaml" && team.From != ""})
			resources = append(resources, l.name)
		}
	}
	if team.Auth != "" {
		t.Files = append(t.Files, File{Path: path.Join(folder, AuthFile), Text: team.Auth, Seed: true, Bare: true})
		resources = append(resources, AuthFile)
	}
	return resources
}
