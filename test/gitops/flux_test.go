//go:build nightly

package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// lane is for tests that run beside those of other lanes. Flux waits more than it computes, so
// two lanes take little more time than one.
type lane chan struct{}

// ofPlatforms has one test at a time: each moves a cluster to a tree of its own, or uses objects whose names
// pages give. ofTeams has two: each has teams of its own. ofLoners keeps tests that want a lane alone from waiting for
// each other.
var ofPlatforms, ofTeams, ofLoners = make(lane, 1), make(lane, 2), make(lane, 1)

// enter lets the test wait for its turn.
func (l lane) enter(t *testing.T) {
	t.Helper()
	t.Parallel()
	l.take(t)
}

// alone is enter for a test that changes what all teams have: no other one is in the lane.
func (l lane) alone(t *testing.T) {
	t.Helper()
	t.Parallel()
	ofLoners.take(t)
	for range cap(l) {
		l.take(t)
	}
}

func (l lane) take(t *testing.T) {
	t.Helper()
	l <- struct{}{}
	t.Cleanup(func() { <-l })
}

// running is a world with the locked-down controllers and a Git server.
type running struct {
	*world
	git *flux.GitServer
}

var controllers = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*running, error) {
	tools, err := suite.Tool(suite.FluxTools)
	if err != nil {
		return nil, err
	}
	w, err := start(ctx, e)
	if err != nil {
		return nil, err
	}
	git, err := flux.StartGit(context.Background(), e.Path("git"))
	if err != nil {
		return nil, err
	}
	e.OnStop(git.Close)
	trusted := e.Path("trusted.crt") // for public repositories, which need no Secret
	if err := os.WriteFile(trusted, git.CertificatePEM(), 0o600); err != nil {
		return nil, err
	}
	started, err := flux.Start(ctx, w.Cluster, flux.Options{Tools: tools, Dir: e.Dir, Env: []string{"SSL_CERT_FILE=" + trusted}})
	if err != nil {
		return nil, err
	}
	e.OnStop(started.Stop)
	return &running{world: w, git: git}, nil
})

// repository makes a repository with one commit, so that it has its branch.
func (r *running) repository(t *testing.T, name string, files map[string]string) *flux.Repository {
	t.Helper()
	made, err := r.git.Create(suite.Within(t), name)
	require.NoError(t, err)
	_, err = made.Commit(suite.Within(t), "begin", files)
	require.NoError(t, err)
	return made
}

// team is a Tenant with a repository that Flux applies.
type team struct {
	*running
	name       string
	repository *flux.Repository
}

// team onboards a team with a repository of its own, which only its own password opens.
func (r *running) team(t *testing.T, name string, args ...string) *team {
	t.Helper()
	made := &team{running: r, name: name, repository: r.repository(t, name, map[string]string{"kustomization.yaml": "resources: []\n"})}
	r.program.Must(t,
		append([]string{"tenant", "add", name, "--set", "reconciler.source.url=" + made.repository.URL(), "--set", "reconciler.source.secretRef.name=git"},
			args...)...)
	r.apply(t, made.repository.Secret(name, "git"))
	made.push(t, metav1.ConditionTrue, nil)
	return made
}

// push makes the repository those files, and waits until Flux has applied them or has
// refused to. It returns what Flux says.
func (m *team) push(t *testing.T, status metav1.ConditionStatus, files map[string]string) string {
	t.Helper()
	commit := m.commit(t, files)
	state, err := flux.Await(suite.Within(t), m.Cluster, flux.Kustomization(), m.name, m.name, commit, status)
	require.NoError(t, err)
	return state.Ready.Message
}

// commit pushes the files, with a kustomization that lists those of the root, and tells Flux.
func (m *team) commit(t *testing.T, files map[string]string) string {
	t.Helper()
	all := map[string]string{}
	maps.Copy(all, files)
	if all["kustomization.yaml"] == "" {
		var list strings.Builder
		for name := range files {
			if !strings.Contains(name, "/") {
				list.WriteString("- " + name + "\n")
			}
		}
		all["kustomization.yaml"] = "resources:\n" + list.String()
		if len(files) == 0 {
			all["kustomization.yaml"] = "resources: []\n"
		}
	}
	commit, err := m.repository.Commit(suite.Within(t), t.Name(), all)
	require.NoError(t, err)
	require.NoError(t, flux.Reconcile(suite.Within(t), m.Cluster, flux.GitRepository(), m.name, m.name))
	return commit
}

// refused waits until Flux says that it did not apply an object that it fetched, and why.
func (r *running) refused(t *testing.T, kind schema.GroupVersionKind, namespace, name, says string) string {
	t.Helper()
	var state flux.State
	suite.Eventually(t, func(ctx context.Context) (err error) {
		if state, err = flux.StateOf(ctx, r.Cluster, kind, namespace, name); err != nil {
			return err
		}
		if state.Ready.Status != metav1.ConditionFalse || !strings.Contains(state.Ready.Message, says) {
			return fmt.Errorf("%s %s/%s: Ready is %q, not refused with %q: %s", kind.Kind, namespace, name, state.Ready.Status, says, state.Ready.Message)
		}
		return nil
	})
	return state.Ready.Message
}

// applied waits until Flux has applied a commit, or any if none is given.
func (r *running) applied(t *testing.T, namespace, name, commit string) {
	t.Helper()
	_, err := flux.Await(suite.Within(t), r.Cluster, flux.Kustomization(), namespace, name, commit, metav1.ConditionTrue)
	require.NoError(t, err)
}

// gone waits until an object is not there.
func (r *running) gone(t *testing.T, apiVersion, kind, namespace, name string) {
	t.Helper()
	suite.Eventually(t, func(context.Context) error {
		if r.get(t, apiVersion, kind, namespace, name) != nil {
			return errors.New("it is still there")
		}
		return nil
	})
}

// source is a GitRepository with the Secret git.
func source(namespace, name, url string) *unstructured.Unstructured {
	return suite.Object("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: %s, name: %s}, spec: {interval: 1m, url: %q, ref: "+
		"{branch: %s}, secretRef: {name: git}}}", namespace, name, url, flux.Branch)
}
