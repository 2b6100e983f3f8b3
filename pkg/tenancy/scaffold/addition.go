package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// FailedError says that a valid run failed because of a file, or the command sops.
type FailedError struct{ Err error }

// Error returns the text of Err.
func (e *FailedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FailedError) Unwrap() error { return e.Err }

// Addition is a run of platform scaffold that writes a team's part of the platform's repository.
type Addition struct {
	// Dir is the folder of the repository, which platform init wrote.
	Dir string
	// Team is the requested team. Its Tenant may lack fields of the one in the tree.
	Team Team
	// Whole says that the Tenant replaces the one in the tree. Otherwise it adds to that.
	Whole bool
	// Settings describe the Tenant if it adds to the one in the tree.
	Settings onboard.Settings
	// Login is how Flux reads the team's repository.
	Login LoginOptions
	// Write configures how the tree is written.
	Write WriteOptions
	// Read returns the Tenants in a file.
	Read func(file string) ([]*v1beta1.Tenant, error)
}

// Added is the result of an [Addition]. It contains what was created even if the run failed after
// that.
type Added struct {
	Files []Outcome
	// DeployKey is the public key to give to the Git host; empty if no key was created.
	DeployKey string
	// Plain is the Secret, as NAMESPACE/NAME, that was written in plain text; empty if none was.
	Plain string
	// Kept is the requested Secret that an earlier run created, and KeptIn its file; empty if
	// there is none.
	Kept, KeptIn string
	// Hints say what the team still needs.
	Hints []string
}

// Run writes the team's part. It refuses everything that it can before it creates a login. Errors
// are [EditedError], [RefusedError] and [FailedError]; all others are about invalid requests.
func (a Addition) Run(ctx context.Context) (Added, error) {
	platform, found, err := ReadSettings(a.Dir)
	if err != nil {
		return Added{}, err
	}
	if !found {
		return Added{}, fmt.Errorf("%s has no %s: run landwaiter platform init %s first, or give --own for the team's own repository", a.Dir,
			SettingsFile, a.Dir)
	}
	if platform, err = platform.Complete(); err != nil {
		return Added{}, err
	}
	team := a.Team
	if team.Tenant, team.From, err = a.tenant(); err != nil {
		return Added{}, err
	}
	wish, err := a.limit(platform, &team)
	if err != nil {
		return Added{}, err
	}
	if err := team.keepApp(a.Dir, platform); err != nil {
		return Added{}, failedUnlessRefused(err)
	}
	if err := team.StayWhereItIs(a.Dir, platform); err != nil {
		return Added{}, err
	}
	if err := team.keepSharedCharts(a.Dir); err != nil {
		return Added{}, failedUnlessRefused(err)
	}
	if err := team.followSource(a.Dir, platform); err != nil {
		return Added{}, err
	}
	for _, refuse := range []func() error{
		func() error { return a.keepsOthers(platform, team, wish) }, func() error { return team.keepsObjects(a.Dir, platform) },
	} {
		if err := refuse(); err != nil {
			return Added{}, failedUnlessRefused(err)
		}
	}
	login, err := a.Login.prepare(a.Dir, platform, &team)
	if err != nil {
		return Added{}, err
	}
	tree, err := a.placed(platform, &team)
	if err != nil {
		return Added{}, err
	}
	if err := team.KeepsHomeNamespace(a.Dir, tree); err != nil {
		return Added{}, failedUnlessRefused(err)
	}
	added := Added{Hints: team.hints(platform)}
	if login.kept != "" {
		added.Kept, added.KeptIn = secretOf(team), login.kept
	}
	if login.made != nil && !a.Write.DryRun {
		if _, err := Write(a.Dir, tree, WriteOptions{Force: a.Write.Force, DryRun: true}); err != nil {
			return added, failedUnlessRefused(err)
		}
		if team.Auth, added.DeployKey, err = login.make(ctx, a.Dir, platform); err != nil {
			return added, err
		}
		if login.Out != "" {
			added.Plain = secretOf(team)
		}
		if tree, err = NewTeam(platform, team); err != nil {
			return added, err
		}
	}
	added.Files, err = Write(a.Dir, tree, a.Write)
	return added, failedUnlessRefused(err)
}

// placed returns the tree with each place's version of the Tenant, which may differ there.
func (a Addition) placed(p Platform, team *Team) (Tree, error) {
	tree, err := NewTeam(p, *team)
	if err != nil {
		return Tree{}, err
	}
	if err := a.findPlaces(p, team, tree); err != nil {
		return Tree{}, failedUnlessRefused(err)
	}
	if err := a.patchPlaces(p, team); err != nil {
		return Tree{}, err
	}
	if err := a.keepsOthers(p, *team, team.Tenant); err != nil { // what an overlay says
		return Tree{}, failedUnlessRefused(err)
	}
	if tree, err = NewTeam(p, *team); err != nil {
		return Tree{}, err
	}
	return tree, failedUnlessRefused(a.tookEffect(p, *team, tree))
}

// secretOf names the Secret of a team's login.
func secretOf(team Team) string {
	return team.Tenant.Spec.HomeNamespace + "/" + team.Tenant.Spec.Reconciler.Source.SecretRef.Name
}

// failedUnlessRefused marks errors of files, as opposed to invalid requests.
func failedUnlessRefused(err error) error {
	var edited *EditedError
	var refused *RefusedError
	if err == nil || errors.As(err, &edited) || errors.As(err, &refused) {
		return err
	}
	return &FailedError{err}
}

// tenant adds the request to the Tenant in the tree, and returns its file; it is empty if the
// tree has none, or if the request replaces it.
func (a Addition) tenant() (tenant *v1beta1.Tenant, from string, err error) {
	asked := a.Team.Tenant
	if a.Whole || asked == nil {
		return asked, "", nil
	}
	files, err := tenantsIn(a.Dir, asked.Name)
	if err != nil || len(files) == 0 {
		return asked, "", err
	}
	tenant, err = a.combined(files[0])
	return tenant, files[0], err
}

// combined adds the request to the Tenant in a file of the tree.
func (a Addition) combined(file string) (*v1beta1.Tenant, error) {
	there, err := a.there(filepath.Join(a.Dir, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	combined, err := onboard.Combine(there, a.Team.Tenant)
	if err == nil {
		err = onboard.Restate(combined, a.Settings)
	}
	return combined, err
}

// tenantsIn returns the files that a Tenant has in the tree in dir.
func tenantsIn(dir, name string) (files []string, err error) {
	for _, pattern := range TenantFiles(name) {
		names, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, fmt.Errorf("look for Tenant %s in the tree: %w", name, err)
		}
		files = append(files, names...)
	}
	return files, nil
}

// there returns the Tenant with the name in a file of the tree.
func (a Addition) there(file string) (*v1beta1.Tenant, error) {
	found, err := a.Read(file)
	if err != nil {
		return nil, err
	}
	for _, tenant := range found {
		if tenant.Name == a.Team.Tenant.Name {
			return tenant, nil
		}
	}
	return nil, fmt.Errorf("%s has no Tenant %s: put it back, or take the team off the tree", file, a.Team.Tenant.Name)
}
