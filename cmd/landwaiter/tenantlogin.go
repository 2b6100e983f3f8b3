package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

// Kinds of --git-auth.
const (
	authSSH   = "ssh"
	authToken = "token"
)

// defaultLogin is the Secret's name if the Tenant names none.
const defaultLogin = "git-auth"

// loginFlags say with what Flux reads the team's repository.
type loginFlags struct {
	kind, tokenFile, knownHosts, out, recipient string
	sops                                        string // path of the command
	kept                                        string // file of the login of an earlier run
}

func (f *loginFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "git-auth", "", "ssh or token: make the Secret that the team's repository is read with (empty: none)")
	flags.StringVar(&f.tokenFile, "git-token-file", "", "file with the token, or - for standard input (empty: none)")
	flags.StringVar(&f.knownHosts, "known-hosts", "", "file with the public keys of the Git host, as ssh-keyscan prints them (empty: none)")
	flags.StringVar(&f.out, "git-auth-out", "", "new file outside of the tree for the Secret in plain text (empty: none)")
	flags.StringVar(&f.recipient, "sops-age", "", "age recipient, which must be that of the tree (empty: that of the tree)")
}

// prepare checks everything about the login before anything is made, and names its Secret
// in the Tenant. It returns nil if there is no login to make: the encrypted one of an
// earlier run stays.
func (f *loginFlags) prepare(cmd *cobra.Command, repo string, platform scaffold.Platform, team *scaffold.Team) (*scaffold.Login, error) {
	if f.kind == "" {
		for flag, value := range map[string]string{"git-token-file": f.tokenFile, "known-hosts": f.knownHosts, "git-auth-out": f.out, "sops-age": f.recipient} {
			if value != "" {
				return nil, fmt.Errorf("--%s means nothing without --git-auth", flag)
			}
		}
		return nil, f.keep(repo, platform, team)
	}
	source, err := f.source(team.Tenant)
	if err != nil {
		return nil, err
	}
	if source.SecretRef == nil {
		source.SecretRef = &v1beta1.Reference{Name: defaultLogin}
	}
	switch {
	case f.recipient != "" && f.recipient != platform.SOPSAge:
		return nil, fmt.Errorf("--sops-age is not the recipient of the tree, which Flux decrypts for: run landwaiter platform init %s --set sopsAge=%s first", repo, f.recipient)
	case f.out == "" && platform.SOPSAge == "":
		return nil, errors.New("where to with the Secret? give --git-auth-out, a file outside of the tree, or make the tree with landwaiter platform init --set sopsAge=RECIPIENT")
	case f.out != "":
		if err := outside(repo, f.out); err != nil {
			return nil, err
		}
		return f.login(team, source.SecretRef.Name)
	}
	f.recipient = platform.SOPSAge
	if err := f.keep(repo, platform, team); err != nil {
		return nil, err
	}
	if team.Auth != "" {
		program.Say(cmd.ErrOrStderr(), "Secret %s/%s of an earlier run was kept; to make another, delete %s and run this again", team.Tenant.Spec.HomeNamespace, source.SecretRef.Name, f.kept)
		return nil, nil
	}
	if f.sops, err = scaffold.FindSOPS(); err != nil {
		return nil, program.Failed(err)
	}
	team.Auth = "# Encrypted when it is written.\n"
	return f.login(team, source.SecretRef.Name)
}

// source is the repository that the login is for.
func (f *loginFlags) source(tenant *v1beta1.Tenant) (*v1beta1.TenantSource, error) {
	if tenant.Spec.Reconciler == nil || tenant.Spec.Reconciler.Source == nil {
		return nil, errors.New("--git-auth needs --set reconciler.source.url=URL: the repository that the login is for")
	}
	source := tenant.Spec.Reconciler.Source
	switch {
	case f.kind == authSSH && !strings.HasPrefix(source.URL, "ssh://"):
		return nil, fmt.Errorf("--git-auth=ssh needs a reconciler.source.url that begins with ssh://, not %s", source.URL)
	case f.kind == authSSH && f.knownHosts == "":
		return nil, errors.New("--git-auth=ssh needs --known-hosts: a file with the public keys of the Git host, as ssh-keyscan prints them")
	case f.kind == authToken && !strings.HasPrefix(source.URL, "https://"):
		return nil, fmt.Errorf("--git-auth=token needs a reconciler.source.url that begins with https://, not %s", source.URL)
	case f.kind == authToken && f.tokenFile == "":
		return nil, errors.New("--git-auth=token needs --git-token-file: a file with the token, or - for standard input")
	case f.kind != authSSH && f.kind != authToken:
		return nil, fmt.Errorf("--git-auth is %q, it must be ssh or token", f.kind)
	}
	return source, nil
}

