//go:build flux

package gitops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// operate runs the operator with the arguments of the chart's Deployment and the rights of
// its account until the test ends.
func operate(t *testing.T) {
	t.Helper()
	ports, err := cluster.FreePorts(2)
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "operator.kubeconfig")
	require.NoError(t, w.AccountKubeconfig(within(t), system, "landwaiter-operator", kubeconfig))
	health := fmt.Sprintf("127.0.0.1:%d", ports[0])
	process, err := cluster.StartProcess(w.LogDir(), cluster.Command{Name: "operator", Path: w.binary,
		Args: append(operatorArgs(t), "--kubeconfig="+kubeconfig, "--health-address="+health, fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[1]))})
	require.NoError(t, err)
	t.Cleanup(func() { process.Terminate(settle) }) // it releases its lease
	require.NoError(t, process.Await(within(t), func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			return errors.Join(err, errors.New(response.Status))
		}
		return nil
	}))
}

// operatorArgs are the arguments of the chart's Deployment.
func operatorArgs(t *testing.T) []string {
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
			args[i] = strings.ReplaceAll(args[i], "$(POD_NAMESPACE)", system)
		}
		return args
	}
	require.Fail(t, "the chart has no Deployment of the operator")
	return nil
}
