package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// StayWhereItIs adds the environments, groups or clusters whose lists already have the Tenant,
// so that a second run neither forgets one nor adds another; a run for some of them omits the
// others. It refuses an application that differs from the Tenant's in a cluster, which would
// apply the Tenant twice.
func (team *Team) StayWhereItIs(dir string, p Platform) error {
	entries, err := p.listings(dir, team.Tenant.Name)
	if err != nil {
		return err
	}
	var there []string
	for _, e := range entries {
		if len(team.only) > 0 && !slices.Contains(team.Places, e.place) {
			continue
		}
		there = append(there, e.place)
		if want := path.Join(team.app(e.place).Name, team.Tenant.Name); p.Layout == LayoutArc && e.resource != want {
			return fmt.Errorf("%s %s is in %s: give the flags of its application again (--app and those that belong to it), or take %s off the "+
				"list in %s first",
				v1beta1.KindTenant, team.Tenant.Name, path.Join(p.listFolder(), e.place, e.resource), e.resource, e.list)
		}
	}
	team.Places = addedTo(there, team.Places)
	return nil
}

// listed is an entry of a Tenant in the list of a place.
type listed struct {
	place, list, resource string
}

// listings returns where the lists of the tree have a Tenant.
func (p Platform) listings(dir, tenant string) (found []listed, err error) {
	for _, place := range p.places() {
		name := path.Join(p.listFolder(), place, "kustomization.yaml")
		resources, err := listIn(dir, name)
		if err != nil {
			return nil, err
		}
		for _, resource := range resources {
			if path.Base(resource) == tenant {
				found = append(found, listed{place, name, resource})
			}
		}
	}
	return found, nil
}

// fromTree uses the platform's repository around a file: its layout and, unless some are
// requested, the environments or clusters with the team. Without such a repository, it
// changes nothing.
func (r *Repository) fromTree(file string) error {
	dir, err := treeAround(file)
	if err != nil || dir == "" {
		return err
	}
	p, _, err := ReadSettings(dir)
	if err != nil {
		return err
	}
	if p, err = p.Complete(); err != nil {
		return err
	}
	if r.Layout != "" && r.Layout != p.Layout {
		return fmt.Errorf("--layout=%s: %s has the layout %s; leave the flag out", r.Layout, dir, p.Layout)
	}
	r.Layout = p.Layout
	var known []string
	for _, place := range p.places() {
		known = append(known, p.foldersFor(place)...)
	}
	for _, place := range r.Places {
		if !slices.Contains(known, place) && p.Layout != LayoutDemo {
			return fmt.Errorf("--place %s: %s has no such environment or cluster; use %s", place, dir, strings.Join(known, ", "))
		}
	}
	if len(r.Places) > 0 || p.Layout == LayoutDemo {
		return nil
	}
	entries, err := p.listings(dir, r.Tenant.Name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		r.Places = append(r.Places, p.foldersFor(e.place)...)
	}
	if len(r.Places) == 0 {
		return fmt.Errorf("no environment or cluster of %s has Tenant %s: run landwaiter platform scaffold %[1]s %[2]s first, or give --place",
			dir, r.Tenant.Name)
	}
	return nil
}

// foldersFor returns the folders that teams' repositories have for a place: a group has one for
// each of its clusters.
func (p Platform) foldersFor(place string) []string {
	if p.Layout != LayoutGroups {
		return []string{place}
	}
	var clusters []string
	for _, cluster := range p.Clusters {
		if path.Dir(cluster) == place {
			clusters = append(clusters, path.Base(cluster))
		}
	}
	return clusters
}

// StayWhereItIs adds the environments, or clusters, that an earlier run wrote into the team's
// repository.
func (r *Repository) StayWhereItIs(dir string) error {
	there, err := r.placesIn(dir, cmp.Or(r.Layout, LayoutFlux))
	if err != nil {
		return err
	}
	r.Places = addedTo(there, r.Places)
	return nil
}

