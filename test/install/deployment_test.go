//go:build nightly

package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// deployment is the one of the chart, with its default values.
type deployment struct{ appsv1.Deployment }

func renderDeployment(t *testing.T) deployment {
	t.Helper()
	objects, err := suite.Chart(t.Context(), "landwaiter")
	require.NoError(t, err)
	found := suite.Only(objects, "Deployment")
	require.Len(t, found, 1)
	var d deployment
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, &d.Deployment))
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
	clusters := []string{"--own-namespace", "--cluster-role", "--tls-secret", "--service-name", "--rotate-certificates", "--provider-object",
		"--certificate-dns-name", "--client-ca"}
	var kept []string
	for _, arg := range d.container(t).Args {
		name, _, _ := strings.Cut(arg, "=")
		if !slices.Contains(clusters, name) && !strings.HasPrefix(arg, "--timeout=drain=") {
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
