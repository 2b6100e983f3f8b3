package flux

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Branch is the only branch of every repository.
const Branch = "main"

// GitServer serves Git repositories over HTTPS on loopback with git's own server program.
// Each repository has a password of its own, without which nothing can be read.
type GitServer struct {
	dir       string
	authority *fixture.Authority
	listener  net.Listener
	server    *http.Server
	program   http.Handler

	mu        sync.Mutex
	passwords map[string]string // by the name of the repository
	public    map[string]bool   // by the name of the repository
}

// StartGit starts a server that keeps its repositories in a folder.
func StartGit(ctx context.Context, dir string) (*GitServer, error) {
	backend, err := backend(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := fixture.NewAuthority("git")
	if err != nil {
		return nil, err
	}
	serving, err := authority.IssueServer("127.0.0.1")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make a folder for repositories: %w", err)
	}
	g := &GitServer{dir: dir, authority: authority, passwords: map[string]string{}, public: map[string]bool{}}
	g.program = &cgi.Handler{Path: backend, Stderr: io.Discard, InheritEnv: []string{"PATH"},
		Env: append(isolated(), "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1")}
	if err := os.WriteFile(g.CAFile(), authority.CertificatePEM, 0o600); err != nil {
		return nil, fmt.Errorf("write the CA of the Git server: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "server.crt"), serving.CertificatePEM, 0o600); err != nil {
		return nil, fmt.Errorf("write the certificate of the Git server: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "server.key"), serving.KeyPEM, 0o600); err != nil {
		return nil, fmt.Errorf("write the key of the Git server: %w", err)
	}
	if g.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen for Git: %w", err)
	}
	g.server = &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: g.guard(g.program)}
	go func() {
		_ = g.server.ServeTLS(g.listener, filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"))
	}() // it ends when the server is closed
	return g, nil
}

// backend returns the path of git's CGI program.
func backend(ctx context.Context) (string, error) {
	folder, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return "", fmt.Errorf("find git: %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(folder)), "git-http-backend")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find git's server program (Debian: apt-get install git): %w", err)
	}
	return path, nil
}

// Unguarded serves every repository to anybody, for what needs a server without a password.
func (g *GitServer) Unguarded() http.Handler { return g.program }

// CertificatePEM is the CA of the server.
func (g *GitServer) CertificatePEM() []byte { return g.authority.CertificatePEM }

// URL is the server's, with a slash at its end.
func (g *GitServer) URL() string { return "https://" + g.listener.Addr().String() + "/" }

// guard asks for the password of the repository, unless a public one is read.
func (g *GitServer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		// As on public hosts, a URL may leave out .git; git's program accepts both.
		name, _, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
		name = strings.TrimSuffix(name, ".git")
		g.mu.Lock()
		want, public := g.passwords[name], g.public[name]
		g.mu.Unlock()
		if public && !strings.Contains(request.URL.Path+"?"+request.URL.RawQuery, "git-receive-pack") {
			next.ServeHTTP(w, request)
			return
		}
		user, password, _ := request.BasicAuth()
		// A token counts anyone who is named beside it, as at other Git hosts.
		if want == "" || user != name && user != "git" || subtle.ConstantTimeCompare([]byte(password), []byte(want)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "no such repository, or not with this password", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, request)
	})
}

// Close ends the server.
func (g *GitServer) Close() { _ = g.server.Close() } // its connections end with it

// CAFile is the file with the CA of the server's certificate.
func (g *GitServer) CAFile() string { return filepath.Join(g.dir, "ca.crt") }

// isolated is the environment of git without the settings of whoever runs it.
func isolated() []string {
	return []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=team", "GIT_AUTHOR_EMAIL=team@example.com",
		"GIT_COMMITTER_NAME=team", "GIT_COMMITTER_EMAIL=team@example.com"}
}

// Repository is a repository of a [GitServer], with a working copy.
type Repository struct {
	// Name is that of the repository and of its only user.
	Name string
	// Dir is the working copy.
	Dir string
	// Password is the one with which the repository can be read and written.
	Password string

	server *GitServer
}

// Create makes an empty repository, and its working copy.
func (g *GitServer) Create(ctx context.Context, name string) (*Repository, error) {
	return g.Adopt(ctx, name, filepath.Join(g.dir, "work", name))
}

// Publish makes a folder the working copy of a new repository that everybody may read, and
// pushes what the folder has.
func (g *GitServer) Publish(ctx context.Context, name, dir string) (*Repository, error) {
	r, err := g.Adopt(ctx, name, dir)
	if err != nil {
		return nil, err
	}
	if _, err := r.Push(ctx, "begin"); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.public[name] = true
	return r, nil
}

// Adopt makes a folder, which may have files, the working copy of a new and empty repository.
func (g *GitServer) Adopt(ctx context.Context, name, dir string) (*Repository, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make a password: %w", err)
	}
	r := &Repository{Name: name, Dir: dir, Password: hex.EncodeToString(random), server: g}
	bare := filepath.Join(g.dir, name+".git")
	if err := os.MkdirAll(r.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("make a working copy: %w", err)
	}
	for _, step := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=" + Branch, bare}, {"-C", bare, "config", "http.receivepack", "true"},
		{"init", "--quiet", "--initial-branch=" + Branch, r.Dir}, {"-C", r.Dir, "remote", "add", "origin", r.authenticated()},
		{"-C", r.Dir, "config", "http.sslCAInfo", g.CAFile()},
	} {
		if _, err := run(ctx, step...); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	g.passwords[name] = r.Password
	g.mu.Unlock()
	return r, nil
}

// URL is what Flux fetches from, without a password.
func (r *Repository) URL() string {
	return r.server.URL() + r.Name + ".git"
}

func (r *Repository) authenticated() string {
	return strings.Replace(r.URL(), "https://", "https://"+r.Name+":"+r.Password+"@", 1)
}

// Secret returns the Secret with which Flux reads the repository.
func (r *Repository) Secret(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"stringData": map[string]any{"username": r.Name, "password": r.Password, "ca.crt": string(r.server.authority.CertificatePEM)}}}
}

// Commit makes the files of the working copy those that are given, by their paths, commits
// them and pushes. It returns the commit.
func (r *Repository) Commit(ctx context.Context, message string, files map[string]string) (string, error) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return "", fmt.Errorf("read the working copy: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == ".git" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.Dir, entry.Name())); err != nil {
			return "", fmt.Errorf("empty the working copy: %w", err)
		}
	}
	for path, content := range files {
		path = filepath.Join(r.Dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return "", fmt.Errorf("write the working copy: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("write the working copy: %w", err)
		}
	}
	return r.Push(ctx, message)
}

// Push commits whatever the working copy has, pushes it and returns the commit.
func (r *Repository) Push(ctx context.Context, message string) (string, error) {
	for _, step := range [][]string{{"add", "--all"}, {"commit", "--quiet", "--allow-empty", "--message", message}, {"push", "--quiet", "origin", Branch}} {
		if _, err := run(ctx, append([]string{"-C", r.Dir}, step...)...); err != nil {
			return "", err
		}
	}
	return r.Head(ctx)
}

// Head returns the commit of the working copy.
func (r *Repository) Head(ctx context.Context) (string, error) {
	return run(ctx, "-C", r.Dir, "rev-parse", "HEAD")
}

// run runs git and returns what it prints.
func run(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "git", args...)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, isolated()...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", errors.Join(fmt.Errorf("git %s: %w", strings.Join(args, " "), err), errors.New(strings.TrimSpace(stderr.String())))
	}
	return strings.TrimSpace(stdout.String()), nil
}
