package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// app is the Tenant's application in a place.
func (team Team) app(place string) App {
	if own, ok := team.Apps[place]; ok {
		return own
	}
	return team.App
}

// keepApp gives the Tenant its application in the tree for each cluster of the layout arc, unless the run names
// one: a later run then needs no flags for it. A run that names a chart replaces it.
func (team *Team) keepApp(dir string, p Platform) error {
	if p.Layout != LayoutArc || team.WithoutApp {
		return nil
	}
	entries, err := p.listings(dir, team.Tenant.Name)
	if err != nil {
		return err
	}
	kept, clusters := map[string]App{}, slices.Clone(team.Places)
	for _, e := range entries {
		folder := path.Join(p.listFolder(), e.place, e.resource)
		app, err := appIn(dir, folder)
		if err != nil {
			return err
		}
		if app.Shared && !team.App.Shared && app.Name == team.App.Name && team.App.Chart.URL != "" &&
			(len(team.only) == 0 || slices.Contains(clusters, e.place)) {
			return &RefusedError{
				fmt.Sprintf("%s is an overlay of base-deployments/%s: give --shared, or first remove %s-patch.yaml and %s there, which patch that",
					folder, app.Name, app.Name, valuesFile)}
		}
		if len(team.only) == 0 {
			clusters = addedTo(clusters, []string{e.place})
		}
		if app == (App{}) || team.App.Chart.URL != "" || team.App.Name != "" && team.App.Name != app.Name || team.App.Shared && !app.Shared {
			continue // StayWhereItIs refuses another application, and the base has the new chart
		}
		if slices.Contains(clusters, e.place) && !app.Shared && app.checkChart() != nil {
			return &RefusedError{
				fmt.Sprintf("%s has a chart that --app-chart cannot describe (%s): run landwaiter platform scaffold %s %s --app %s --app-chart "+
					"URL@VERSION; the file stays as it is",
					path.Join(folder, app.Name+".yaml"), app.Chart.URL, dir, team.Tenant.Name, app.Name)}
		}
		kept[e.place] = app
	}
	if team.App.Chart.URL != "" {
		return nil
	}
	return team.keep(clusters, kept)
}

// keep gives each cluster its existing application. A cluster without one gets the others' application.
func (team *Team) keep(clusters []string, kept map[string]App) error {
	var several []App
	for _, place := range slices.Sorted(maps.Keys(kept)) {
		if !slices.Contains(several, kept[place]) {
			several = append(several, kept[place])
		}
	}
	switch len(several) {
	case 0:
		return nil
	case 1:
		team.App = several[0]
		return nil
	}
	team.Apps = map[string]App{}
	for _, cluster := range clusters {
		app, ok := kept[cluster]
		if !ok {
			return &RefusedError{fmt.Sprintf("clusters have %s, and %s: give --app %s --app-chart URL@VERSION for %s", several[0], several[1],
				several[0].Name, cluster)}
		}
		team.Apps[cluster] = app
	}
	return nil
}

// String names an application in the form of platform scaffold's flags.
func (a App) String() string {
	if a.Shared {
		return fmt.Sprintf("--app %s --shared", a.Name)
	}
	return fmt.Sprintf("--app %s --app-chart %s@%s", a.Name, a.Chart.URL, a.Chart.Version)
}

// appIn returns the application in a Tenant's folder; the zero value if it has none from platform scaffold. The
// base has the chart of a shared application.
func appIn(dir, folder string) (App, error) {
	name := path.Base(path.Dir(folder))
	file := path.Join(folder, name+".yaml")
	releases, err := existing(dir, file, "HelmRelease")
	if err != nil {
		return App{}, err
	}
	if len(releases) == 0 {
		patches, err := existing(dir, path.Join(folder, name+"-patch.yaml"), "HelmRelease")
		if err != nil || len(patches) == 0 || ofHelmOperator(patches[0]) {
			return App{}, err
		}
		return App{Name: name, Shared: true}, nil
	}
	if ofHelmOperator(releases[0]) {
		return App{}, nil
	}
	sources, err := chartSources(dir, file)
	if err != nil || len(sources) == 0 {
		return App{}, err
	}
	return App{Name: name, Chart: chartOf(sources[0], releases[0])}, nil
}

