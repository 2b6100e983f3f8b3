package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Kinds of a login.
const (
	loginSSH   = "ssh"
	loginToken = "token"
)

const (
	// defaultLogin is the Secret's name if the Tenant names none.
	defaultLogin = "git-auth"
	// maxLogin bounds a file of known hosts, or with a token.
	maxLogin = 64 << 10
)

// LoginOptions configure how Flux reads the team's repository. The zero value creates no login,
// and keeps the encrypted one of an earlier run.
type LoginOptions struct {
	// Kind is ssh for a new key, or token; empty creates no login.
	Kind string
	// File has the public keys of the Git host, as ssh-keyscan prints them, or TOKEN or USER:TOKEN; - is
	// Stdin. A token never comes from the command line, which other programs can see.
	File string
	// Out is a new file outside of the tree for the Secret in plain text; empty encrypts it
	// into the tree.
	Out string
	// Stdin is read if File is -.
	Stdin io.Reader
}

// ParseLogin reads a value of --git-auth: ssh=KNOWN_HOSTS or token=FILE.
func ParseLogin(value string) (LoginOptions, error) {
	kind, file, _ := strings.Cut(value, "=")
	switch {
	case kind != loginSSH && kind != loginToken:
		return LoginOptions{}, fmt.Errorf("--git-auth is %q, it must be ssh=KNOWN_HOSTS or token=FILE", value)
	case file == "" && kind == loginSSH:
		return LoginOptions{},
			errors.New("--git-auth=ssh needs a file with the public keys of the Git host, as ssh-keyscan prints them: --git-auth=ssh=KNOWN_HOSTS")
	case file == "":
		return LoginOptions{},
			errors.New("--git-auth=token needs a file with the token, or with USER:TOKEN, or - for standard input: --git-auth=token=FILE")
	}
	return LoginOptions{Kind: kind, File: file}, nil
}

// login is the login that a run creates or keeps.
type login struct {
	LoginOptions
	made *Login // nil if there is none to create: an earlier run's stays
	sops string // path of the command
	kept string // file of an earlier run's login, if it replaces the requested one
}

// prepare checks the whole login before anything is created, and names its Secret in the Tenant.
func (o LoginOptions) prepare(dir string, p Platform, team *Team) (login, error) {
	l := login{LoginOptions: o}
	if o.Kind == "" {
		if o.Out != "" {
			return l, errors.New("--git-auth-out means nothing without --git-auth")
		}
		_, err := keepLogin(dir, p, team)
		return l, err
	}
	source, err := o.source(team.Tenant)
	if err != nil {
		return l, err
	}
	unnamed := source.SecretRef == nil
	if unnamed {
		source.SecretRef = &v1beta1.Reference{Name: defaultLogin}
	}
	switch {
	case o.Out == "" && p.sops() == (sopsKey{}):
		return l,
			errors.New("where to with the Secret? give --git-auth-out, a file outside of the tree, or make the tree with landwaiter platform init " +
				"--set sopsAge=RECIPIENT (or sopsPGP, sopsKMS)")
	case o.Out != "":
		if err := outside(dir, o.Out); err != nil {
			return l, err
		}
		l.made, err = o.read(team, source.SecretRef.Name)
		return l, err
	}
	kept, err := keepLogin(dir, p, team)
	if err != nil {
		return l, err
	}
	if team.Auth != "" {
		l.kept = kept
		if unnamed {
			source.SecretRef.Name = secretNamed(team.Auth)
		}
		return l, nil
	}
	if l.sops, err = FindSOPS(); err != nil {
		return l, &FailedError{err}
	}
	team.Auth = "# Encrypted when it is written.\n"
	l.made, err = o.read(team, source.SecretRef.Name)
	return l, err
}

// source is the repository of the login.
func (o LoginOptions) source(tenant *v1beta1.Tenant) (*v1beta1.TenantSource, error) {
	if tenant.Spec.Reconciler == nil || tenant.Spec.Reconciler.Source == nil {
		return nil, errors.New("--git-auth needs --set reconciler.source.url=URL: the repository that the login is for")
	}
	source, scheme := tenant.Spec.Reconciler.Source, "ssh://"
	if o.Kind == loginToken {
		scheme = "https://"
	}
	if !strings.HasPrefix(source.URL, scheme) {
		return nil, fmt.Errorf("--git-auth=%s needs a reconciler.source.url that begins with %s, not %s", o.Kind, scheme, source.URL)
	}
	return source, nil
}

