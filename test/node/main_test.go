//go:build nightly && linux

// Package node_test compares what the product says of an image with what a real kubelet does with it.
package node_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/node"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var tests = suite.New("node")

func TestMain(m *testing.M) { os.Exit(tests.Run(m)) }

// machine is a node of a cluster without Gatekeeper: what admission lets through is asked elsewhere.
type machine struct {
	*node.Node
	*cluster.Cluster
	mirror *mirror
}

var theMachine = suite.Once(tests, func(ctx context.Context, e *suite.Env) (*machine, error) {
	c, err := e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true})
	if err != nil {
		return nil, err
	}
	// Paths of sockets are short.
	dir, err := os.MkdirTemp("", "lw-node-")
	if err != nil {
		return nil, err
	}
	e.OnStop(func() { _ = os.RemoveAll(dir) }) // a folder for temporary files
	kubelet, err := suite.Tool(suite.Kubelet)
	if err != nil {
		return nil, err
	}
	m := &machine{Cluster: c, mirror: newMirror()}
	e.OnStop(m.mirror.Close)
	m.Node, err = node.Start(ctx, c, node.Options{Kubelet: kubelet, Dir: dir, Name: "node-1", Mirror: m.mirror.Listener.Addr().String()})
	if err != nil {
		return nil, err
	}
	e.OnStop(m.Node.Stop)
	return m, nil
})

// mirror is all registries in one, and remembers the manifests that it was asked for.
type mirror struct {
	*httptest.Server

	mu    sync.Mutex
	asked []string // as host/repository:tag or host/repository@digest
	names []string // of users who asked for a manifest
	allow guard
}

// guard lets a request pass, or answers it, and says whose it is.
type guard func(w http.ResponseWriter, r *http.Request) (user string, ok bool)

func newMirror() *mirror {
	m := &mirror{}
	all := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := r.URL.Query().Get("ns"); host != "" {
			rest := strings.TrimPrefix(r.URL.Path, "/v2/")
			if repository, reference, found := strings.Cut(rest, "/manifests/"); found {
				separator := ":"
				if strings.Contains(reference, ":") {
					separator = "@"
				}
				m.mu.Lock()
				m.asked = append(m.asked, host+"/"+repository+separator+reference)
				allow := m.allow
				m.mu.Unlock()
				if allow != nil {
					user, ok := allow(w, r)
					m.mu.Lock()
					m.names = append(m.names, user)
					m.mu.Unlock()
					if !ok {
						return
					}
				}
			}
			r.URL.Path = "/v2/" + folderOf(host) + "/" + rest
		}
		all.ServeHTTP(w, r)
	}))
	return m
}

// folderOf is where the mirror keeps what a registry has.
func folderOf(host string) string {
	return strings.NewReplacer(":", "_").Replace(strings.ToLower(host))
}

// take returns what the mirror was asked for since the last call, each once.
func (m *mirror) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := slices.Compact(slices.Clone(m.asked))
	m.asked, m.names = nil, nil
	return asked
}

// guard has a function decide about requests for manifests.
func (m *mirror) guard(allow guard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allow = allow
}

// users returns who asked for manifests since the last call of take, each once in a row.
func (m *mirror) users() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Compact(slices.DeleteFunc(slices.Clone(m.names), func(user string) bool { return user == "" }))
}

// push puts an image into the registry of a host.
func (m *mirror) push(t *testing.T, host, repository, tag string, img v1.Image) {
	t.Helper()
	called, err := name.NewTag(fmt.Sprintf("%s/%s/%s:%s", m.Listener.Addr(), folderOf(host), repository, tag), name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(called, img))
}

// outcome is what became of a pod.
type outcome struct {
	refused string // by the API server
	imageID string // of a container that runs
	waiting string // the reason why it does not
	message string
}

// start makes a pod and waits until the kubelet has started it, or says why it does not.
func (m *machine) start(t *testing.T, pod *corev1.Pod) (o outcome) {
	t.Helper()
	if err := m.Client.Create(t.Context(), pod); err != nil {
		return outcome{refused: err.Error()}
	}
	defer func() {
		require.NoError(t, m.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	}()
	suite.Eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, status := range pod.Status.ContainerStatuses {
			switch {
			case status.State.Running != nil:
				o.imageID = status.ImageID
				return nil
			case status.State.Waiting != nil && status.State.Waiting.Reason != "ContainerCreating":
				o.waiting, o.message = status.State.Waiting.Reason, status.State.Waiting.Message
				return nil
			case status.State.Terminated != nil:
				o.waiting, o.message = status.State.Terminated.Reason, status.State.Terminated.Message
				return nil
			}
		}
		return fmt.Errorf("pod %s is %s since %s", pod.Name, pod.Status.Phase, pod.CreationTimestamp.Format(time.TimeOnly))
	})
	return o
}
