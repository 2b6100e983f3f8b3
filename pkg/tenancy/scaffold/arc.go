package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// inClusters adds the files of the layout arc: a folder for each cluster, application and
// tenant.
func (team Team) inClusters(p Platform, t *Tree) error {
	based := map[string]bool{}
	for _, cluster := range team.Places {
		team := team.on(p, cluster)
		app, rights := team.App, "role.yaml"
		if app != (App{}) {
			rights = "rbac.yaml"
			if err := cmp.Or(checkName("--app", app.Name), app.checkChart()); err != nil {
				return err
			}
		}
		if app.Shared && !based[app.Name] {
			based[app.Name] = true
			team.base(t)
		}
		account := onboard.Account(team.Tenant)
		entry := path.Join(app.Name, team.Tenant.Name)
		folder := path.Join("clusters", cluster, entry)
		set, err := team.manifests(p)
		if err != nil {
			return err
		}
		lists := []list{{"tenant.yaml", set.tenant}, {"namespace.yaml", set.namespaces}, {rights, set.rights}, {"sync.yaml", set.sync}}
		var patches []object
		if app != (App{}) && !app.Shared {
			source, release := app.release(team.Tenant.Spec.HomeNamespace, team.Tenant.Name+"-"+app.Name)
			release["spec"].(object)["serviceAccountName"] = account
			workloadsIn(release["spec"].(object), team.Tenant)
			lists = append(lists, list{app.Name + ".yaml", []object{source, release}})
			patches = ownValues(t, folder, app.aboutValues(), named(team.Tenant.Spec.HomeNamespace, app.Name), object{})
		}
		resources := team.files(t, folder, lists)
		if app.Shared {
			resources = append(resources, relative(folder, path.Join("base-deployments", app.Name)))
			patches = team.shared(t, folder, account)
		}
		team.inCluster(t, cluster, entry, resources, patches)
	}
	return nil
}

// on returns the team in one cluster. Flux applies the cluster's folder in the team's own
// repository, because the bases there are for no cluster. A Tenant from the tree has the
// folder of the cluster for which it was read.
func (team Team) on(p Platform, cluster string) Team {
	if own := team.In[cluster]; own != nil {
		team.Tenant = own
	}
	if team.App = team.app(cluster); team.App != (App{}) && team.Tenant.Spec.Reconciler == nil {
		// Flux installs the application with the team's account, so the team has one.
		team.Tenant = team.Tenant.DeepCopy()
		team.Tenant.Spec.Reconciler = &v1beta1.TenantReconciler{}
	}
	folder := func(cluster string) string { return "./" + path.Join("clusters", cluster, team.Tenant.Name) }
	r := team.Tenant.Spec.Reconciler
	if r == nil || r.Source == nil || r.Path != "" && !slices.ContainsFunc(p.Clusters, func(c string) bool { return r.Path == folder(c) }) {
		return team
	}
	team.Tenant = team.Tenant.DeepCopy()
	team.Tenant.Spec.Reconciler.Path = folder(cluster)
	return team
}

// ParseChart reads URL[@VERSION]; any version is meant if there is none.
func ParseChart(text string) Chart {
	if i := strings.LastIndex(text, "@"); i > strings.Index(text, "://") && strings.Contains(text, "://") {
		return Chart{URL: text[:i], Version: text[i+1:]}
	}
	return Chart{URL: text, Version: "*"}
}

