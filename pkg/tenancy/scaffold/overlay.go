package scaffold

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// overlay makes the environments differ in the path of the team's repository. The Tenant has
// the same path; otherwise it would differ from its objects.
func (team Team) overlay(p Platform, place string) string {
	folder := team.folderIn(p, place)
	if folder == "" {
		return ""
	}
	objects := []object{{"apiVersion": v1beta1.GroupVersion.String(), "kind": v1beta1.KindTenant, "metadata": object{"name": team.Tenant.Name},
		"spec": object{"reconciler": object{"path": folder}}}}
	if !p.Operator {
		objects = append(objects, object{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
			"metadata": named(team.Tenant.Spec.HomeNamespace, team.Tenant.Name), "spec": object{"path": folder}})
	}
	return document("", objects...)
}

// folderIn returns the folder of the team's repository that an environment applies, "" if the Tenant names it.
func (team Team) folderIn(p Platform, place string) string {
	if r := team.Tenant.Spec.Reconciler; p.Layout == LayoutFlux && r != nil && r.Source != nil && r.Path == "" {
		return "./" + place
	}
	return ""
}

// Files of a place with the Tenant's objects that the base lacks.
func addedFile(team string) string   { return team + "-objects.yaml" }
func changedFile(team string) string { return team + "-objects-patch.yaml" }

// differing adds to the list of a place the objects of the Tenant after the place's patches.
func (team Team) differing(p Platform, t *Tree, place string, edit *Edit) error {
	own := team.In[place]
	if own == nil || p.Operator {
		return nil
	}
	base := team.Tenant.DeepCopy()
	if folder := team.folderIn(p, place); folder != "" {
		base.Spec.Reconciler.Path = folder
	}
	before, err := onboard.Objects(base, team.rendered())
	if err != nil {
		return err
	}
	after, err := onboard.Objects(own, team.rendered())
	if err != nil {
		return &RefusedError{fmt.Sprintf("%s patches the Tenant, which cannot be used then: %v", edit.Path, err)}
	}
	added, changed := compared(before, after)
	for _, o := range added {
		switch kind := o["kind"]; { // as in the base's own kustomization
		case kind == "Namespace" && len(team.keepNamespaces()) > 0:
			o["metadata"].(object)["annotations"] = object{pruneAnnotation: pruneDisabled}
		case kind == "RoleBinding" || kind == "ClusterRoleBinding":
			o["metadata"].(object)["annotations"] = object{forceAnnotation: forceEnabled}
		}
	}
	const comment = "What the overlay changes of the Tenant changes this of its objects."
	if file := path.Join("tenants", place, addedFile(own.Name)); len(added) > 0 {
		t.add(file, document(comment, added...))
		edit.Resources = append(edit.Resources, path.Base(file))
	} else if team.wrote[file] {
		edit.Gone = append(edit.Gone, path.Base(file))
	}
	if file := path.Join("tenants", place, changedFile(own.Name)); len(changed) > 0 {
		t.add(file, document(comment, changed...))
		edit.Patches = append(edit.Patches, path.Base(file))
	} else if team.wrote[file] {
		edit.Gone = append(edit.Gone, path.Base(file))
	}
	return nil
}

// noPatch is a patch that changes nothing.
func noPatch(tenant string) object {
	return object{"apiVersion": v1beta1.GroupVersion.String(), "kind": v1beta1.KindTenant, "metadata": named("", tenant)}
}

// compared returns the objects that only after has, and patches from the others of before to those of after.
func compared(before, after []*unstructured.Unstructured) (added, patches []object) {
	same := func(o *unstructured.Unstructured) func(*unstructured.Unstructured) bool {
		return func(other *unstructured.Unstructured) bool {
			return o.GroupVersionKind() == other.GroupVersionKind() && identity(o) == identity(other)
		}
	}
	patch := func(o *unstructured.Unstructured, content object) {
		content["apiVersion"], content["kind"] = o.GetAPIVersion(), o.GetKind()
		metadata, _ := content["metadata"].(object)
		if metadata == nil {
			metadata = object{}
		}
		for name, value := range named(o.GetNamespace(), o.GetName()) {
			metadata[name] = value
		}
		content["metadata"] = metadata
		patches = append(patches, content)
	}
	for _, o := range after {
		i := slices.IndexFunc(before, same(o))
		if i < 0 {
			added = append(added, o.Object)
		} else if changed := difference(before[i].Object, o.Object); len(changed) > 0 {
			patch(o, changed)
		}
	}
	for _, o := range before {
		if !slices.ContainsFunc(after, same(o)) {
			patch(o, object{"$patch": "delete"})
		}
	}
	return added, patches
}