// otherLayout returns the layout in which an earlier run wrote the team's repository, "" if there was
// none or it is the requested one.
func (r *Repository) otherLayout(dir string) (Layout, error) {
	own := cmp.Or(r.Layout, LayoutFlux)
	if there, err := r.placesIn(dir, own); err != nil || len(there) > 0 {
		return "", err
	}
	for _, layout := range []Layout{LayoutFlux, LayoutGroups, LayoutArc} {
		there, err := r.placesIn(dir, layout)
		if err != nil {
			return "", err
		}
		if layout != own && len(there) > 0 {
			return layout, nil
		}
	}
	return "", nil
}

// placesIn returns the environments, or clusters, that an earlier run wrote in a layout.
func (r *Repository) placesIn(dir string, layout Layout) (there []string, err error) {
	pattern, ok := map[Layout]string{LayoutFlux: "*/values.yaml", LayoutGroups: "clusters/*/kustomization.yaml",
		LayoutArc: path.Join("clusters/*", r.Tenant.Name, "kustomization.yaml")}[layout]
	if !ok {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the team's repository: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	names, err := fs.Glob(root.FS(), pattern)
	if err != nil {
		return nil, fmt.Errorf("look for the places that the team's repository has: %w", err)
	}
	for _, name := range names {
		text, err := readExisting(dir, name)
		if err != nil {
			return nil, err
		}
		if place := strings.TrimPrefix(name, "clusters/"); readStamp(text).by == r.by() {
			place, _, _ = strings.Cut(place, "/")
			there = append(there, place)
		}
	}
	return there, nil
}

// addedTo adds the requested places to the existing ones.
func addedTo(there, asked []string) []string {
	for _, place := range asked {
		if !slices.Contains(there, place) {
			there = append(there, place)
		}
	}
	return there
}

// places are the possible places of Tenants in a platform.
func (p Platform) places() []string {
	switch p.Layout {
	case LayoutFlux:
		return p.Environments
	case LayoutGroups:
		return slices.DeleteFunc(slices.Clone(p.Groups), func(group string) bool { return group == GroupOps })
	case LayoutArc:
		return p.Clusters
	case LayoutDemo:
	}
	return nil
}

// listFolder has a folder for each place, with its list.
func (p Platform) listFolder() string {
	if p.Layout == LayoutArc {
		return "clusters"
	}
	return "tenants"
}

// listIn reads the resources of a kustomization of dir, none if the file is missing. It returns a [RefusedError] if
// they cannot be read: an empty list would look as if the list had no team.
func listIn(dir, name string) ([]string, error) {
	text, err := readExisting(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	resources, err := resourcesOf(text)
	if err != nil {
		line, said := "", strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: ")
		if found := yamlLine.FindStringSubmatch(said); found != nil {
			line = ":" + found[1]
		}
		return nil,
			&RefusedError{fmt.Sprintf("%s%s: nothing was written, because the list cannot be read: %s; correct the file first", name, line, said)}
	}
	return resources, nil
}

// yamlLine matches the position of a YAML error.
var yamlLine = regexp.MustCompile(`\bline (\d+)`)

// resourcesOf only reads the resources of a kustomization.
func resourcesOf(text string) ([]string, error) {
	var list struct {
		Resources []string `yaml:"resources"`
	}
	err := yaml.Unmarshal([]byte(text), &list)
	return list.Resources, err
}

// KeepsHomeNamespace returns a [RefusedError] if an earlier run's files in dir that tree also has are for
// another home namespace, which no cluster accepts.
func (team Team) KeepsHomeNamespace(dir string, tree Tree) error {
	for _, file := range tree.Files {
		bindings, err := existing(dir, file.Path, "RoleBinding")
		if err != nil {
			return err
		}
		for _, binding := range bindings {
			// Only the home namespace has this binding.
			metadata := field(binding, "metadata")
			if metadata == nil || textOf(metadata, "name") != onboard.RoleReferenceReader {
				continue
			}
			if before := textOf(metadata, "namespace"); before != team.Tenant.Spec.HomeNamespace {
				return &RefusedError{
					fmt.Sprintf("%s: the home namespace of Tenant %s is %s, and cannot be changed to %s: set spec.homeNamespace back, or remove the "+
						"team and add it with another name",
						file.Path, team.Tenant.Name, before, team.Tenant.Spec.HomeNamespace)}
			}
		}
	}
	return nil
}
