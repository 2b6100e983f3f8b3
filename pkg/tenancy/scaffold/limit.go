package scaffold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// mayWrite reports whether a run may change an existing file.
func (t Tree) mayWrite(name string) bool {
	return len(t.Only) == 0 || slices.ContainsFunc(t.Only, func(part string) bool { return name == part || within(name, part) })
}

// owns reports whether a file is the command's although its first line does not say so.
func (t Tree) owns(name string) bool {
	return slices.ContainsFunc(t.Bare, func(pattern string) bool {
		matched, _ := path.Match(pattern, name)
		return matched
	})
}

// staysWithin returns a [RefusedError] if a run for some places would change a file that others use too.
func (t Tree) staysWithin(outcomes []Outcome, edited []EditedFile) error {
	var changed []string
	for _, o := range outcomes {
		if o.Result == Changed {
			changed = append(changed, o.Path)
		}
	}
	for _, file := range edited {
		changed = append(changed, file.Path)
	}
	for _, name := range changed {
		if !t.mayWrite(name) {
			return &RefusedError{
				fmt.Sprintf("nothing was written: %s is for other places too, and would change: leave --place out to change all places; or, if the "+
					"Tenant was edited or landwaiter upgraded, first run the command with nothing new and without --place", name)}
		}
	}
	return nil
}

// limit restricts a run with --place to those places, if others have the Tenant too. In the layouts with one base,
// the base's Tenant stays. It returns the Tenant with the request.
func (a Addition) limit(p Platform, team *Team) (wish *v1beta1.Tenant, err error) {
	wish = team.Tenant
	if len(team.Places) == 0 || wish == nil || p.Layout == LayoutDemo {
		return wish, nil
	}
	entries, err := p.listings(a.Dir, wish.Name)
	if err != nil {
		return nil, failedUnlessRefused(err)
	}
	others := slices.DeleteFunc(entries, func(e listed) bool { return slices.Contains(team.Places, e.place) })
	if len(others) == 0 {
		return wish, nil
	}
	for _, place := range team.Places {
		team.only = append(team.only, path.Join(p.listFolder(), place))
	}
	if p.Layout == LayoutArc {
		return wish, nil
	}
	files, err := tenantsIn(a.Dir, wish.Name)
	switch {
	case err != nil:
		return nil, &FailedError{err}
	case len(files) == 0:
		return nil,
			&RefusedError{fmt.Sprintf("nothing was written: the team is in %s too, and tenants/base/%s is for all places: leave --place out",
				others[0].place, wish.Name)}
	case a.Login.Kind != "":
		return nil,
			fmt.Errorf("--git-auth cannot be used with --place here: the login is for all places of the team, in tenants/base/%s; leave --place out",
				wish.Name)
	}
	team.From = files[0]
	team.Tenant, err = a.there(filepath.Join(a.Dir, filepath.FromSlash(files[0])))
	return wish, err
}

// ownFile patches a Tenant in one place. It is the user's: a run with --place adds to it.
func ownFile(team string) string { return team + "-own.yaml" }

// patchPlaces turns the request into a patch of the Tenant in the run's places.
func (a Addition) patchPlaces(p Platform, team *Team) error {
	if len(team.only) == 0 || p.Layout == LayoutArc {
		return nil
	}
	team.own = map[string]string{}
	for _, place := range team.Places {
		now := team.In[place]
		if now == nil {
			return &RefusedError{
				fmt.Sprintf("nothing was written: tenants/%s does not build, so it is unclear what it says about Tenant %s: run landwaiter "+
					"platform check %s", place, team.Tenant.Name, a.Dir)}
		}
		want, err := a.wanted(p, place, now)
		if err != nil {
			return err
		}
		changed, err := changesOf(now, want)
		if err != nil {
			return err
		}
		if len(changed) == 0 {
			continue
		}
		if team.own[place], err = a.patchFile(place, changed, want.Name); err != nil {
			return err
		}
		team.In[place] = want
	}
	return nil
}

