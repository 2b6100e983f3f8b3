package scaffold

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// keepsOthers returns a [RefusedError] if the Tenant lists a namespace that another one lists in a place of
// the team: the list would no longer build, and Flux would apply no change of any team. A check reports
// unreadable Tenants.
func (a Addition) keepsOthers(p Platform, team Team, wish *v1beta1.Tenant) error {
	places := team.Places
	if len(places) == 0 {
		places = p.places()
	}
	for _, place := range places {
		own := namespacesOf(cmp.Or(team.In[place], wish))
		folder := path.Join(p.listFolder(), place)
		entries, err := listIn(a.Dir, path.Join(folder, "kustomization.yaml"))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name, file := path.Base(entry), path.Join(folder, entry, "tenant.yaml")
			if name == team.Tenant.Name || !filepath.IsLocal(file) || a.Read == nil {
				continue
			}
			whole := filepath.Join(a.Dir, filepath.FromSlash(file))
			if info, err := os.Lstat(whole); err != nil || !info.Mode().IsRegular() {
				continue // a resource that is not a team
			}
			others, err := a.Read(whole)
			if err != nil {
				continue
			}
			for _, other := range others {
				for _, namespace := range namespacesOf(other) {
					if slices.Contains(own, namespace) {
						return &RefusedError{fmt.Sprintf("%s: namespace %s is in Tenant %s, so Tenant %s cannot have it too: take it out of one", file,
							namespace, other.Name, team.Tenant.Name)}
					}
				}
			}
		}
	}
	return nil
}

// namespacesOf returns the namespaces that a Tenant names.
func namespacesOf(tenant *v1beta1.Tenant) []string {
	return append([]string{tenant.Spec.HomeNamespace}, tenant.Spec.Namespaces...)
}

// hints name what a team still needs, which the tree does not show.
func (team Team) hints(p Platform) (hints []string) {
	r, name := team.Tenant.Spec.Reconciler, team.Tenant.Name
	if (r == nil || r.Source == nil) && team.App == (App{}) && len(team.Apps) == 0 && team.Tenant.Annotations[v1beta1.AnnotationForm] == "" {
		hints = append(hints,
			fmt.Sprintf("Tenant %s has no reconciler.source.url, so Flux applies no repository of the team; to name one, run this again with "+
				"--set reconciler.source.url=URL", name))
	}
	if r != nil && r.ClusterRole == "cluster-admin" {
		hints = append(hints, fmt.Sprintf("Tenant %s: %s", name, roleTooFar(r)))
	}
	if r != nil && r.CreateNamespaces && !p.Operator {
		hints = append(hints,
			fmt.Sprintf("Tenant %s may create namespaces, and the tree has no operator: after each new namespace, run landwaiter tenant add %s; "+
				"until then the team has no permissions in it", name, name))
	}
	return hints
}
