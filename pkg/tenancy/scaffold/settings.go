package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Told are the settings of one run of platform init. The zero value starts from the previous
// run's settings, or from the defaults.
type Told struct {
	// Layout of the tree; an existing tree keeps its own.
	Layout Layout
	// File has the content of a [SettingsFile], which replaces the previous run's settings; nil
	// if there is none.
	File []byte
	// Settings are fields of a [Platform], which add to that.
	Settings onboard.Settings
}

// Prepare returns the platform of the tree in dir, or of a new one, with this run's settings.
// It refuses to change the tree's layout, and a folder inside another tree.
func Prepare(dir string, told Told) (Platform, error) {
	p, found, err := ReadSettings(dir)
	if err != nil {
		return p, err
	}
	if !found {
		if err := outsideOfTrees(dir); err != nil {
			return p, err
		}
	}
	had := p.Layout
	if told.File != nil {
		p = Platform{}
		if err := yaml.UnmarshalStrict(told.File, &p); err != nil {
			return p, fmt.Errorf("read --filename: %w", err)
		}
		p.Layout = cmp.Or(p.Layout, had)
	}
	asked := Platform{ExemptNamespaces: p.ExemptNamespaces, InfrastructureNamespaces: p.InfrastructureNamespaces}
	if err := onboard.Set(&asked, told.Settings); err != nil {
		return p, err
	}
	if told.Layout != "" && asked.Layout != "" && asked.Layout != told.Layout {
		return p, fmt.Errorf("--layout=%s and %s layout=%s are two layouts for one tree: use one", told.Layout, onboard.SetFlag, asked.Layout)
	}
	p.Layout = cmp.Or(told.Layout, asked.Layout, p.Layout)
	if found && p.Layout != had {
		return p,
			fmt.Errorf("%s has the layout %s: give --layout=%s a folder of its own, because this one has clusters and teams that the other layout "+
				"does not have", dir, had, p.Layout)
	}
	// These lists grow, from the default if they are not set.
	if p.ExemptNamespaces == nil && asked.ExemptNamespaces != nil {
		p.ExemptNamespaces = p.ownNamespaces()
	}
	if p.InfrastructureNamespaces == nil && asked.InfrastructureNamespaces != nil {
		p.InfrastructureNamespaces = p.ownNamespaces()
	}
	if err := onboard.Set(&p, told.Settings); err != nil {
		return p, err
	}
	if err := p.misspelt(told.Settings.Near); err != nil {
		return p, err
	}
	if err := p.byOperator(dir); err != nil {
		return p, err
	}
	if complete, err := p.Complete(); err == nil { // [NewPlatform] reports invalid values
		complete.knowsFlux(func(name string) []byte {
			text, _ := readExisting(dir, name) // an unreadable one counts as new
			return []byte(text)
		})
		p.oldFlux = complete.oldFlux
	}
	if p.hasManifests, err = hasFolder(dir, "kustomizations"); err != nil || found {
		return p, err
	}
	return p, p.knowsFolders(dir)
}

// ReadSettings reads the settings of an earlier platform init in a folder; found is false
// without any.
func ReadSettings(dir string) (p Platform, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, SettingsFile)) //nolint:gosec // the folder is the user's
	if errors.Is(err, fs.ErrNotExist) {
		return Platform{}, false, nil
	}
	if err != nil {
		return Platform{}, false, fmt.Errorf("read the settings of the tree: %w", err)
	}
	p, err = ReadPlatform(text)
	return p, true, err
}

// outsideOfTrees refuses a folder inside a platform's repository.
func outsideOfTrees(dir string) error {
	parent, err := treeAround(dir)
	if err == nil && parent != "" {
		err = fmt.Errorf("%s is inside of %s, which is a platform's repository (it has %s): give that folder, or one outside of it", dir,
			parent, SettingsFile)
	}
	return err
}

// treeAround returns the platform's repository around a file or folder, "" if there is none.
func treeAround(name string) (string, error) {
	folder, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("find the folder %s: %w", name, err)
	}
	for parent := filepath.Dir(folder); parent != folder; folder, parent = parent, filepath.Dir(parent) {
		if _, err := os.Lstat(filepath.Join(parent, SettingsFile)); err == nil {
			return parent, nil
		}
	}
	return "", nil
}
