package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Own is a run of platform scaffold that writes a team's own repository.
type Own struct {
	// Dir is the folder of the repository.
	Dir string
	// Repository is the request; PublicKey is read from SigningKey.
	Repository Repository
	// From is the file with the Tenant; empty if there is none. If it is in a platform's repository,
	// that determines the layout and the places.
	From string
	// SigningKey is a file with the public key that signs the team's images; empty omits the team's
	// rules.
	SigningKey string
	// Write configures how the tree is written.
	Write WriteOptions
	// Lint returns errors of Landwaiter's resources.
	Lint func(ctx context.Context, text string) ([]string, error)
}

// Run writes the repository. It refuses the platform's, a Tenant that could not be added, and a
// key or images that Landwaiter could not use. It returns the errors of [Addition.Run].
func (o Own) Run(ctx context.Context) ([]Outcome, error) {
	platform, found, err := ReadSettings(o.Dir)
	if err != nil {
		return nil, err
	}
	if found && platform.Layout != LayoutDemo {
		return nil, fmt.Errorf("%s is the platform's repository (it has %s): give the folder of the team's own, or leave out --own",
			o.Dir, SettingsFile)
	}
	r := o.Repository
	if r.Tenant == nil {
		return nil, errors.New("no Tenant is described")
	}
	if _, err := onboard.Complete(r.Tenant); err != nil {
		return nil, err
	}
	if r.Layout == "" && r.Tenant.Annotations[v1beta1.AnnotationForm] != "" {
		r.Layout = LayoutDemo // what its Kustomization applies, regardless of the Tenant's location
	} else if o.From != "" {
		if err := r.fromTree(o.From); err != nil {
			return nil, err
		}
	}
	if r.PublicKey, err = o.publicKey(); err != nil {
		return nil, err
	}
	if there, err := r.otherLayout(o.Dir); err != nil || there != "" {
		if err != nil {
			return nil, &FailedError{err}
		}
		return nil, fmt.Errorf("%s has the layout %s: give --layout=%s, or another folder", o.Dir, there, there)
	}
	asked := slices.Clone(o.Repository.Places)
	if err := r.StayWhereItIs(o.Dir); err != nil {
		return nil, &FailedError{err}
	}
	if len(asked) > 0 && len(r.Places) > len(asked) { // others exist, and stay
		r.Places, r.limited = asked, true
	}
	tree, err := NewRepository(r)
	if err != nil {
		return nil, err
	}
	if err := o.checkRules(ctx, tree); err != nil {
		return nil, err
	}
	outcomes, err := Write(o.Dir, tree, o.Write)
	return outcomes, failedUnlessRefused(err)
}

// publicKey reads the key. Without it, the team's environments would omit the repository's rules.
func (o Own) publicKey() (string, error) {
	if o.SigningKey != "" {
		key, err := os.ReadFile(o.SigningKey)
		if err != nil {
			return "", fmt.Errorf("read --signing-key: %w", err)
		}
		return string(key), nil
	}
	rules := filepath.Join(o.Dir, rulesFolder)
	if _, err := os.Lstat(rules); o.Repository.Images == "" && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s has the team's rules: give --signing-key and --images again, or delete the folder first", rules)
	}
	return "", nil
}

// rulesFolder has the team's rules, in its own repository.
const rulesFolder = "verification"

// checkRules refuses a key or images that Landwaiter could not use.
func (o Own) checkRules(ctx context.Context, tree Tree) error {
	var rules strings.Builder
	for _, file := range tree.Files {
		if path.Dir(file.Path) == rulesFolder && path.Base(file.Path) != "kustomization.yaml" {
			rules.WriteString("---\n" + file.Text)
		}
	}
	if rules.Len() == 0 {
		return nil
	}
	found, err := o.Lint(ctx, rules.String())
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("--signing-key and --images cannot be used: %s", strings.Join(found, "; "))
	}
	return err
}
