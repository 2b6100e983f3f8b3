//go:build nightly && !e2e

package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/content"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// live says that commands run.
const live = true

var variables = map[string]string{"cosign-v2": suite.CosignV2, "cosign-v3": suite.CosignV3, "oras": suite.Oras}

// run runs a command. It finds registries through [gate] and reaches nothing beyond.
func (c tool) run(t *testing.T, extra []string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(suite.Within(t), suite.MustTool(t, variables[c.name]), args...)
	cmd.Dir = c.home
	cmd.Env = append([]string{
		"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "COSIGN_PASSWORD=interop",
		// Go leaves loopback addresses out of proxying: those of the Sigstore servers.
		"HTTP_PROXY=" + gate().URL, "HTTPS_PROXY=" + gate().URL,
	}, extra...)
	passed.take()
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", c.name, args, output)
	done := deed{Command: c.spoken(extra, args), Manifests: passed.take(), Files: map[string]string{}}
	for _, pattern := range []string{"*.pub", "trusted_root.json"} {
		files, err := filepath.Glob(filepath.Join(c.home, pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if written[file] != string(text) {
				written[file], done.Files[filepath.Base(file)] = string(text), string(text)
			}
		}
	}
	record(t, done)
}

// written are the files of commands that are recorded, with their content.
var written = map[string]string{}

// passed are the manifests that commands have pushed.
var passed pushes

type pushes struct {
	mutex sync.Mutex
	all   []manifest
}

func (p *pushes) add(m manifest) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.all = append(p.all, m)
}

func (p *pushes) take() []manifest {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	defer func() { p.all = nil }()
	return p.all
}

// gate is a proxy that leads the names of registries to them and refuses everything else.
var gate = sync.OnceValue(func() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, _ := registries.Load(r.URL.Host)
		registry, _ := found.(*fixture.Registry)
		if registry == nil || r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		repository, reference, isManifest := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
		forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: registry.Address()})
		if isManifest && r.Method == http.MethodPut {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(text))
			m := manifest{Host: r.URL.Host, Repository: repository, Reference: reference, Type: r.Header.Get("Content-Type"), Text: string(text)}
			forward.ModifyResponse = func(answer *http.Response) error {
				if answer.StatusCode == http.StatusCreated {
					passed.add(m)
				}
				return nil
			}
		}
		forward.ServeHTTP(w, r)
	}))
})

// launch starts the servers of a Sigstore instance and an identity provider.
func launch(t *testing.T) *services {
	t.Helper()
	i := newIssuer(t)
	s := &services{provider: i.address, token: i.token}
	var err error
	s.Sigstore, err = cluster.StartSigstore(suite.Within(t), suite.MustTool(t, cluster.SigstoreBinaries), t.TempDir(),
		map[string]string{s.people(): "email", s.workflows(): "github-workflow"})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	record(t, deed{Command: "launch", Files: map[string]string{"provider": s.provider}})
	return s
}

// recorded are the tapes by their files.
var recorded = map[string]*tape{}

func record(t *testing.T, done deed) {
	t.Helper()
	on := recorded[tapeOf(t)]
	if on == nil {
		on = &tape{Tools: pinned(t), Commands: map[string][]deed{}, Blobs: map[digest.Digest]string{}}
		recorded[tapeOf(t)] = on
	}
	on.Commands[t.Name()] = append(on.Commands[t.Name()], done)
	for _, m := range done.Manifests {
		found, _ := registries.Load(m.Host)
		registry, _ := found.(*fixture.Registry)
		target, err := registry.Repository(t.Context(), m.Repository)
		require.NoError(t, err)
		for _, descriptor := range m.blobs(t) {
			text, err := content.FetchAll(t.Context(), target.Blobs(), descriptor)
			require.NoError(t, err)
			on.Blobs[descriptor.Digest] = string(text)
		}
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && os.Getenv("LANDWAITER_RECORD") != "" {
		for file, made := range recorded {
			text, err := json.MarshalIndent(made, "", "\t")
			if err == nil {
				err = os.WriteFile(file, append(text, '\n'), 0o644)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "evidence:", err)
				code = 1
			}
		}
	}
	os.Exit(code)
}
