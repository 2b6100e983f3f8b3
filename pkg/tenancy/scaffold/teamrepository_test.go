package scaffold

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// teamsOwn is the repository of a team that signs its images.
func teamsOwn(t *testing.T) string {
	t.Helper()
	return examples()["team-flux"].write(t)
}

func TestATeamsOwnRepositoryIsHeldToItsTenant(t *testing.T) {
	const release = "base/release.yaml"
	more := func(t *testing.T, dir, objects string) {
		t.Helper()
		put1(t, dir, "verification/more.yaml", objects)
		rewrite(t, dir, "verification/kustomization.yaml", "resources:\n", "resources:\n- more.yaml\n")
	}
	for name, c := range map[string]wrong{
		"an account of others": {func(t *testing.T, dir string) {
			rewrite(t, dir, release, "serviceAccountName: iris-green", "serviceAccountName: flux-operator")
		}, release, "HelmRelease iris-green/podinfo: spec.serviceAccountName is flux-operator, and the cluster lets Tenant iris-green act as iris-green alone"},
		"no account": {func(t *testing.T, dir string) {
			rewrite(t, dir, release, "  serviceAccountName: iris-green\n", "")
		}, release, "spec.serviceAccountName is missing"},
		"a namespace of others": {func(t *testing.T, dir string) {
			rewrite(t, dir, "base/kustomization.yaml", "namespace: iris-green", "namespace: ops")
		}, release, "HelmRelease ops/podinfo: metadata.namespace is ops, which is no namespace of Tenant iris-green"},
		"pods in a namespace of others": {func(t *testing.T, dir string) {
			rewrite(t, dir, release, "targetNamespace: iris-green-web", "targetNamespace: iris-red-web")
		}, release, "spec.targetNamespace is iris-red-web"},
		"another cluster": {func(t *testing.T, dir string) {
			rewrite(t, dir, release, "  serviceAccountName: iris-green\n", "  serviceAccountName: iris-green\n  kubeConfig: {secretRef: {name: other}}\n")
		}, release, "HelmRelease iris-green/podinfo: spec.kubeConfig is for another cluster"},
		"a source of others": {func(t *testing.T, dir string) {
			rewrite(t, dir, release, "kind: HelmRepository\n", "kind: HelmRepository\n        namespace: ops-team\n")
		}, release, "spec.chart.spec.sourceRef.namespace is ops-team"},
		"a namespace with a name of others": {func(t *testing.T, dir string) {
			more(t, dir, "apiVersion: v1\nkind: Namespace\nmetadata: {name: iris-red-api}\n")
		}, "verification/more.yaml", "Namespace iris-red-api: metadata.name is iris-red-api"},
		"a namespace that nobody verifies": {func(t *testing.T, dir string) {
			more(t, dir, "apiVersion: v1\nkind: Namespace\nmetadata: {name: iris-green-api, labels: {admission.gatekeeper.sh/ignore: 'yes'}}\n")
		}, "verification/more.yaml", "Namespace iris-green-api has the label admission.gatekeeper.sh/ignore, which only the platform may set"},
		"rights in the whole cluster": {func(t *testing.T, dir string) {
			more(t, dir, "apiVersion: rbac.authorization.k8s.io/v1\n"+bound("ClusterRoleBinding", "name: x", "view", "kind: Group, name: green-devs")+"\n")
		}, "verification/more.yaml", "ClusterRoleBinding x gives ClusterRole view in the whole cluster, which the account of Tenant iris-green may not"},
		"every right": {func(t *testing.T, dir string) {
			more(t, dir, "apiVersion: rbac.authorization.k8s.io/v1\n"+
				bound("RoleBinding", "name: x, namespace: iris-green-web", "cluster-admin", "kind: Group, name: green-devs")+"\n")
		}, "verification/more.yaml", "RoleBinding iris-green-web/x gives ClusterRole cluster-admin in namespace iris-green-web"},
		"a pod in the home namespace": {func(t *testing.T, dir string) {
			more(t, dir, "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: iris-green}\nspec: {containers: [{name: x, image: x}]}\n")
		}, "verification/more.yaml", "Pod iris-green/x is in the home namespace, which keeps no workloads"},
		"a folder that is not there": {func(t *testing.T, dir string) {
			more(t, dir, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: more, namespace: iris-green}\nspec: {interval: 1m, prune: "+
				"true, path: ./bsae, serviceAccountName: iris-green, sourceRef: {kind: GitRepository, name: iris-green}}\n")
		}, "verification/more.yaml", "Kustomization iris-green/more: spec.path ./bsae is not there"},
		"a source that no folder has": {func(t *testing.T, dir string) {
			rewrite(t, dir, release, "kind: HelmRepository\n        name: podinfo", "kind: HelmRepository\n        name: podinfoo")
		}, release, "names HelmRepository podinfoo, which no folder of this repository has"},
		"a file that names no Tenant": {func(t *testing.T, dir string) {
			put1(t, dir, TeamFile, "kind: Tenant\nspec: {homeNamespce: x}\n")
		}, TeamFile, "it names no Tenant"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, teamsOwn(t)) })
	}
	t.Run("nothing without the file, which is a note", func(t *testing.T) {
		dir := teamsOwn(t)
		require.NoError(t, os.Remove(filepath.Join(dir, TeamFile)))
		notes := found(t, dir)
		require.Len(t, notes, 1)
		require.Equal(t, resource.Note, notes[0].Severity)
		require.Contains(t, notes[0].Message, "there is no .landwaiter-team.yaml, so nobody checked whether the team may use these namespaces and accounts")
	})
	t.Run("what the Tenant allows", func(t *testing.T) {
		dir := teamsOwn(t)
		put1(t, dir, "more/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n")
		more(t, dir, "apiVersion: v1\nkind: Namespace\nmetadata: {name: iris-green-api}\n---\napiVersion: rbac.authorization.k8s.io/v1\n"+
			bound("RoleBinding", "name: x, namespace: iris-green-web", "edit", "kind: ServiceAccount, name: ci")+"\n---\n"+
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: more, namespace: iris-green}\nspec: {interval: 1m, prune: true, path: "+
			"./more, serviceAccountName: iris-green, targetNamespace: iris-green-api, sourceRef: {kind: GitRepository, name: iris-green}}\n")
		require.Empty(t, found(t, dir))
	})
}

