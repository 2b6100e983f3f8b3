//go:build e2e

package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// deployment is the one of the chart, with its default values.
type deployment struct{ appsv1.Deployment }

func renderDeployment(t *testing.T) deployment {
	t.Helper()
	tools := os.Getenv("LANDWAITER_CHART_TOOLS")
	require.NotEmpty(t, tools, "LANDWAITER_CHART_TOOLS is not set; run make e2e")
	var stdout, stderr bytes.Buffer
	helm := exec.CommandContext(t.Context(), filepath.Join(tools, "helm"), "template", "landwaiter", filepath.Join(root, "charts", "landwaiter"))
	helm.Stdout, helm.Stderr = &stdout, &stderr
	require.NoError(t, helm.Run(), "%s", &stderr)
	objects, err := cluster.Decode(stdout.Bytes())
	require.NoError(t, err)
	var d deployment
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			require.Empty(t, d.Name, "the chart has two Deployments")
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d.Deployment))
		}
	}
	require.NotEmpty(t, d.Name)
	return d
}

func (d deployment) container(t *testing.T) corev1.Container {
	t.Helper()
	containers := d.Spec.Template.Spec.Containers
	require.Len(t, containers, 1)
	return containers[0]
}

// args returns the chart's arguments without those that need a cluster, and without the
// pause at the end that is for load balancers.
func (d deployment) args(t *testing.T) []string {
	t.Helper()
	clusters := []string{"--own-namespace", "--material-role", "--tls-secret", "--service-name", "--rotate-certificates", "--provider-object",
		"--certificate-dns-name", "--client-ca-secret", "--client-ca-overlap", "--drain-delay"}
	var kept []string
	for _, arg := range d.container(t).Args {
		name, _, _ := strings.Cut(arg, "=")
		if !slices.Contains(clusters, name) {
			kept = append(kept, arg)
		}
	}
	require.Equal(t, "serve", kept[0])
	require.Contains(t, kept, "--client-name=gatekeeper-webhook-service.gatekeeper-system.svc")
	return kept
}

// environment returns the variables of the chart that are plain text.
func (d deployment) environment(t *testing.T) []string {
	t.Helper()
	all := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} // as every runtime sets it
	for _, variable := range d.container(t).Env {
		if variable.ValueFrom == nil {
			all = append(all, variable.Name+"="+variable.Value)
		}
	}
	return all
}