// keep leaves the encrypted login of an earlier run in the tree.
func (f *loginFlags) keep(repo string, platform scaffold.Platform, team *scaffold.Team) error {
	trial := *team
	trial.Auth = "# Found when it is read.\n"
	tree, err := scaffold.NewTeam(platform, trial)
	if err != nil {
		return err
	}
	for _, file := range tree.Files {
		if filepath.Base(file.Path) != scaffold.AuthFile {
			continue
		}
		text, err := scaffold.ReadEncrypted(repo, file.Path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return program.Failed(fmt.Errorf("read the login of an earlier run: %w", err))
		}
		team.Auth, f.kept = text, filepath.Join(repo, filepath.FromSlash(file.Path))
	}
	if r := team.Tenant.Spec.Reconciler; team.Auth != "" && r != nil && r.Source != nil && r.Source.SecretRef == nil {
		r.Source.SecretRef = &v1beta1.Reference{Name: defaultLogin}
	}
	return nil
}

// login reads what the login is made of. It never comes from the command line, which other
// programs can see.
func (f *loginFlags) login(team *scaffold.Team, name string) (*scaffold.Login, error) {
	login := &scaffold.Login{Namespace: team.Tenant.Spec.HomeNamespace, Name: name}
	var err error
	switch {
	case f.kind == authSSH:
		login.KnownHosts, err = os.ReadFile(f.knownHosts)
	case f.tokenFile == "-":
		login.Token, err = io.ReadAll(io.LimitReader(os.Stdin, 64<<10))
	default:
		login.Token, err = os.ReadFile(f.tokenFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read the login: %w", err)
	}
	if f.kind == authSSH {
		err = scaffold.KnowsHost(f.knownHosts, team.Tenant.Spec.Reconciler.Source.URL)
	}
	return login, err
}

// make makes the Secret, and writes it outside of the tree or returns it encrypted.
func (f *loginFlags) make(cmd *cobra.Command, login scaffold.Login, repo string) (string, error) {
	secret, key, err := scaffold.NewLogin(login)
	if err != nil {
		return "", err
	}
	encrypted := ""
	if f.out == "" {
		if encrypted, err = scaffold.Encrypt(cmd.Context(), f.sops, secret, f.recipient); err != nil {
			return "", program.Failed(err)
		}
	} else if err := f.save(repo, secret); err != nil {
		return "", program.Failed(err)
	}
	if key != "" {
		program.Say(cmd.ErrOrStderr(), "Add this deploy key to the team's repository, for reading only:")
		program.Say(cmd.ErrOrStderr(), "%s", key)
	}
	if f.out != "" {
		program.Say(cmd.ErrOrStderr(), "The Secret %s/%s is in plain text in %s: kubectl apply -f it, and delete the file", login.Namespace, login.Name, f.out)
	}
	return encrypted, nil
}

// save writes the Secret for its owner alone, and replaces nothing.
func (f *loginFlags) save(repo string, secret []byte) error {
	if err := outside(repo, f.out); err != nil {
		return err
	}
	file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write --git-auth-out, which must not exist: %w", err)
	}
	_, err = file.Write(secret)
	return errors.Join(err, file.Close())
}

// outside refuses a file in the tree, by whatever name.
func outside(repo, file string) error {
	tree, err := resolved(repo)
	if err != nil {
		return err
	}
	folder, err := resolved(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("--git-auth-out: %w", err)
	}
	if folder == tree || strings.HasPrefix(folder, tree+string(filepath.Separator)) {
		return fmt.Errorf("--git-auth-out %s is in the tree, and the Secret is in plain text: name a file elsewhere", file)
	}
	return nil
}

func resolved(name string) (string, error) {
	found, err := filepath.Abs(name)
	if err == nil {
		found, err = filepath.EvalSymlinks(found)
	}
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", name, err)
	}
	return found, nil
}