// What checks resources gets them as each folder builds them, and what one folder lacks and another one has was forgotten.
func TestResourcesOfATeamsRepositoryAreCheckedAsEachFolderBuildsThem(t *testing.T) {
	dir := teamsOwn(t)
	rewrite(t, dir, "staging/kustomization.yaml", "- ../verification\n", "- policy.yaml\n")
	put1(t, dir, "staging/policy.yaml", content(t, dir, "verification/policy.yaml"))
	var texts []string
	report, err := Check(t.Context(), dir, CheckOptions{Resources: func(_ context.Context, text string, whole bool) ([]resource.Finding, error) {
		require.False(t, whole)
		texts = append(texts, text)
		if strings.Contains(text, "kind: Verifier\n") {
			return []resource.Finding{{ID: "ResourceInvalid", Severity: resource.Error,
				Message: "Verifier iris-green/release-signature: spec.cosing: there is no such field"}}, nil
		}
		return []resource.Finding{
			{ID: MissingID, Severity: resource.Note, Message: "VerificationPolicy iris-green/images: it names Verifier release-signature, which the files do not have"},
			{ID: MissingID, Severity: resource.Note, Message: "VerificationPolicy iris-green/images: it names Verifier release, which the files do not have"}}, nil
	}})
	require.NoError(t, err)
	require.Len(t, texts, 2, "folders that others include are not applied by themselves")
	says := map[string]resource.Finding{}
	for _, f := range report.Findings {
		says[f.Message] = f
	}
	require.Len(t, says, 3, "%v", report.Findings)
	require.Equal(t, "verification/verifier.yaml", says["Verifier iris-green/release-signature: spec.cosing: there is no such field"].File)
	forgotten := says["staging: VerificationPolicy iris-green/images: it names Verifier release-signature, which the files do not have; production has it"]
	require.Equal(t, resource.Error, forgotten.Severity)
	require.Equal(t, "staging/policy.yaml", forgotten.File)
	require.Equal(t, resource.Note, says["VerificationPolicy iris-green/images: it names Verifier release, which the files do not have"].Severity)
}

