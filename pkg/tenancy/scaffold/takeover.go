package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// followSource checks the GitRepository of a team in a tree that somebody else wrote. It returns a
// [RefusedError] if the team has another home namespace: account, source and Kustomization would move, and what
// runs would be deleted. The Tenant keeps the Secret of the GitRepository.
func (team Team) followSource(dir string, p Platform) error {
	if known, err := tenantsIn(dir, team.Tenant.Name); len(known) > 0 || err != nil {
		return failedUnlessRefused(err)
	}
	tree, err := NewTeam(p, team)
	if err != nil {
		return err
	}
	for _, file := range tree.Files {
		sources, err := existing(dir, file.Path, "GitRepository")
		if err != nil {
			return failedUnlessRefused(err)
		}
		for _, source := range sources {
			metadata := field(source, "metadata")
			if metadata == nil || textOf(metadata, "name") != team.Tenant.Name {
				continue
			}
			if namespace := textOf(metadata, "namespace"); namespace != "" && namespace != team.Tenant.Spec.HomeNamespace {
				return &RefusedError{
					fmt.Sprintf("%s: Flux fetches the repository of %s in namespace %s, and Tenant %s would have the home namespace %s, which cannot be "+
						"changed later: add --set homeNamespace=%s, or remove the file if this is another team",
						file.Path, team.Tenant.Name, namespace, team.Tenant.Name, team.Tenant.Spec.HomeNamespace, namespace)}
			}
			team.keepSecretRef(source)
		}
	}
	return nil
}

// keepSecretRef gives the Tenant the Secret of a GitRepository, unless it names one.
func (team Team) keepSecretRef(source *yaml.Node) {
	spec := field(source, "spec")
	if spec == nil || team.Tenant.Spec.Reconciler == nil || team.Tenant.Spec.Reconciler.Source == nil ||
		team.Tenant.Spec.Reconciler.Source.SecretRef != nil {
		return
	}
	if ref := field(spec, "secretRef"); ref != nil && textOf(ref, "name") != "" {
		team.Tenant.Spec.Reconciler.Source.SecretRef = &v1beta1.Reference{Name: textOf(ref, "name")}
	}
}

// keepSharedCharts gives shared applications the chart of their base in the tree. It returns a
// [RefusedError] if another one is requested, which the other tenants would also get.
func (team *Team) keepSharedCharts(dir string) (err error) {
	for cluster, app := range team.Apps {
		if team.Apps[cluster], err = team.sharedChart(dir, app); err != nil {
			return err
		}
	}
	team.App, err = team.sharedChart(dir, team.App)
	return err
}

// sharedChart is [Team.keepSharedCharts] for one application.
func (team *Team) sharedChart(dir string, app App) (App, error) {
	if !app.Shared {
		return app, nil
	}
	folder := path.Join("base-deployments", app.Name)
	base := path.Join(folder, app.Name+"-base-release.yaml")
	releases, err := existing(dir, base, "HelmRelease")
	if err != nil {
		return app, err
	}
	if i := slices.IndexFunc(releases, ofHelmOperator); i >= 0 {
		return app, &RefusedError{base + ": " + helmOperator(base, releases[i])}
	}
	sources, err := chartSources(dir, base)
	if err != nil {
		return app, err
	}
	for _, source := range sources {
		there := App{Name: app.Name, Shared: true, Chart: Chart{URL: textAt(source, "spec", "url"), Version: "*"}}
		if there.Chart.URL == "" {
			continue
		}
		if len(releases) > 0 {
			there.Chart.Version = chartOf(source, releases[0]).Version
		}
		switch asked := app.Chart; {
		case asked.URL == "":
			app = there
		case strings.TrimSuffix(asked.URL, "/") != strings.TrimSuffix(there.Chart.URL, "/"):
			return app,
				&RefusedError{fmt.Sprintf("%s has the chart %s for all tenants of all clusters, not %s: leave --app-chart out, or edit it there",
					folder, there.Chart.URL, strings.TrimSuffix(asked.URL, "/"))}
		case asked.Version != "*" && asked.Version != there.Chart.Version:
			cluster := "CLUSTER"
			if len(team.Places) == 1 {
				cluster = team.Places[0]
			}
			bump, err := there.bump(path.Join(dir, "clusters", cluster, app.Name, team.Tenant.Name, valuesFile), asked.Version)
			if err != nil {
				return app, err
			}
			return app,
				&RefusedError{fmt.Sprintf("%s has version %s of its chart, not %s: leave --app-chart out; editing %s changes it for all tenants of "+
					"all clusters; for this tenant in one cluster, run %s",
					folder, there.Chart.Version, asked.Version, base, bump)}
		}
	}
	return app, nil
}

// existing returns the objects of a kind in a file of dir; none if the file is missing or is not YAML, which
// writing it reports.
func existing(dir, name, kind string) ([]*yaml.Node, error) {
	text, err := readExisting(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	documents, err := parse([]byte(text))
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	return slices.DeleteFunc(documents, func(d *yaml.Node) bool { return textOf(d, "kind") != kind }), nil
}

// KeepsDecryption returns a [RefusedError] if Flux decrypts Secrets for a Kustomization in dir and tree would
// end that, because no setting names a key.
func (p Platform) KeepsDecryption(dir string, tree Tree) error {
	if p.sops() != (sopsKey{}) {
		return nil
	}
	for _, file := range tree.Files {
		kustomizations, err := existing(dir, file.Path, "Kustomization")
		if err != nil {
			return err
		}
		for _, k := range kustomizations {
			if spec := field(k, "spec"); spec != nil && field(spec, "decryption") != nil {
				return &RefusedError{
					fmt.Sprintf("%s: Flux decrypts Secrets here (spec.decryption), and would not any more: say for which key they are encrypted, with "+
						"--set sopsPGP=FINGERPRINT, sopsAge=RECIPIENT or sopsKMS=KEY, or remove spec.decryption first", file.Path)}
			}
		}
	}
	return nil
}

// knowsFolders refuses to start a tree with the default environments in a folder that has others.
func (p Platform) knowsFolders(dir string) error {
	if p.Layout == "" {
		demo, err := hasFolder(dir, path.Dir(demoKustomization))
		if err != nil {
			return err
		}
		if demo {
			return fmt.Errorf("%s has %s, as flux-multitenant-demo: give --layout=demo, or --layout=%s for the tree of a platform", dir,
				path.Dir(demoKustomization), LayoutFlux)
		}
	}
	if p.Layout != "" && p.Layout != LayoutFlux || len(p.Environments) > 0 {
		return nil
	}
	complete, err := p.Complete()
	if err != nil {
		return nil //nolint:nilerr // the caller completes the platform too
	}
	folders, err := fs.Glob(os.DirFS(dir), "clusters/*/flux-system")
	if err != nil {
		return fmt.Errorf("look for clusters in the tree: %w", err)
	}
	var others []string
	for _, folder := range folders {
		if name := path.Base(path.Dir(folder)); !slices.Contains(complete.Environments, name) {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	return fmt.Errorf("clusters has %s, and the tree would have %s: name the environments with --set environments=%s",
		strings.Join(others, ", "), strings.Join(complete.Environments, ", "), strings.Join(others, " --set environments="))
}

// hasFolder reports whether dir has a folder of that name.
func hasFolder(dir, name string) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s in the tree: %w", name, err)
	}
	return info.IsDir(), nil
}