// wanted adds the request to the Tenant of a place.
func (a Addition) wanted(p Platform, place string, now *v1beta1.Tenant) (*v1beta1.Tenant, error) {
	if !a.Whole {
		want, err := onboard.Combine(now, a.Team.Tenant)
		if err == nil {
			err = onboard.Restate(want, a.Settings)
		}
		return want, err
	}
	want := a.Team.Tenant.DeepCopy()
	if before := now.Spec.HomeNamespace; want.Spec.HomeNamespace != before {
		return nil,
			&RefusedError{fmt.Sprintf("nothing was written: the home namespace of Tenant %s is %s, not %s: it must be the same everywhere",
				want.Name, before, want.Spec.HomeNamespace)}
	}
	if r := want.Spec.Reconciler; r != nil && r.Source != nil && r.Path == "" {
		r.Path = Team{Tenant: want}.folderIn(p, place)
		if now.Spec.Reconciler != nil && r.Path == "" {
			r.Path = now.Spec.Reconciler.Path
		}
	}
	return want, nil
}

// changesOf is the patch that turns one Tenant into the other.
func changesOf(from, to *v1beta1.Tenant) (object, error) {
	before, err := onboard.Manifest(from)
	if err != nil {
		return nil, err
	}
	after, err := onboard.Manifest(to)
	if err != nil {
		return nil, err
	}
	return difference(before.Object, after.Object), nil
}

// patchFile adds a change to the patch that a place has in the file of [ownFile].
func (a Addition) patchFile(place string, changed object, tenant string) (string, error) {
	name := path.Join("tenants", place, ownFile(tenant))
	patch := noPatch(tenant)
	text, err := readExisting(a.Dir, name)
	if err == nil {
		documents, parsed := parse([]byte(text))
		if parsed != nil || len(documents) != 1 || textOf(documents[0], "kind") != v1beta1.KindTenant ||
			textAt(documents[0], "metadata", "name") != tenant || documents[0].Decode(&patch) != nil {
			return "",
				&RefusedError{fmt.Sprintf("nothing was written: %s is no patch of Tenant %s: write what you ask for into a patch of your own, or "+
					"move the file", name, tenant)}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return document("What differs here of the Tenant. Edit it, and run landwaiter platform scaffold DIR "+tenant+".", merged(patch, changed)),
		nil
}

// merged returns a merge patch that has the effect of two, one after the other.
func merged(first, second object) object {
	both := object{}
	for name, value := range first {
		both[name] = value
	}
	for name, value := range second {
		below, ok := value.(object)
		before, was := both[name].(object)
		if ok && was {
			value = merged(before, below)
		}
		both[name] = value
	}
	return both
}

// tookEffect returns a [RefusedError] if the tree has another patch that overrides a run's.
func (a Addition) tookEffect(p Platform, team Team, tree Tree) error {
	if len(team.own) == 0 {
		return nil
	}
	after := team
	if err := a.findPlaces(p, &after, tree); err != nil {
		return err
	}
	for place := range team.own {
		if own := after.In[place]; own == nil || !equality.Semantic.DeepEqual(own.Spec, team.In[place].Spec) {
			return &RefusedError{fmt.Sprintf("nothing was written: another patch in tenants/%s/kustomization.yaml wins over %s: edit that one",
				place, ownFile(team.Tenant.Name))}
		}
	}
	return nil
}

// bump is a command that sets another version of a shared application's chart in a tenant's file of values.
func (a App) bump(file, version string) (string, error) {
	source, release := a.release("", "")
	other := a
	other.Chart.Version = version
	otherSource, otherRelease := other.release("", "")
	of, changed := release, difference(release, otherRelease)
	if len(changed) == 0 {
		of, changed = source, difference(source, otherSource)
	}
	patch, err := json.Marshal(merged(object{"apiVersion": of["apiVersion"], "kind": of["kind"], "metadata": of["metadata"]}, changed))
	return fmt.Sprintf(`printf '%%s\n' --- '%s' >> %s`, patch, file), err
}