// The platform's Kustomization puts what names no namespace into the only one of the team.
func TestResourcesWithoutANamespaceAreInTheOnlyOneOfTheTeam(t *testing.T) {
	for name, c := range map[string]struct{ team, want string }{
		"of one namespace":      {teamFile(alone("shop")), "namespace: shop"},
		"of several namespaces": {teamFile(team("shop", nil)), ""},
		"unknown":               {"", "namespace: default"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			put1(t, dir, "verifier.yaml", "apiVersion: landwaiter.dev/v1beta1\nkind: Verifier\nmetadata: {name: v}\n")
			if c.team != "" {
				put1(t, dir, TeamFile, c.team)
			}
			var got string
			_, err := Check(t.Context(), dir, CheckOptions{Resources: func(_ context.Context, text string, _ bool) ([]resource.Finding, error) {
				got = text
				return nil, nil
			}})
			require.NoError(t, err)
			require.Contains(t, got, "kind: Verifier")
			require.Contains(t, got, c.want)
			require.Equal(t, c.want != "", strings.Contains(got, "namespace: "), got)
		})
	}
}

// A cluster would refuse what these act as, or where they get it from.
func TestCheckFindsObjectsOfFluxThatActForOthers(t *testing.T) {
	const file = "tenants/base/iris-red/more.yaml"
	sync := func(spec string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			put1(t, dir, file, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: more, namespace: iris-red}\nspec: {interval: 1m, "+
				"prune: true, path: ./more, "+spec+"}\n")
			rewrite(t, dir, "tenants/base/iris-red/kustomization.yaml", "resources:\n", "resources:\n- more.yaml\n")
		}
	}
	const own = "sourceRef: {kind: GitRepository, name: iris-red}"
	for name, c := range map[string]wrong{
		"the account without permissions": {sync(own + ", serviceAccountName: default"), file,
			"Kustomization iris-red/more: spec.serviceAccountName is default, which has no permissions in the home namespace of Tenant iris-red: name iris-red"},
		"an account that is not there": {sync(own + ", serviceAccountName: ops"), file, "spec.serviceAccountName is ops, which has no permissions"},
		"a source of the platform": {sync("sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}, serviceAccountName: iris-red"),
			file, "spec.sourceRef names GitRepository flux-system of namespace flux-system, which Flux's lockdown refuses: name a source in iris-red"},
		"into a namespace of others": {sync(own + ", serviceAccountName: iris-red, targetNamespace: iris-blue"), file,
			"Kustomization iris-red/more: spec.targetNamespace is iris-blue, which is no namespace of Tenant iris-red"},
		"as Flux itself, to decrypt": {sync(own + ", serviceAccountName: iris-red, decryption: {provider: sops}"), file,
			"Kustomization iris-red/more decrypts with the cloud identity of Flux itself: name a Secret"},
		"a source of a team that is not there": {sync("sourceRef: {kind: GitRepository, name: x, namespace: ops-team}, serviceAccountName: iris-red"), file,
			"GitRepository ops-team/x, which is not there"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, small(t)) })
	}
	for _, url := range []string{"https://github.com/example/iris-red", "ssh://git@GitHub.com:22/example/iris-red.git"} {
		for _, account := range []string{"", ", serviceAccountName: kustomize-controller"} {
			t.Run("the repository of a team as Flux itself, "+url+account, func(t *testing.T) {
				wrong{func(t *testing.T, dir string) {
					sync("sourceRef: {kind: GitRepository, name: infra}"+account)(t, dir)
					rewrite(t, dir, file, "namespace: iris-red", "namespace: flux-system")
					put1(t, dir, file, content(t, dir, file)+"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: infra, namespace: "+
						"flux-system}\nspec: {interval: 1m, url: "+url+"}\n")
				}, file, "Kustomization flux-system/more: spec.sourceRef names GitRepository infra, which has the repository of Tenant iris-red, so whoever writes there " +
					"acts as more than the Tenant's account iris-red: remove it, or apply it in namespace iris-red as iris-red"}.isFound(t, small(t))
			})
		}
	}
	t.Run("another repository as Flux itself", func(t *testing.T) {
		dir := small(t)
		sync("sourceRef: {kind: GitRepository, name: infra}, serviceAccountName: kustomize-controller")(t, dir)
		rewrite(t, dir, file, "namespace: iris-red", "namespace: flux-system")
		put1(t, dir, file, content(t, dir, file)+"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: infra, namespace: "+
			"flux-system}\nspec: {interval: 1m, url: 'https://github.com/example/iris-red-infra'}\n")
		require.Empty(t, found(t, dir))
	})
	t.Run("an account that the platform made", func(t *testing.T) {
		dir := small(t)
		sync(own+", serviceAccountName: deployer")(t, dir)
		put1(t, dir, "tenants/base/iris-red/account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: deployer, namespace: iris-red}\n")
		rewrite(t, dir, "tenants/base/iris-red/kustomization.yaml", "resources:\n", "resources:\n- account.yaml\n")
		require.Empty(t, found(t, dir))
	})
}