// checkChart refuses an application without a chart that Flux can fetch.
func (a App) checkChart() error {
	if a.Chart.URL == "" {
		return errors.New("--app needs --app-chart, the Helm repository, Git repository or registry that has its chart")
	}
	if scp := regexp.MustCompile(`^[a-z0-9_-]+@([a-z0-9.-]+):([^\s:]+?)(\.git)?$`).FindStringSubmatch(a.Chart.URL); scp != nil {
		return fmt.Errorf("--app-chart: %q cannot be used; give https://%s/%s.git", a.Chart.URL, scp[1], scp[2])
	}
	if !regexp.MustCompile(chartURL).MatchString(a.Chart.URL) {
		return fmt.Errorf("--app-chart: %q cannot be used; give https://charts.example.com, oci://registry.example.com/charts/%s or "+
			"https://git.example.com/%s.git", a.Chart.URL, a.Name, a.Name)
	}
	if !isVersion(a.Chart.Version) {
		return fmt.Errorf("--app-chart: %q is no version; give one, such as 1.2.0, or a range, such as 1.x. For another branch than main, edit "+
			"spec.ref in the file of the source: it stays", a.Chart.Version)
	}
	return nil
}

// workloadsIn installs an application in the first namespace of a team other than the home namespace,
// if the home namespace keeps no workloads.
func workloadsIn(spec object, tenant *v1beta1.Tenant) {
	if namespace := workloads(tenant); namespace != tenant.Spec.HomeNamespace {
		spec["targetNamespace"] = namespace
	}
}

// aboutValues is the comment above an application's values: what they may contain, and where to put another name of
// its chart.
func (a App) aboutValues() string {
	comment := ""
	switch {
	case strings.HasPrefix(a.Chart.URL, "oci://"):
	case strings.HasSuffix(a.Chart.URL, ".git"):
		comment += fmt.Sprintf("\nIf the chart is not in charts/%s, add spec.chart.spec.chart with its folder.", a.Name)
	default:
		comment += fmt.Sprintf("\nIf the chart has another name than %s, add spec.chart.spec.chart with its name.", a.Name)
	}
	return comment
}

// inCluster adds a Tenant's folder to its cluster.
func (team Team) inCluster(t *Tree, cluster, folder string, resources []string, patches []object) {
	patches = slices.Concat(patches, team.keepNamespaces(), team.replaceBindings())
	t.add(path.Join("clusters", cluster, folder, "kustomization.yaml"), kustomization("", resources, object{"patches": patches}))
	t.Edits = append(t.Edits,
		Edit{Path: path.Join("clusters", cluster, "kustomization.yaml"), Resources: []string{folder}, Initial: tenantList()})
}

// release is the source and the HelmRelease of an application.
func (a App) release(namespace, releaseName string) (source, release object) {
	source, from := chartSource(a.Chart, a.Name, namespace, a.Name)
	spec := object{"interval": "10m"}
	if releaseName != "" {
		spec["releaseName"] = releaseName
	}
	maps.Copy(spec, from)
	return source, object{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": named(namespace, a.Name), "spec": spec}
}

// base adds the application that tenants share. The platform owns it: the first tenant
// creates it, and the others do not change it.
func (team Team) base(t *Tree) {
	source, release := team.App.release("", "")
	release["spec"].(object)["values"] = object{}
	folder := path.Join("base-deployments", team.App.Name)
	t.seed(path.Join(folder, team.App.Name+"-base-release.yaml"),
		document("Every tenant's "+team.App.Name+" begins with this.", source, release))
	t.seed(path.Join(folder, "kustomization.yaml"), kustomization("", []string{team.App.Name + "-base-release.yaml"}, nil))
}

// shared returns the patches that turn the shared application into this Tenant's.
func (team Team) shared(t *Tree, folder, account string) []object {
	file := team.App.Name + "-patch.yaml"
	spec := object{"releaseName": team.Tenant.Name + "-" + team.App.Name, "serviceAccountName": account}
	workloadsIn(spec, team.Tenant)
	t.add(path.Join(folder, file), document("", object{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
		"metadata": object{"name": team.App.Name}, "spec": spec}))
	values := ownValues(t, folder, team.App.aboutValues(), object{"name": team.App.Name}, object{})
	return append([]object{{"path": file}}, append(values, object{
		"target": object{"kind": "(HelmRelease|HelmRepository|OCIRepository|GitRepository)"},
		"patch":  encode([]object{{"op": "add", "path": "/metadata/namespace", "value": team.Tenant.Spec.HomeNamespace}}),
	})...)
}
