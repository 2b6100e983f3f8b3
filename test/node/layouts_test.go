//go:build nightly && linux

package node_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
	"github.com/landwaiter/landwaiter/test/kit/pods"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// What admission lets through, a kubelet may still refuse: a user that it cannot tell from root, an object that is not
// there. So one pod of each layout runs, with an image that says of itself what the real one says. The node
// has no network of pods, and nobody asks whether their programs are well.
func TestAKubeletRunsThePodsOfEveryLayout(t *testing.T) {
	m := theMachine(t)
	own := func(layout scaffold.Layout) func() (scaffold.Tree, error) {
		return func() (scaffold.Tree, error) {
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1beta1.TenantSpec{HomeNamespace: "own"}}
			return scaffold.NewRepository(scaffold.Repository{Layout: layout, Tenant: tenant})
		}
	}
	for _, c := range []struct {
		layout  scaffold.Layout
		tree    func() (scaffold.Tree, error)
		pod     string
		says    v1.Config // what the real image says
		program string
	}{
		{scaffold.LayoutFlux, own(scaffold.LayoutFlux), "landwaiter-podinfo", v1.Config{User: "app", WorkingDir: "/home/app", Cmd: []string{"./podinfo"}},
			"home/app/podinfo"},
		{scaffold.LayoutGroups, func() (scaffold.Tree, error) {
			return scaffold.NewPlatform(scaffold.Platform{Layout: scaffold.LayoutGroups})
		}, "landwaiter-external-secrets", v1.Config{User: "65534", Entrypoint: []string{"/bin/external-secrets"}}, "bin/external-secrets"},
		// Whatever image a team puts there: most run as root if nobody says otherwise.
		{scaffold.LayoutArc, own(scaffold.LayoutArc), "podinfo", v1.Config{Entrypoint: []string{"/pause"}}, "pause"},
		{scaffold.LayoutDemo, own(scaffold.LayoutDemo), "dummy", v1.Config{Cmd: []string{"sh"}}, "bin/sh"},
	} {
		t.Run(string(c.layout), func(t *testing.T) {
			dir := t.TempDir()
			tree, err := c.tree()
			require.NoError(t, err)
			_, err = scaffold.Write(dir, tree, scaffold.WriteOptions{})
			require.NoError(t, err)
			objects, err := pods.Built(dir)
			require.NoError(t, err)
			made, _, err := pods.Of(suite.Within(t), objects)
			require.NoError(t, err)
			at := slices.IndexFunc(made, func(pod pods.Pod) bool { return pod.Name == c.pod })
			require.GreaterOrEqual(t, at, 0, "no pod %s", c.pod)
			m.runs(t, made[at], c.says, filepath.ToSlash(c.program))
		})
	}
}

// runs starts a pod in a namespace of its own, which has the ConfigMaps and Secrets that come with it.
func (m *machine) runs(t *testing.T, made pods.Pod, says v1.Config, program string) {
	t.Helper()
	namespace := suite.Fresh("layout")
	require.NoError(t, m.Client.Create(t.Context(), suite.Namespace(namespace)))
	for _, o := range made.Beside {
		if slices.Contains([]string{"ConfigMap", "Secret", "ServiceAccount"}, o.GetKind()) && o.GetNamespace() == made.Namespace {
			copied := o.DeepCopy()
			copied.SetNamespace(namespace)
			unstructured.RemoveNestedField(copied.Object, "metadata", "ownerReferences")
			require.NoError(t, m.Apply(t.Context(), copied))
		}
	}
	pod := made.DeepCopy()
	pod.Namespace, pod.Spec.NodeName, pod.Spec.HostNetwork = namespace, m.Name, true
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		container.LivenessProbe, container.ReadinessProbe, container.StartupProbe = nil, nil, nil
		container.Ports = nil // several pods share the host's
		container.Resources = corev1.ResourceRequirements{}
		ref, err := image.Parse(container.Image)
		require.NoError(t, err)
		standIn, err := m.StandIn(container.Image, says, program)
		require.NoError(t, err)
		m.mirror.push(t, ref.Host, ref.Repository, strings.TrimPrefix(ref.Tag, ":"), standIn)
	}
	o := m.start(t, pod)
	require.NotEmpty(t, o.imageID, "%s: %+v", made.Of, o)
}
