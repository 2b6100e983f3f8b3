//go:build nightly

package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// keepLine is the line that docs/howto/gitops-operate.md appends.
const keepLine = "commonAnnotations: {kustomize.toolkit.fluxcd.io/prune: disabled}\n"

// The steps of docs/howto/gitops-operate.md, for a team whose repository Flux applies. The steps before tenants,
// which install the operator and replace the guardrails, are not there.
func TestATeamThatIsHandedOverToTheOperatorKeepsAllThatFluxApplied(t *testing.T) {
	ofTeams.alone(t)
	r := controllers(t)
	name := fresh("date")
	repository := r.repository(t, name, map[string]string{"staging/app.yaml": configMap(name, "app")})
	fleet, err := r.git.Create(suite.Within(t), name+"-fleet")
	require.NoError(t, err)
	landwaiter := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Dir: fleet.Dir}
	landwaiter.Must(t, "platform", "init", ".", "--set", "environments=staging", "--set", "constraints=images")
	landwaiter.Must(t, "platform", "scaffold", ".", name, "--set", "namespaces="+name+"-web", "--set", "reconciler.source.url="+repository.URL(), "--set",
		"reconciler.source.secretRef.name=git")
	tenants := playedTenants(t, fleet, "staging", name)
	merge := func(message string) {
		t.Helper()
		require.Contains(t, landwaiter.Must(t, "platform", "check", "."), " 0 findings")
		commit, err := fleet.Push(suite.Within(t), message)
		require.NoError(t, err)
		require.NoError(t, flux.Reconcile(suite.Within(t), r.Cluster, flux.GitRepository(), flux.Namespace, name+"-fleet"))
		_, err = flux.Await(suite.Within(t), r.Cluster, flux.Kustomization(), flux.Namespace, tenants.GetName(), commit, metav1.ConditionTrue)
		require.NoError(t, err)
	}
	r.apply(t, fleet.Secret(flux.Namespace, name+"-login"), fleetSource(name, fleet), tenants)
	merge("the platform")
	r.apply(t, repository.Secret(name, "git"))
	_, err = flux.Await(suite.Within(t), r.Cluster, flux.Kustomization(), name, name, "", metav1.ConditionTrue)
	require.NoError(t, err)
	objects := []*unstructured.Unstructured{
		suite.Object("{apiVersion: v1, kind: Namespace, metadata: {name: %s-web}}", name),
		suite.Object("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: %s, name: %[1]s}}", name),
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: %s-web, name: %[1]s-reconciler}}", name),
		suite.Object("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: %s-web, name: default-deny}}", name),
		suite.Object("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: %s, name: %[1]s}}", name),
		suite.Object("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: %[1]s}}", name),
		suite.Object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: app}}", name),
	}
	before := r.uids(t, objects)

	refused := landwaiter.Run(t, "", "platform", "init", ".", "--set", "operator=true", "--force")
	require.NotZero(t, refused.Code)
	listed := regexp.MustCompile(`(?m)^ *to (.+), merge,`).FindStringSubmatch(refused.Stderr)
	require.NotNil(t, listed, refused.Stderr)
	for _, file := range strings.Split(listed[1], ", ") {
		appendTo(t, fleet, file, keepLine)
	}
	merge("keep the teams' objects")
	require.Equal(t, "disabled", r.get(t, "v1", "ServiceAccount", name, name).GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"])

	suite.Operate(t, r.Cluster, r.rendered)
	said := landwaiter.Must(t, "platform", "init", ".", "--set", "operator=true", "--force") + landwaiter.Must(t, "platform", "scaffold", ".", name)
	stale := regexp.MustCompile(`(?m)^(\S+) +no longer generated$`).FindAllStringSubmatch(said, -1)
	require.NotEmpty(t, stale, said)
	for _, file := range stale {
		require.NoError(t, os.Remove(filepath.Join(fleet.Dir, filepath.FromSlash(file[1]))))
	}
	merge("only Tenants")
	replace(t, fleet, "tenants/staging/kustomization.yaml", keepLine, "")
	merge("Tenants that are removed are deleted")
	require.Equal(t, before, r.uids(t, objects), "nothing was deleted and made again")

	// From here on they are the operator's: what somebody deletes comes back, and Flux has no part in it.
	require.NoError(t, r.Client.Delete(suite.Within(t), objects[3].DeepCopy()))
	suite.Eventually(t, func(context.Context) error {
		if again := r.get(t, "networking.k8s.io/v1", "NetworkPolicy", name+"-web", "default-deny"); again == nil || again.GetUID() == before[3] {
			return errors.New("the operator has not made the NetworkPolicy again")
		}
		return nil
	})
	next, err := repository.Commit(suite.Within(t), "next",
		map[string]string{"staging/app.yaml": configMap(name, "app"), "staging/more.yaml": configMap(name+"-web", "more")})
	require.NoError(t, err)
	require.NoError(t, flux.Reconcile(suite.Within(t), r.Cluster, flux.GitRepository(), name, name))
	r.applied(t, name, name, next)
	require.Equal(t, before[6], r.uids(t, objects)[6], "what ran was not made again")
	require.NotNil(t, r.get(t, "v1", "ConfigMap", name+"-web", "more"))
}

// uids returns the UIDs of objects that are there.
func (w *world) uids(t *testing.T, objects []*unstructured.Unstructured) []types.UID {
	t.Helper()
	uids := make([]types.UID, len(objects))
	for i, o := range objects {
		found := w.get(t, o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
		require.NotNil(t, found, fmt.Sprint(o.GetKind(), " ", o.GetNamespace(), "/", o.GetName()))
		uids[i] = found.GetUID()
	}
	return uids
}

// appendTo appends a line to a file of the platform's working copy.
func appendTo(t *testing.T, fleet *flux.Repository, name, line string) {
	t.Helper()
	file := filepath.Join(fleet.Dir, filepath.FromSlash(name))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, line...), 0o600))
}
