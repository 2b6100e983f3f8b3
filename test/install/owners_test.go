//go:build e2e

package install

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
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

var administered = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*admin, error) {
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
})

// values are those of a release whose pods run outside of the cluster. Each test has pods of
// its own.
func (a *admin) values(t *testing.T, more ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "provider: {url: \"https://localhost:%d\"}\ntls: {extraDNSNames: [localhost]}\ncrds: {install: false}\npodAnnotations: {test: %q}\n",
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

// moments are the states of Providers in which Gatekeeper could not have asked Landwaiter.
type moments struct {
	done  chan struct{}
	wrong []string // read it once done is closed
}

// watched begins to note them.
func (a *admin) watched(t *testing.T) *moments {
	t.Helper()
	want, err := a.authority(suite.Within(t))
	require.NoError(t, err)
	list, err := a.providers(t).List(suite.Within(t), metav1.ListOptions{})
	require.NoError(t, err)
	events, err := a.providers(t).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	m := &moments{done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for event := range events.ResultChan() {
			object, _ := event.Object.(*unstructured.Unstructured)
			if object == nil {
				m.wrong = append(m.wrong, fmt.Sprintf("the watch failed: %v", event.Object))
				return
			}
			if object.GetAnnotations()[last] != "" {
				return
			}
			bundle, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle")
			if event.Type == watch.Deleted || bundle != want {
				m.wrong = append(m.wrong, fmt.Sprintf("%s %s with the caBundle %.60q", event.Type, object.GetName(), bundle))
			}
		}
		m.wrong = append(m.wrong, "the watch ended early")
	}()
	t.Cleanup(events.Stop)
	return m
}

// none checks that there was no such moment up to now.
func (m *moments) none(t *testing.T, a *admin) {
	t.Helper()
	a.kubectl(t).Must(t, "annotate", "provider.externaldata.gatekeeper.sh", "landwaiter-verify", last+"=true")
	select {
	case <-m.done:
	case <-suite.Within(t).Done():
		require.Fail(t, "the watch has not ended")
	}
	require.Empty(t, m.wrong, "Gatekeeper could not have asked Landwaiter")
}

// way is how an admin, or a tool of theirs, applies the chart.
type way struct {
	// apply installs or upgrades, with arguments of helm for values.
	apply func(t *testing.T, values []string) suite.Result
	// back returns to what was applied before the last time.
	back func(t *testing.T, values []string) suite.Result
	// remove uninstalls.
	remove func(t *testing.T) suite.Result
}

// released is Helm itself.
func (a *admin) released(name string) way {
	return way{
		apply: func(t *testing.T, values []string) suite.Result {
			return a.helm(t, name).Run(t, "", append([]string{"upgrade", "--install", "landwaiter", chart, "--namespace", suite.System}, values...)...)
		},
		back: func(t *testing.T, _ []string) suite.Result {
			return a.helm(t, name).Run(t, "", "rollback", "landwaiter", "--namespace", suite.System)
		},
		remove: func(t *testing.T) suite.Result {
			return a.helm(t, name).Run(t, "", "uninstall", "landwaiter", "--namespace", suite.System)
		},
	}
}

// applied is kubectl, or a tool that applies with the same options.
func (a *admin) applied(options ...string) way {
	manifest := ""
	apply := func(t *testing.T, values []string) suite.Result {
		manifest = helm(t).Must(t, append([]string{"template", "landwaiter", chart, "--namespace", suite.System}, values...)...)
		return a.kubectl(t).Run(t, manifest, append([]string{"apply", "--filename", "-"}, options...)...)
	}
	return way{apply: apply, back: apply, remove: func(t *testing.T) suite.Result {
		return a.kubectl(t).Run(t, manifest, "delete", "--filename", "-", "--ignore-not-found")
	}}
}

func ran(t *testing.T, r suite.Result) {
	t.Helper()
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
}

// Flux's kustomize-controller and Argo CD, with ServerSideApply=true, apply with these field
// managers and by force, Argo CD without it as kubectl does on the client side; both do not
// run here.
func TestNoWayToApplyTheChartTakesTheAuthorityFromProviders(t *testing.T) {
	a := administered(t)
	a.kubelet.start(t)
	for name, w := range map[string]way{
		"helm 3":                       a.released("helm"),
		"helm 4":                       a.released("helm4"),
		"kubectl server-side":          a.applied("--server-side"),
		"kubectl client-side":          a.applied(),
		"as Flux":                      a.applied("--server-side", "--force-conflicts", "--field-manager=kustomize-controller"),
		"as Argo CD on the server":     a.applied("--server-side", "--force-conflicts", "--field-manager=argocd-controller"),
		"kubectl server-side by force": a.applied("--server-side", "--force-conflicts"),
	} {
		t.Run(name, func(t *testing.T) {
			ran(t, w.apply(t, a.values(t)))
			a.trusted(t, "landwaiter-verify", "landwaiter-audit")
			a.rolledOut(t)
			m := a.watched(t)
			ran(t, w.apply(t, a.values(t, "log.level=debug")))
			a.rolledOut(t)
			ran(t, w.apply(t, a.values(t, "log.level=warning")))
			a.rolledOut(t)
			ran(t, w.back(t, a.values(t, "log.level=debug")))
			a.rolledOut(t)
			m.none(t, a)
			require.Equal(t, []string{"landwaiter"}, a.managers(t, "landwaiter-verify"), "no field has two owners")

			ran(t, w.remove(t))
			a.gone(t)
		})
	}
}

// managers returns who manages fields of a Provider's spec.
func (a *admin) managers(t *testing.T, name string) (all []string) {
	t.Helper()
	found, err := a.providers(t).Get(suite.Within(t), name, metav1.GetOptions{})
	require.NoError(t, err)
	for _, entry := range found.GetManagedFields() {
		fields := map[string]any{}
		require.NoError(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
		if _, ok := fields["f:spec"]; ok {
			all = append(all, entry.Manager)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
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
	require.NoError(t, client.IgnoreNotFound(a.Client.Delete(suite.Within(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.System, Name: "landwaiter-tls"}})))
}

// What a value asked for goes with it, and comes back with it.
func TestAProviderComesAndGoesWithItsValue(t *testing.T) {
	a := administered(t)
	a.kubelet.start(t)
	w := a.released("helm")
	ran(t, w.apply(t, a.values(t)))
	a.trusted(t, "landwaiter-verify", "landwaiter-audit")
	a.rolledOut(t)
	pinned := a.values(t, "mutation.enabled=true,mutation.namespaces={team-a},provider.ratify=true")
	for _, change := range []func(){
		func() { ran(t, w.apply(t, pinned)) },
		func() { // it is there again without a new revision of anything else
			require.NoError(t, a.providers(t).Delete(suite.Within(t), "landwaiter-mutate", metav1.DeleteOptions{}))
		},
	} {
		change()
		a.trusted(t, "landwaiter-verify", "landwaiter-audit", "landwaiter-mutate", "landwaiter-mutate-team-a", "landwaiter-ratify")
	}
	a.rolledOut(t)
	ran(t, w.back(t, nil))
	suite.Eventually(t, func(ctx context.Context) error {
		list, err := a.providers(t).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var names []string
		for _, p := range list.Items {
			names = append(names, p.GetName())
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "landwaiter-audit landwaiter-verdict landwaiter-verify" {
			return errors.New(got)
		}
		return nil
	})
	ran(t, w.remove(t))
	a.gone(t)
}
