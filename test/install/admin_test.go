//go:build e2e || nightly

package install

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// admin is a cluster with Gatekeeper in which tests install Landwaiter one after the other.
// Pods of the release run as the process of a kubelet.
type admin struct {
	*cluster.Cluster
	kubelet *kubelet
	dir     string
}

var administered = suite.Once(parts, administer)

func administer(ctx context.Context, e *suite.Env) (*admin, error) {
	c, err := e.Cluster(ctx, cluster.Options{Workloads: true})
	if err != nil {
		return nil, err
	}
	binary, err := suite.Tool(suite.LandwaiterServer)
	if err != nil {
		return nil, err
	}
	definitions, err := suite.Definitions()
	if err != nil {
		return nil, err
	}
	namespace := suite.Namespace(suite.System)
	namespace.SetLabels(map[string]string{"admission.gatekeeper.sh/ignore": "landwaiter"})
	return &admin{Cluster: c, dir: e.Dir, kubelet: &kubelet{Cluster: c, binary: binary, dir: e.Path("kubelet")}}, c.Apply(ctx, append(definitions, namespace)...)
}

// values are those of a release whose pods run outside of the cluster. Each test has pods of
// its own.
func (a *admin) values(t *testing.T, more ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t,
		os.WriteFile(file,
			fmt.Appendf(nil, "provider: {url: \"https://localhost:%d\"}\ntls: {extraDNSNames: [localhost]}\ncrds: {install: false}\npodAnnotations: {test: %q}\n",
				a.kubelet.port, t.Name()), 0o600))
	args := []string{"--values", file}
	for _, value := range more {
		args = append(args, "--set", value)
	}
	return args
}

// kubectl is an admin's.
func (a *admin) kubectl(t *testing.T) suite.Program {
	t.Helper()
	return suite.Program{Path: suite.MustTool(t, suite.ClusterTools, "kubectl"), Kubeconfig: a.Kubeconfig(), Env: []string{"HOME=" + a.dir}}
}

// helm is an admin's.
func (a *admin) helm(t *testing.T, name string) suite.Program {
	t.Helper()
	return suite.Program{Path: suite.MustTool(t, suite.ChartTools, name), Kubeconfig: a.Kubeconfig(), Env: []string{"HOME=" + a.dir}}
}

// rolledOut waits until the pods are those of what was applied last.
func (a *admin) rolledOut(t *testing.T) {
	t.Helper()
	a.kubectl(t).Must(t, "rollout", "status", "deployment/landwaiter", "--namespace", suite.System, "--timeout", suite.Patience.String())
}

func (a *admin) providers(t *testing.T) dynamic.NamespaceableResourceInterface {
	t.Helper()
	all, err := dynamic.NewForConfig(a.Config)
	require.NoError(t, err)
	return all.Resource(schema.GroupVersionResource{Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Resource: "providers"})
}

// authority is what the caBundle of every Provider has to be.
func (a *admin) authority(ctx context.Context) (string, error) {
	var secret corev1.Secret
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: suite.System, Name: "landwaiter-tls"}, &secret)
	return base64.StdEncoding.EncodeToString(secret.Data["ca.crt"]), err
}

// trusted waits until each of these Providers has the CA of the certificate.
func (a *admin) trusted(t *testing.T, names ...string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		want, err := a.authority(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			found, err := a.providers(t).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedString(found.Object, "spec", "caBundle"); got != want {
				return fmt.Errorf("Provider %s has the caBundle %q", name, got)
			}
		}
		return nil
	})
}

// last marks the last change that a test makes while it watches.
const last = "example.com/last"

func ran(t *testing.T, r suite.Result) {
	t.Helper()
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
}

// replicas are those that the Deployment is to have.
func (a *admin) replicas(t *testing.T) int32 {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, a.Client.Get(suite.Within(t), client.ObjectKey{Namespace: suite.System, Name: "landwaiter"}, &d))
	return *d.Spec.Replicas
}

// scaled sets replicas as a HorizontalPodAutoscaler does, by the subresource.
func (a *admin) scaled(t *testing.T, replicas string) {
	t.Helper()
	a.kubectl(t).Must(t, "scale", "deployment/landwaiter", "--namespace", suite.System, "--replicas", replicas)
}

// gone waits until nothing of the release is left.
func (a *admin) gone(t *testing.T) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		list, err := a.providers(t).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return errors.New("there is still Provider " + list.Items[0].GetName())
		}
		return nil
	})
	a.kubectl(t).Must(t, "delete", "clusterrole", "landwaiter-reconciler", "--ignore-not-found") // docs/operate/uninstall.md says why it is kept
	require.NotContains(t, a.kubectl(t).Must(t, "get", "clusterroles,clusterrolebindings", "--output=name"), "landwaiter")
	require.NoError(t,
		client.IgnoreNotFound(a.Client.Delete(suite.Within(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.System, Name: "landwaiter-tls"}})))
}

// overlaid merges values as Helm merges files.
func overlaid(base, more map[string]any) map[string]any {
	merged := maps.Clone(base)
	for key, value := range more {
		inner, ok := value.(map[string]any)
		if below, both := merged[key].(map[string]any); ok && both {
			merged[key] = overlaid(below, inner)
			continue
		}
		merged[key] = value
	}
	return merged
}
