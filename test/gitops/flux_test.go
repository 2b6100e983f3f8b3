//go:build flux

package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/flux"
)

// running is what the tests with real controllers share.
type running struct {
	*flux.Flux
	git *flux.GitServer
}

// fluxed is set once the first test has asked for it.
var fluxed *running

// controllers starts the locked-down controllers and the Git server, once.
func controllers(t *testing.T) *running {
	t.Helper()
	if fluxed != nil {
		return fluxed
	}
	tools, err := tool("LANDWAITER_FLUX_TOOLS")
	require.NoError(t, err)
	git, err := flux.StartGit(context.Background(), filepath.Join(w.dir, "git"))
	require.NoError(t, err)
	w.stops = append(w.stops, git.Close)
	started, err := flux.Run(within(t), w.Cluster, flux.Options{Tools: tools, Dir: w.dir})
	require.NoError(t, err)
	w.stops = append(w.stops, started.Stop)
	fluxed = &running{Flux: started, git: git}
	return fluxed
}

// repository makes a repository with one commit, so that it has its branch.
func (r *running) repository(t *testing.T, name string, files map[string]string) *flux.Repository {
	t.Helper()
	made, err := r.git.Create(within(t), name)
	require.NoError(t, err)
	_, err = made.Commit(within(t), "begin", files)
	require.NoError(t, err)
	return made
}

// team is a Tenant with a repository that Flux applies.
type team struct {
	name       string
	repository *flux.Repository
}

// team onboards a team with a repository of its own, which only its own password opens.
func (r *running) team(t *testing.T, name string, args ...string) *team {
	t.Helper()
	made := &team{name: name, repository: r.repository(t, name, map[string]string{"kustomization.yaml": "resources: []\n"})}
	must(t, append([]string{"tenant", "add", name, "--git-url", made.repository.URL(), "--git-secret", "git"}, args...)...)
	apply(t, made.repository.Secret(name, "git"))
	made.push(t, metav1.ConditionTrue, nil)
	return made
}

// push makes the repository those files, and waits until Flux has applied them or has
// refused to. It returns what Flux says.
func (m *team) push(t *testing.T, status metav1.ConditionStatus, files map[string]string) string {
	t.Helper()
	commit := m.commit(t, files)
	state, err := flux.Await(within(t), w.Cluster, flux.Kustomization(), m.name, m.name, commit, status)
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
	commit, err := m.repository.Commit(within(t), t.Name(), all)
	require.NoError(t, err)
	require.NoError(t, flux.Reconcile(within(t), w.Cluster, flux.GitRepository(), m.name, m.name))
	return commit
}

// refused waits until Flux says that it did not apply an object that it fetched, and why.
func refused(t *testing.T, kind schema.GroupVersionKind, namespace, name, says string) string {
	t.Helper()
	var state flux.State
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) (err error) {
		if state, err = flux.StateOf(ctx, w.Cluster, kind, namespace, name); err != nil {
			return err
		}
		if state.Ready.Status != metav1.ConditionFalse || !strings.Contains(state.Ready.Message, says) {
			return fmt.Errorf("%s %s/%s: Ready is %q, not refused with %q: %s", kind.Kind, namespace, name, state.Ready.Status, says, state.Ready.Message)
		}
		return nil
	}))
	return state.Ready.Message
}

// gone waits until an object is not there.
func gone(t *testing.T, apiVersion, kind, namespace, name string) {
	t.Helper()
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		if get(t, apiVersion, kind, namespace, name) != nil {
			return errors.New("it is still there")
		}
		return nil
	}))
}

// source is a GitRepository with the Secret git.
func source(namespace, name, url string) *unstructured.Unstructured {
	return of("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: %s, name: %s}, spec: {interval: 1m, url: %q, ref: {branch: %s}, secretRef: {name: git}}}", namespace, name, url, flux.Branch)
}

// cut splits a kind and a name.
func cut(text string) (kind, name string) {
	kind, name, _ = strings.Cut(text, "/")
	return kind, name
}
