//go:build e2e

package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// world is an API server with the permissions and guardrails of the chart, a serve with the
// chart's account, and stand-ins of the clouds that check each token as the clouds do.
type world struct {
	*cluster.Cluster
	clouds *clouds
	server *server
	key    *fixture.CosignKey
	log    string // of serve
}

var connected = suite.Once(parts, func(ctx context.Context, e *suite.Env) (w *world, err error) {
	w = &world{log: e.Path("logs", "landwaiter.log"), server: &server{}}
	if w.Cluster, err = e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true}); err != nil {
		return nil, err
	}
	if w.clouds, err = startClouds(ctx, w.Config); err != nil {
		return nil, err
	}
	e.OnStop(w.clouds.close)
	if w.key, err = fixture.NewCosignKey(fixture.ECDSAP256); err != nil {
		return nil, err
	}
	definitions, err := suite.Definitions()
	if err != nil {
		return nil, err
	}
	chart, err := suite.Chart(ctx, "landwaiter", "--set", "crds.install=false,guardrails.enabled=true")
	if err != nil {
		return nil, err
	}
	if err := w.Apply(ctx, append(append(definitions, suite.Namespace(suite.System)), suite.Only(chart, suite.Rights()...)...)...); err != nil {
		return nil, err
	}
	kubeconfig, authorities := e.Path("landwaiter.kubeconfig"), e.Path("clouds.crt")
	if err := w.AccountKubeconfig(ctx, suite.System, "landwaiter", kubeconfig); err != nil {
		return nil, err
	}
	if err := os.WriteFile(authorities, w.clouds.ca.CertificatePEM, 0o600); err != nil {
		return nil, err
	}
	args := []string{"--own-namespace", suite.System, "--log-level", "debug", "--ttl", "deny=100ms", "--egress-host", vaultHost}
	for _, host := range w.clouds.hosts() {
		args = append(args, "--cloud-endpoint", host+"="+w.clouds.address())
	}
	w.server.Server, err = e.Server(ctx,
		suite.ServerOptions{Binary: suite.FullServer, Args: args, Env: []string{"KUBECONFIG=" + kubeconfig, "SSL_CERT_FILE=" + authorities, "SSL_CERT_DIR=/nowhere"}})
	return w, err
})

// namespace makes a namespace of a test's own, whose name begins with prefix.
func (w *world) namespace(t *testing.T, prefix string) string {
	t.Helper()
	name := suite.Fresh(prefix)
	require.NoError(t, w.Apply(suite.Within(t), suite.Namespace(name)))
	return name
}

// team makes a namespace that Landwaiter may read what resources reference in, and that trusts the key
// that signs the images.
func (w *world) team(t *testing.T, prefix string) string {
	t.Helper()
	name := w.namespace(t, prefix)
	suite.Apply(t, w.Cluster, grant(name)+trusting(name, w.key))
	return name
}

// grant lets Landwaiter read what a namespace's resources reference, as its denial says.
func grant(namespace string) string {
	return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: landwaiter-reference-reader, namespace: ` + namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: landwaiter-reference-reader}
subjects: [{kind: ServiceAccount, name: landwaiter, namespace: ` + suite.System + `}]
`
}

// puller makes the ServiceAccount puller of a namespace, and gives Landwaiter the permission to
// get its tokens as the documentation says.
func (w *world) puller(t *testing.T, namespace string) {
	t.Helper()
	suite.Apply(t, w.Cluster, pullerAccount(namespace))
	w.kubectl(t, "kubectl create role landwaiter-token-puller --namespace="+namespace+" --verb=create --resource=serviceaccounts/token --resource-name=puller")
	w.kubectl(t, "kubectl create rolebinding landwaiter-token-puller --namespace="+namespace+" --role=landwaiter-token-puller --serviceaccount="+
		suite.System+":landwaiter")
}

func pullerAccount(namespace string) string {
	return "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: " + namespace + ", name: puller}}"
}

// kubectl runs a command line of kubectl, as a message has it.
func (w *world) kubectl(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	require.Equal(t, "kubectl", words[0])
	suite.Program{Path: suite.MustTool(t, suite.ClusterTools, "kubectl"), Kubeconfig: w.Kubeconfig()}.Must(t, words[1:]...)
}

// becomes waits for the condition Ready of a resource, and returns its message.
func (w *world) becomes(t *testing.T, kind, namespace, name, status, says string) string {
	t.Helper()
	object := suite.Resource(kind, namespace, name, "{}")
	var last string
	err := cluster.Until(suite.Within(t), func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, one := range conditions {
			c, _ := one.(map[string]any)
			if c["type"] != "Ready" {
				continue
			}
			if last = fmt.Sprintf("%v: %v", c["reason"], c["message"]); c["status"] == status && strings.Contains(last, says) {
				return nil
			}
		}
		return errors.New("not yet")
	})
	require.NoError(t, err, "%s %s/%s must become %s with %q, it is %s", kind, namespace, name, status, says, last)
	return last
}
