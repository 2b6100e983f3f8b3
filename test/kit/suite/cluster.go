package suite

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// System is the namespace of the installation.
const System = stack.Namespace

// Cluster starts a control plane. It sets the options' Tools, Dir and Progress.
func (e *Env) Cluster(ctx context.Context, options cluster.Options) (*cluster.Cluster, error) {
	var err error
	if options.Tools, err = Tool(ClusterTools); err != nil {
		return nil, err
	}
	options.Dir, options.Progress = e.Dir, os.Stderr
	c, err := cluster.Start(ctx, options)
	if err == nil {
		e.OnStop(c.Stop)
	}
	return c, err
}

// Stack starts a cluster with Landwaiter in it, given values of the chart. It sets the
// options' Tools, Dir and Progress.
func (e *Env) Stack(ctx context.Context, options cluster.Options, values map[string]any) (*stack.Stack, error) {
	made := stack.Options{Options: options, Root: Root, Values: values}
	for variable, path := range map[string]*string{LandwaiterServer: &made.Binary, ClusterTools: &made.Tools, ChartTools: &made.ChartTools} {
		var err error
		if *path, err = Tool(variable); err != nil {
			return nil, err
		}
	}
	made.Dir, made.Progress = e.Dir, os.Stderr
	s, err := stack.Start(ctx, made)
	if err == nil {
		e.OnStop(s.Stop)
	}
	return s, err
}

// Definitions returns Landwaiter's CustomResourceDefinitions.
func Definitions() (all []*unstructured.Unstructured, err error) {
	files, err := filepath.Glob(filepath.Join(Root, "config/crd/landwaiter.dev_*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		objects, err := cluster.DecodeFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Chart renders a chart below charts ("landwaiter", "tenant") into [System].
func Chart(ctx context.Context, name string, args ...string) ([]*unstructured.Unstructured, error) {
	return Render(ctx, filepath.Join(Root, "charts", name), append([]string{"--namespace", System}, args...)...)
}

// Render renders the chart in any folder, as the release landwaiter.
func Render(ctx context.Context, folder string, args ...string) ([]*unstructured.Unstructured, error) {
	helm, err := Tool(ChartTools, "helm")
	if err != nil {
		return nil, err
	}
	text, err := output(ctx, helm, append([]string{"template", "landwaiter", folder}, args...)...)
	if err != nil {
		return nil, err
	}
	return cluster.Decode(text)
}

// Rights returns the kinds of objects that give permissions, and that limit them.
func Rights() []string {
	return []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
}

// Only returns the objects of some kinds that are in [System] or in no namespace; it drops all
// others.
func Only(objects []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(kinds, o.GetKind()) || (o.GetNamespace() != "" && o.GetNamespace() != System)
	})
}

// Within returns a context that ends after [Patience], or with the test; in a cleanup, where
// the context of the test has ended, after Patience. Ask for one for each wait.
func Within(t testing.TB) context.Context {
	t.Helper()
	ctx := t.Context()
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	t.Cleanup(cancel)
	return ctx
}

// Eventually waits until ok returns nil, and fails the test with its last error.
func Eventually(t testing.TB, ok func(context.Context) error) {
	t.Helper()
	require.NoError(t, cluster.Until(Within(t), ok))
}

// Apply applies YAML documents as an administrator.
func Apply(t testing.TB, c *cluster.Cluster, text string) {
	t.Helper()
	objects, err := cluster.Decode([]byte(text))
	require.NoError(t, err)
	require.NoError(t, c.Apply(Within(t), objects...))
}

// Kubeconfig writes a kubeconfig file for a person, who is a user in groups and in
// system:authenticated, with a default namespace, and returns its path.
func Kubeconfig(t testing.TB, c *cluster.Cluster, user, namespace string, groups ...string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	require.NoError(t, err)
	for _, info := range config.AuthInfos {
		info.Impersonate = user
		if len(groups) > 0 {
			info.ImpersonateGroups = append(slices.Clone(groups), "system:authenticated")
		}
	}
	for _, where := range config.Contexts {
		where.Namespace = namespace
	}
	path := filepath.Join(t.TempDir(), user+".kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}