// difference returns the merge patch from one object to the other. Null removes a field.
func difference(from, to object) object {
	patch := object{}
	for name := range from {
		if _, ok := to[name]; !ok {
			patch[name] = nil
		}
	}
	for name, value := range to {
		below, ok := value.(object)
		before, was := from[name].(object)
		if !ok || !was {
			if !reflect.DeepEqual(from[name], value) {
				patch[name] = value
			}
		} else if changed := difference(before, below); len(changed) > 0 {
			patch[name] = changed
		}
	}
	return patch
}

// findPlaces reads the Tenant of each place of the tree after tree is written, if the place has one: the overlays
// may patch it, and in the layout arc each cluster has its own file.
func (a Addition) findPlaces(p Platform, team *Team, tree Tree) (err error) {
	if p.Layout == LayoutArc {
		team.In, err = a.tenantsOfClusters(*team)
		return err
	}
	there, err := p.listings(a.Dir, team.Tenant.Name)
	if p.Operator && len(team.only) == 0 || len(there) == 0 || err != nil {
		return err
	}
	c, err := newChecker(CheckOptions{})
	if err != nil {
		return err
	}
	if err := c.load(a.Dir); err != nil {
		return err
	}
	if err := c.put(a.Dir, tree, a.Write.Force); err != nil {
		return err
	}
	if len(team.only) > 0 {
		there = nil // a new place has no entry yet
	}
	for _, edit := range tree.Edits {
		if len(team.only) > 0 {
			there = append(there, listed{place: path.Base(path.Dir(edit.Path)), list: edit.Path})
		}
		text, err := edit.apply(cmp.Or(string(c.files[edit.Path]), edit.Initial))
		if err != nil {
			return fmt.Errorf("add to the list %s: %w", edit.Path, err)
		}
		c.keep(edit.Path, text)
	}
	name := team.Tenant.Name
	team.In, team.wrote = map[string]*v1beta1.Tenant{}, map[string]bool{}
	for _, l := range there {
		// An earlier run's files may no longer fit the Tenant.
		for file, text := range map[string]string{addedFile(name): "# Nothing.\n", changedFile(name): encode(noPatch(name))} {
			if file = path.Join(path.Dir(l.list), file); c.files[file] != nil {
				c.keep(file, text)
				team.wrote[file] = true
			}
		}
	}
	c.inspect()
	for _, l := range there {
		own := c.tenantOf(path.Dir(l.list), name)
		switch {
		case own == nil && len(team.wrote) > 0:
			return &RefusedError{
				fmt.Sprintf("nothing was written: %s does not build, so it is unclear what it says about Tenant %s: run landwaiter platform check %s",
					l.list, name, a.Dir)}
		case own == nil: // for a check
		case own.Spec.HomeNamespace != team.Tenant.Spec.HomeNamespace:
			return &RefusedError{
				fmt.Sprintf("nothing was written: %s gives Tenant %s the home namespace %s, and the base %s, but it must be the same everywhere: "+
					"remove homeNamespace from the patch", l.list, name, own.Spec.HomeNamespace, team.Tenant.Spec.HomeNamespace)}
		default:
			team.In[l.place] = own
		}
	}
	return nil
}

// tenantOf returns a Tenant as built by a folder; nil if the build has none, or if somebody gave the Tenant a
// namespace.
func (c *checker) tenantOf(folder, name string) *v1beta1.Tenant {
	for _, o := range c.build(folder).objects {
		tenant := &v1beta1.Tenant{}
		if isResource(o) && o.GetKind() == v1beta1.KindTenant && o.GetName() == name && o.GetNamespace() == "" &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, tenant) == nil {
			return tenant
		}
	}
	return nil
}

// tenantsOfClusters returns the Tenants of the layout arc, with the request added to each.
func (a Addition) tenantsOfClusters(team Team) (map[string]*v1beta1.Tenant, error) {
	found := map[string]*v1beta1.Tenant{}
	if team.From == "" {
		return found, nil // the Tenant is the same everywhere, or in the requested places
	}
	files, err := tenantsIn(a.Dir, team.Tenant.Name)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		cluster := strings.Split(filepath.ToSlash(file), "/")[1]
		if len(team.only) > 0 && !slices.Contains(team.Places, cluster) {
			continue
		}
		if found[cluster], err = a.combined(file); err != nil {
			return nil, err
		}
	}
	return found, nil
}
