//go:build e2e

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/rbac"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// kubectl is the real one, of a user; an empty user is the administrator.
func (w *world) kubectl(t *testing.T, user string) suite.Program {
	t.Helper()
	p := suite.Program{Path: suite.MustTool(t, suite.ClusterTools, "kubectl"), Kubeconfig: w.Kubeconfig(), Env: []string{"HOME=" + w.LogDir()}}
	if user != "" {
		p.Kubeconfig = suite.Kubeconfig(t, w.Cluster, user, "default")
	}
	return p
}

// everyKind has one object of each kind, with everything omitted that can be.
func (w *world) everyKind(ns string) string {
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	return trustStore(ns, "keys", w.teamA) + verifier(ns, "release", "keys") + policy(ns, "empty", "{}") +
		header(ns, "Store", "registry") + "spec: {registries: [e2e-columns.example.com]}\n" +
		trustStore("", "e2e-columns", w.teamA) + verifier("", "e2e-columns", "e2e-columns") +
		header("", "Store", "e2e-columns") + "spec: {registries: [e2e-columns.example.com]}\n" +
		policy("", "e2e-columns", "{}") +
		"\n---\n{apiVersion: landwaiter.dev/v1beta1, kind: ClusterQuota, metadata: {name: e2e-columns}, spec: {namespaces: [" + ns +
		"], tenants: [e2e-columns], maxInFlight: 64}}\n" +
		fmt.Sprintf("---\n{apiVersion: landwaiter.dev/v1beta1, kind: Exception, metadata: {name: x, namespace: %s}, spec: {until: %q, reason: r, images: "+
			"[e2e-columns.example.com/a]}}\n", ns, until) +
		fmt.Sprintf("---\n{apiVersion: landwaiter.dev/v1beta1, kind: ClusterException, metadata: {name: e2e-columns}, spec: {until: %q, reason: r, images: "+
			"[e2e-columns.example.com/a], namespaces: [%s]}}\n", until, ns) +
		"---\n{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: e2e-columns}, spec: {homeNamespace: " + ns + "}}\n"
}

// table asks for the columns that kubectl shows.
func (w *world) table(ctx context.Context, kind v1beta1.Kind) (found metav1.Table, err error) {
	httpClient, err := rest.HTTPClientFor(w.Config)
	if err != nil {
		return found, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Config.Host+"/apis/"+v1beta1.GroupVersion.String()+"/"+kind.Plural, nil)
	if err != nil {
		return found, err
	}
	request.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	response, err := httpClient.Do(request)
	if err != nil {
		return found, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return found, errors.New(response.Status)
	}
	return found, json.NewDecoder(response.Body).Decode(&found)
}

// filled returns an error unless each cell of every row says something, and every
// condition is about the present.
func filled(found metav1.Table) error {
	if len(found.Rows) == 0 {
		return errors.New("there is no row")
	}
	for _, row := range found.Rows {
		for i, column := range found.ColumnDefinitions {
			cell := row.Cells[i]
			switch text := strings.TrimSpace(fmt.Sprint(cell)); {
			// blank says that no operator provisions, Fallback, and that nothing needs a review
			case column.Name == v1beta1.ConditionProvisioned, column.Name == "Scope", column.Name == "Review":
			case cell == nil, text == "", text == "<none>", text == "<unknown>", text == "[]":
				return fmt.Errorf("the column %s is blank in %v", column.Name, row.Cells)
			case (column.Name == "Ready" || column.Name == "Effective") && text != "True" && text != "False":
				return fmt.Errorf("the column %s is %s in %v", column.Name, text, row.Cells)
			}
		}
	}
	return nil
}

func TestNoColumnOfAnyKindIsBlank(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.during(t, w.everyKind(ns))
	for _, kind := range v1beta1.Kinds() {
		require.NoError(t, cluster.Until(suite.Within(t), func(ctx context.Context) error {
			found, err := w.table(ctx, kind)
			return errors.Join(err, filled(found))
		}), kind.Name)
	}
	for _, category := range []string{v1beta1.CategoryNamespaced, v1beta1.CategoryCluster} {
		stdout := w.kubectl(t, "").Must(t, "get", category, "--all-namespaces", "--output=wide")
		require.NotContains(t, stdout, "<none>")
		require.NotContains(t, stdout, "<unknown>")
		for _, kind := range v1beta1.Kinds() {
			if kind.Namespaced == (category == v1beta1.CategoryNamespaced) {
				require.Contains(t, stdout, strings.ToLower(kind.Name)+".landwaiter.dev/", "kubectl get %s", category)
			}
		}
		t.Logf("kubectl get %s\n%s", category, stdout)
	}
}

func TestTeamAdminSeesTheResourcesOfTheTeamAndNoErrors(t *testing.T) {
	w := installed(t)
	ns, other := w.namespace(t), w.namespace(t)
	w.apply(t, own(ns, w.teamA)+own(other, w.teamA))
	w.bind(t, ns, "admin", "shown-admin")
	admin := w.kubectl(t, "shown-admin")
	shows := func(args ...string) (r suite.Result) {
		t.Helper()
		suite.Eventually(t, func(context.Context) error { // a controller aggregates the role
			if r = admin.Run(t, "", append([]string{"get"}, args...)...); r.Code != 0 {
				return errors.New(r.Stderr)
			}
			return nil
		})
		require.Empty(t, r.Stderr)
		return r
	}
	forbidden := func(name string, args ...string) {
		t.Helper()
		r := admin.Run(t, "", append([]string{"get"}, args...)...)
		require.NotZero(t, r.Code, name)
		require.Contains(t, r.Stderr, "Forbidden", name)
	}
	shown := shows("landwaiter", "--namespace="+ns).Stdout
	for _, name := range []string{"truststore.landwaiter.dev/keys", "verifier.landwaiter.dev/release", "verificationpolicy.landwaiter.dev/release"} {
		require.Contains(t, shown, name)
	}
	for name, args := range map[string][]string{
		"another namespace": {"landwaiter", "--namespace=" + other}, "every namespace": {"landwaiter", "--all-namespaces"}, "the cluster's": {"landwaiter-cluster"},
	} {
		forbidden(name, args...)
	}

	// Who may see what the cluster says is bound by hand.
	w.bind(t, "", "landwaiter-cluster-reader", "shown-admin")
	var kinds []string
	for _, kind := range v1beta1.Kinds() {
		if !kind.Namespaced && !rbac.NamesTeams(kind.Name) {
			kinds = append(kinds, kind.Plural)
		}
	}
	require.Contains(t, shows(strings.Join(kinds, ",")).Stdout, "clusterverificationpolicy.landwaiter.dev/signed")
	forbidden("another namespace, still", "landwaiter", "--namespace="+other)
}