// keepLogin leaves the encrypted login of an earlier run in the tree, and returns its file.
func keepLogin(dir string, p Platform, team *Team) (kept string, err error) {
	trial := *team
	trial.Auth = "# Found when it is read.\n"
	tree, err := NewTeam(p, trial)
	if err != nil {
		return "", err
	}
	for _, file := range tree.Files {
		if filepath.Base(file.Path) != AuthFile {
			continue
		}
		text, err := ReadEncrypted(dir, file.Path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", &FailedError{fmt.Errorf("read the login of an earlier run: %w", err)}
		}
		team.Auth, kept = text, filepath.Join(dir, filepath.FromSlash(file.Path))
	}
	if r := team.Tenant.Spec.Reconciler; team.Auth != "" && r != nil && r.Source != nil && r.Source.SecretRef == nil {
		r.Source.SecretRef = &v1beta1.Reference{Name: secretNamed(team.Auth)}
	}
	return kept, nil
}

// secretNamed returns the name of an encrypted Secret.
func secretNamed(text string) string {
	documents, err := parse([]byte(text))
	if err != nil || len(documents) != 1 || field(documents[0], "metadata") == nil {
		return defaultLogin
	}
	return cmp.Or(textOf(field(documents[0], "metadata"), "name"), defaultLogin)
}

// read reads the inputs of the login.
func (o LoginOptions) read(team *Team, name string) (*Login, error) {
	made := &Login{Namespace: team.Tenant.Spec.HomeNamespace, Name: name}
	content, err := o.content()
	if err != nil {
		return nil, fmt.Errorf("read the login: %w", err)
	}
	if o.Kind == loginToken {
		made.Token = content
		return made, nil
	}
	if parsed, err := url.Parse(team.Tenant.Spec.Reconciler.Source.URL); err == nil { // else KnowsHost says so
		made.Host = parsed.Hostname()
	}
	made.KnownHosts = content
	return made, KnowsHost(o.File, team.Tenant.Spec.Reconciler.Source.URL)
}

func (o LoginOptions) content() ([]byte, error) {
	from := o.Stdin
	if o.File != "-" || o.Kind != loginToken {
		file, err := os.Open(o.File)
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the file
		}
		defer func() { _ = file.Close() }() // nothing was written
		from = file
	}
	content, err := io.ReadAll(io.LimitReader(from, maxLogin+1))
	if err == nil && len(content) > maxLogin {
		err = fmt.Errorf("%s has more than %d bytes", o.File, maxLogin)
	}
	return content, err
}

// make creates the Secret, and writes it outside of the tree or returns it encrypted. deployKey
// is the public key, which a token does not have.
func (l login) make(ctx context.Context, dir string, p Platform) (encrypted, deployKey string, err error) {
	secret, deployKey, err := NewLogin(*l.made)
	if err != nil {
		return "", "", err
	}
	if l.Out == "" {
		encrypted, err = p.Encrypt(ctx, l.sops, secret)
	} else {
		err = l.save(dir, secret)
	}
	if err != nil {
		return "", "", &FailedError{err}
	}
	return encrypted, deployKey, nil
}

// save writes the Secret so that only its owner can read it. It never overwrites a file.
func (l login) save(dir string, secret []byte) error {
	if err := outside(dir, l.Out); err != nil {
		return err
	}
	file, err := os.OpenFile(l.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write --git-auth-out, which must not exist: %w", err)
	}
	_, err = file.Write(secret)
	return errors.Join(err, file.Close())
}

// outside refuses a file in the tree, under any name.
func outside(dir, file string) error {
	tree, err := resolved(dir)
	if err != nil {
		return err
	}
	for parent := tree; parent != filepath.Dir(parent); parent = filepath.Dir(parent) {
		if _, err := os.Lstat(filepath.Join(parent, ".git")); err == nil {
			tree = parent // everything that Git may add
			break
		}
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
