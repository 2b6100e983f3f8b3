//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// kubectl runs the real kubectl as a user; an empty user is the administrator.
func kubectl(ctx context.Context, t *testing.T, user string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	args = append(args, "--kubeconfig="+w.Kubeconfig(), "--cache-dir="+filepath.Join(w.LogDir(), "kubectl"))
	if user != "" {
		args = append(args, "--as="+user)
	}
	command := exec.CommandContext(ctx, filepath.Join(os.Getenv("LANDWAITER_CLUSTER_TOOLS"), "kubectl"), args...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	err = command.Run()
	return out.String(), said.String(), err
}

// everyKind has one object of each kind, with everything omitted that can be.
func everyKind(ns string) string {
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	return trustStore(ns, "keys", w.teamA) + verifier(ns, "release", "keys") + policy(ns, "empty", "{}") +
		header(ns, "Store", "registry") + "spec: {registries: [e2e-columns.example.com]}\n" +
		trustStore("", "e2e-columns", w.teamA) + verifier("", "e2e-columns", "e2e-columns") +
		header("", "Store", "e2e-columns") + "spec: {registries: [e2e-columns.example.com]}\n" +
		policy("", "e2e-columns", "{}") +
		"\n---\n{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterQuota, metadata: {name: e2e-columns}, spec: {namespaces: [" + ns + "], tenants: [e2e-columns], maxInFlight: 64}}\n" +
		fmt.Sprintf("---\n{apiVersion: landwaiter.dev/v1alpha1, kind: Exception, metadata: {name: x, namespace: %s}, spec: {until: %q, reason: r, images: [e2e-columns.example.com/a]}}\n", ns, until) +
		fmt.Sprintf("---\n{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterException, metadata: {name: e2e-columns}, spec: {until: %q, reason: r, images: [e2e-columns.example.com/a], namespaces: [%s]}}\n", until, ns) +
		"---\n{apiVersion: landwaiter.dev/v1alpha1, kind: Tenant, metadata: {name: e2e-columns}, spec: {home: " + ns + "}}\n"
}

// table asks for the columns that kubectl shows.
func table(ctx context.Context, kind v1alpha1.Kind) (found metav1.Table, err error) {
	httpClient, err := rest.HTTPClientFor(w.Config)
	if err != nil {
		return found, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Config.Host+"/apis/"+v1alpha1.GroupVersion.String()+"/"+kind.Plural, nil)
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
			case column.Name == v1alpha1.ConditionProvisioned: // only the operator writes it
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
	ns := namespace(t)
	apply(t, everyKind(ns))
	t.Cleanup(func() { remove(t, everyKind(ns)) })
	for _, kind := range v1alpha1.Kinds() {
		require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
			found, err := table(ctx, kind)
			return errors.Join(err, filled(found))
		}), kind.Name)
	}
	for _, category := range []string{v1alpha1.CategoryNamespaced, v1alpha1.CategoryCluster} {
		stdout, stderr, err := kubectl(within(t), t, "", "get", category, "--all-namespaces", "--output=wide")
		require.NoError(t, err, stderr)
		require.NotContains(t, stdout, "<none>")
		require.NotContains(t, stdout, "<unknown>")
		for _, kind := range v1alpha1.Kinds() {
			if kind.Namespaced == (category == v1alpha1.CategoryNamespaced) {
				require.Contains(t, stdout, strings.ToLower(kind.Name)+".landwaiter.dev/", "kubectl get %s", category)
			}
		}
		t.Logf("kubectl get %s\n%s", category, stdout)
	}
}

func TestTeamAdminSeesTheResourcesOfTheTeamAndNoErrors(t *testing.T) {
	ns, other := namespace(t), namespace(t)
	apply(t, own(ns, w.teamA)+own(other, w.teamA))
	bind(t, ns, "admin", "shown-admin")
	get := func(ctx context.Context, user string, args ...string) (stdout, stderr string, err error) {
		return kubectl(ctx, t, user, append([]string{"get"}, args...)...)
	}
	var stdout, stderr string
	err := cluster.Until(within(t), func(ctx context.Context) (err error) { // the role is aggregated by a controller
		stdout, stderr, err = get(ctx, "shown-admin", "landwaiter", "--namespace="+ns)
		return err
	})
	require.NoError(t, err, stderr)
	require.Empty(t, stderr)
	for _, name := range []string{"truststore.landwaiter.dev/keys", "verifier.landwaiter.dev/release", "verificationpolicy.landwaiter.dev/release"} {
		require.Contains(t, stdout, name)
	}
	for name, args := range map[string][]string{
		"another namespace": {"landwaiter", "--namespace=" + other}, "every namespace": {"landwaiter", "--all-namespaces"}, "the cluster's": {"landwaiter-cluster"},
	} {
		_, stderr, err := get(within(t), "shown-admin", args...)
		require.Error(t, err, name)
		require.Contains(t, stderr, "Forbidden", name)
	}

	// Who may see what the cluster says is bound by hand.
	bind(t, "", "landwaiter-cluster-viewer", "shown-admin")
	var shown []string
	for _, kind := range v1alpha1.Kinds() {
		if !kind.Namespaced && kind.Name != v1alpha1.KindTenant { // Tenants name the people of other teams
			shown = append(shown, kind.Plural)
		}
	}
	err = cluster.Until(within(t), func(ctx context.Context) (err error) {
		stdout, stderr, err = get(ctx, "shown-admin", strings.Join(shown, ","))
		return err
	})
	require.NoError(t, err, stderr)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "clusterverificationpolicy.landwaiter.dev/signed")
	_, stderr, err = get(within(t), "shown-admin", "landwaiter", "--namespace="+other)
	require.Error(t, err)
	require.Contains(t, stderr, "Forbidden")
}
