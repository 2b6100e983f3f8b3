//go:build e2e

package reach

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// installation is the namespace of the chart.
const installation = "landwaiter-system"

// startCluster starts an API server with the rights and definitions of the chart, and the
// program with the account that the chart gives it.
func startCluster(t *testing.T) (*cluster.Cluster, *server) {
	t.Helper()
	tools, charts := os.Getenv("LANDWAITER_CLUSTER_TOOLS"), os.Getenv("LANDWAITER_CHART_TOOLS")
	require.NotEmpty(t, tools, "LANDWAITER_CLUSTER_TOOLS must name a folder, as make e2e does")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	c, err := cluster.Start(ctx, cluster.Options{Tools: tools, Dir: dir, WithoutGatekeeper: true})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	rendered, err := exec.CommandContext(ctx, filepath.Join(charts, "helm"), "template", "landwaiter", "../../charts/landwaiter", "--namespace", installation).Output()
	require.NoError(t, err)
	all, err := cluster.Decode(rendered)
	require.NoError(t, err)
	definitions, err := filepath.Glob("../../config/crd/landwaiter.dev_*.yaml")
	require.NoError(t, err)
	wanted := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": installation}}}}
	for _, file := range definitions {
		found, err := cluster.DecodeFile(file)
		require.NoError(t, err)
		wanted = append(wanted, found...)
	}
	for _, object := range all {
		if slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"}, object.GetKind()) &&
			(object.GetNamespace() == "" || object.GetNamespace() == installation) {
			wanted = append(wanted, object)
		}
	}
	require.NoError(t, c.Apply(ctx, wanted...))
	kubeconfig := filepath.Join(dir, "landwaiter.kubeconfig")
	require.NoError(t, c.AccountKubeconfig(ctx, installation, "landwaiter", kubeconfig))
	s := &server{}
	s.start(t, nil, "--kubeconfig", kubeconfig, "--own-namespace", installation)
	return c, s
}

// apply applies YAML documents as a cluster admin.
func apply(t *testing.T, c *cluster.Cluster, text string) {
	t.Helper()
	objects, err := cluster.Decode([]byte(text))
	require.NoError(t, err)
	for _, object := range objects {
		object.SetUID("")
	}
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	require.NoError(t, c.Apply(ctx, objects...))
}

// grant lets Landwaiter read a namespace's material, as its denial says.
func grant(namespace string) string {
	return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: landwaiter-material, namespace: ` + namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: landwaiter-material}
subjects: [{kind: ServiceAccount, name: landwaiter, namespace: ` + installation + `}]
`
}

// requireReady waits for the condition Ready of Store team-a/own.
func requireReady(t *testing.T, c *cluster.Cluster, want metav1.ConditionStatus, says string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	require.NoError(t, cluster.Until(ctx, func(ctx context.Context) error {
		var found v1alpha1.Store
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "own"}, &found); err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == want && strings.Contains(condition.Message, says) {
				return nil
			}
		}
		return fmt.Errorf("conditions are %v", found.Status.Conditions)
	}))
}

func TestPullSecretsOfAServiceAccountWithRealRights(t *testing.T) {
	c, s := startCluster(t)
	key, authority := newKey(t), newAuthority(t, "corp")
	r := startRegistry(t, key, authority, nil)
	r.requireLogin("builder", "pass-a")
	account := func(pull string) string {
		return "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: builder, namespace: team-a}\nimagePullSecrets: [{name: " + pull + "}]\n"
	}
	own := func(namespace string) string {
		return rules(namespace, key) + store(namespace, "own", []string{r.host}, authority, "imagePullSecretsFrom: {serviceAccount: {name: builder}}")
	}
	apply(t, c, store("", "corp", []string{r.host}, authority)+own("team-a")+own("team-b")+account("pull")+
		pullSecret("team-a", "pull", r.host, "builder", "pass-a")+pullSecret("team-a", "stale", r.host, "builder", "pass-b"))
	image := r.host + r.image

	s.requireVerdict(t, gatekeeper.Denied, "team-a", image, "ServiceAccount team-a/builder cannot be read: landwaiter has no right to read it")
	requireReady(t, c, metav1.ConditionFalse, "kubectl create rolebinding landwaiter-material --namespace=team-a --clusterrole=landwaiter-material --serviceaccount="+installation+":landwaiter")
	apply(t, c, grant("team-a"))
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", image)
	requireReady(t, c, metav1.ConditionTrue, "")

	apply(t, c, account("stale")) // what the account names counts at once
	s.requireVerdict(t, gatekeeper.Denied, "team-a", image, "refuses access")
	apply(t, c, account("pull"))
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", image)
	require.NoError(t, c.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder", Namespace: "team-a"}}))
	s.requireVerdict(t, gatekeeper.Denied, "team-a", image, "ServiceAccount team-a/builder does not exist")

	// Another team names the same account, and gets its own namespace's, which it lacks.
	apply(t, c, account("pull")+grant("team-b"))
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", image)
	s.requireVerdict(t, gatekeeper.Denied, "team-b", image, "ServiceAccount team-b/builder does not exist")

	// A cluster admin may name it for all.
	apply(t, c, rules("team-c", key)+store("", "corp", []string{r.host}, authority, "imagePullSecretsFrom: {serviceAccount: {namespace: team-a, name: builder}}"))
	s.requireVerdict(t, gatekeeper.Allowed, "team-c", image)
	require.NotContains(t, s.Tail(1000), "pass-")

	for name, refused := range map[string]struct{ text, says string }{
		"a pattern in a Store":        {store("team-a", "x", []string{"*.example.com"}, nil), "only a ClusterStore can list registries by pattern"},
		"another namespace's account": {store("team-b", "x", []string{"a.example.com"}, nil, "imagePullSecretsFrom: {serviceAccount: {namespace: team-a, name: builder}}"), `unknown field "spec.imagePullSecretsFrom.serviceAccount.namespace"`},
		"a proxy in a Store":          {store("team-a", "x", []string{"a.example.com"}, nil, "proxy: {url: 'http://proxy:3128'}"), `unknown field "spec.proxy"`},
		"a pattern without TLS":       {store("", "x", []string{"*.example.com"}, nil, "insecurePlainHTTP: true"), "cannot be used with patterns"},
		"a proxy without TLS":         {store("", "x", []string{"a.example.com"}, nil, "insecurePlainHTTP: true", "proxy: {url: 'http://proxy:3128'}"), "proxies open tunnels for TLS only"},
		"a password in the URL":       {store("", "x", []string{"a.example.com"}, nil, "proxy: {url: 'http://u:p@proxy:3128'}"), "spec.proxy.url"},
		"a Secret and no proxy":       {store("", "x", []string{"a.example.com"}, nil, "proxy: {secretRef: {namespace: a, name: b}}"), "spec.proxy.url is missing"},
		"two logins":                  {store("team-a", "x", []string{"a.example.com"}, nil, "imagePullSecrets: [{name: a}]", "imagePullSecretsFrom: {serviceAccount: {name: builder}}"), "three ways to log in"},
	} {
		objects, err := cluster.Decode([]byte(refused.text))
		require.NoError(t, err)
		err = c.Client.Create(t.Context(), objects[0], client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll)
		require.Error(t, err, name)
		require.True(t, strings.Contains(err.Error(), refused.says), "%s: %v", name, err)
	}
}