// chartSources returns the objects of a file of dir that can be the source of a chart.
func chartSources(dir, file string) (sources []*yaml.Node, err error) {
	for _, kind := range []string{"HelmRepository", "OCIRepository", "GitRepository"} {
		found, err := existing(dir, file, kind)
		if err != nil {
			return nil, err
		}
		sources = append(sources, found...)
	}
	return sources, nil
}

// chartOf reads the output of [chartSource].
func chartOf(source, release *yaml.Node) Chart {
	chart := Chart{URL: textAt(source, "spec", "url"), Version: "*"}
	tag := textAt(source, "spec", "ref", "tag")
	if textOf(source, "kind") == "OCIRepository" {
		tag = strings.ReplaceAll(tag, "_", "+")
	}
	versions := []string{tag, textAt(source, "spec", "ref", "semver")}
	if textOf(source, "kind") == "HelmRepository" {
		versions = []string{textAt(release, "spec", "chart", "spec", "version")}
	}
	for _, version := range slices.Backward(versions) {
		if version != "" {
			chart.Version = version
		}
	}
	return chart
}

// textAt returns the text of a nested field, "" if there is none.
func textAt(node *yaml.Node, fields ...string) string {
	for _, name := range fields[:len(fields)-1] {
		if node = field(node, name); node == nil {
			return ""
		}
	}
	return textOf(node, fields[len(fields)-1])
}

// ofHelmOperator reports whether an object is for the Helm Operator of Flux 1, which nothing installs any
// more.
func ofHelmOperator(o *yaml.Node) bool {
	return strings.HasPrefix(textOf(o, "apiVersion"), "helm.fluxcd.io/")
}

// helmOperator says what is wrong with an object of the Helm Operator in a file of the layout arc.
func helmOperator(name string, o *yaml.Node) string {
	metadata, app, shared := field(o, "metadata"), "", ""
	if parts := strings.Split(name, "/"); len(parts) > 2 && parts[0] == "base-deployments" {
		app, shared = parts[1], " --shared"
	} else if len(parts) > 4 && parts[0] == "clusters" {
		app = parts[2]
		if strings.HasSuffix(name, "-patch.yaml") {
			shared = " --shared"
		}
	}
	said := textOf(o, "kind")
	if metadata != nil {
		said += " " + textOf(metadata, "name")
	}
	if app == "" {
		return fmt.Sprintf("%s is of the Helm Operator (%s), which nothing installs: remove it, or write it as helm.toolkit.fluxcd.io/v2", said,
			textOf(o, "apiVersion"))
	}
	return fmt.Sprintf("%s is of the Helm Operator (%s), which nothing installs: remove it, run landwaiter platform scaffold DIR TENANT "+
		"--app %s%s --app-chart URL@VERSION, which writes it as helm.toolkit.fluxcd.io/v2, and move its values to the file that this names",
		said, textOf(o, "apiVersion"), app, shared)
}

// LeftOvers returns the objects for the Helm Operator in a platform's folders, one sentence for each file.
func (p Platform) LeftOvers(dir string) ([]string, error) {
	if p.Layout != LayoutArc {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the folder of the tree: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	var found []string
	for _, pattern := range []string{"base-deployments/*/*.yaml", "clusters/*/*/*.yaml", "clusters/*/*/*/*.yaml"} {
		names, err := fs.Glob(root.FS(), pattern)
		if err != nil {
			return nil, fmt.Errorf("look for releases of the Helm Operator: %w", err)
		}
		for _, name := range names {
			releases, err := existing(dir, name, "HelmRelease")
			if err != nil {
				continue // the check reports files that are not regular
			}
			if i := slices.IndexFunc(releases, ofHelmOperator); i >= 0 {
				found = append(found, name+": "+helmOperator(name, releases[i]))
			}
		}
	}
	return found, nil
}
