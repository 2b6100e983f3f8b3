//go:build nightly

package gitops

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// operate runs the operator with the arguments of the chart's Deployment and the permissions of
// its account until the test ends.
func (w *world) operate(t *testing.T) {
	t.Helper()
	ports, err := cluster.FreePorts(2)
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "operator.kubeconfig")
	require.NoError(t, w.AccountKubeconfig(suite.Within(t), suite.System, "landwaiter-operator", kubeconfig))
	health := fmt.Sprintf("127.0.0.1:%d", ports[0])
	process, err := cluster.StartProcess(w.LogDir(), cluster.Command{Name: "operator", Path: suite.MustTool(t, suite.LandwaiterServer),
		Env: []string{"KUBECONFIG=" + kubeconfig}, Args: append(w.operatorArgs(t), "--health-address="+health, fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[1]))})
	require.NoError(t, err)
	t.Cleanup(func() { process.Terminate(suite.Patience) }) // it releases its lease
	require.NoError(t, process.Await(suite.Within(t), func(ctx context.Context) error {
		_, err := stack.Get(ctx, "http://"+health+"/readyz")
		return err
	}))
}

// operatorArgs are the arguments of the chart's Deployment.
func (w *world) operatorArgs(t *testing.T) []string {
	t.Helper()
	for _, object := range w.rendered {
		if object.GetKind() != "Deployment" || object.GetName() != "landwaiter-operator" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		container, _ := containers[0].(map[string]any)
		args, _, err := unstructured.NestedStringSlice(container, "args")
		require.NoError(t, err)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$(POD_NAMESPACE)", suite.System)
		}
		return args
	}
	require.Fail(t, "the chart has no Deployment of the operator")
	return nil
}