// A folder for a misspelt environment would be applied nowhere.
func TestATeamsRepositoryHasOnlyPlacesThatThePlatformHas(t *testing.T) {
	dir := examples()["groups"].write(t)
	for place, says := range map[string]string{"iris-dev": "", "prodcution": "--place prodcution: " + dir +
		" has no such environment or cluster; use iris-dev, iris-test", "infra-ops": "use iris-dev, iris-test"} {
		r := Repository{Tenant: team("iris-red", nil), Places: []string{place}}
		err := r.fromTree(filepath.Join(dir, "tenants/base/iris-red/tenant.yaml"))
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, says)
	}
}

func TestASecretRefThatIsNearlyASecretOfTheTreeIsFound(t *testing.T) {
	dir := small(t)
	put1(t, dir, "tenants/base/iris-red/auth.yaml", strings.Replace(sealedSecret(sealedValue, sealedValue), "name: login", "name: git-auth", 1))
	rewrite(t, dir, "tenants/base/iris-red/kustomization.yaml", "- tenant.yaml\n", "- tenant.yaml\n- auth.yaml\n")
	near := func(name string, names []string) (string, bool) {
		return "git-auth", name == "git-auht" && slices.Contains(names, "git-auth")
	}
	for name, found := range map[string]bool{"git-auht": true, "git-auth": false, "elsewhere": false} {
		rewrite(t, dir, "tenants/base/iris-red/sync.yaml", "  timeout: 60s\n", "  secretRef: {name: "+name+"}\n  timeout: 60s\n")
		report, err := Check(t.Context(), dir, CheckOptions{Near: near})
		require.NoError(t, err)
		says := slices.IndexFunc(report.Findings, func(f resource.Finding) bool { return f.ID == "SecretMissing" })
		require.Equal(t, found, says >= 0, name)
		if found {
			require.Equal(t, "GitRepository iris-red/iris-red: spec.secretRef names Secret git-auht, which is not in the tree: is git-auth meant?",
				report.Findings[says].Message)
		}
		rewrite(t, dir, "tenants/base/iris-red/sync.yaml", "  secretRef: {name: "+name+"}\n", "")
	}
}
