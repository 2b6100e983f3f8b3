package scaffold

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

const imagesConstraint = "infrastructure/policies/images/verified-images.yaml"

func TestCheckFindsNamespacesOfTeamsThatNobodyVerifies(t *testing.T) {
	config := func(match string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			put1(t, dir, "infrastructure/policies/own/rights.yaml", "apiVersion: config.gatekeeper.sh/v1alpha1\nkind: Config\nmetadata: {name: config, namespace: "+
				"gatekeeper-system}\nspec: {match: ["+match+"]}\n")
			rewrite(t, dir, "infrastructure/policies/own/kustomization.yaml", "resources: []", "resources: [rights.yaml]")
		}
	}
	excludes := func(pattern string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			rewrite(t, dir, "infrastructure/policies/images/kustomization.yaml", "- kube-system\n", "- kube-system\n      - '"+pattern+"'\n")
		}
	}
	for name, c := range map[string]wrong{
		"by exemptNamespaces": {func(t *testing.T, dir string) {
			excludes("iris-red-web")(t, dir)
			rewrite(t, dir, SettingsFile, "exemptNamespaces:\n", "exemptNamespaces:\n- iris-red-web\n")
		}, imagesConstraint, "Tenant iris-red: VerifiedImages verified-images leaves out namespace iris-red-web, and so does every other constraint for images, so " +
			"no image is verified there: take it out of exemptNamespaces in .landwaiter.yaml and run platform init"},
		"by a constraint":            {excludes("iris-red"), imagesConstraint, "leaves out namespace iris-red, and"},
		"by a pattern":               {excludes("*-web"), imagesConstraint, "leaves out namespace iris-red-web, and"},
		"by a pattern of its prefix": {excludes("iris-red-a*"), imagesConstraint, "leaves out namespaces that begin with iris-red-, and"},
		"by the labels of teams": {func(t *testing.T, dir string) {
			rewrite(t, dir, "infrastructure/policies/images/verified-images.yaml", "  match:\n",
				"  match:\n    namespaceSelector: {matchExpressions: [{key: landwaiter.dev/tenant, operator: DoesNotExist}]}\n")
		}, imagesConstraint, "leaves out namespace iris-red-web"},
		"by labels of pods": {func(t *testing.T, dir string) {
			rewrite(t, dir, "infrastructure/policies/images/verified-images.yaml", "  match:\n", "  match:\n    labelSelector: {matchLabels: {verify: 'yes'}}\n")
		}, imagesConstraint, "leaves out namespace iris-red-web"},
		"by a label of Gatekeeper": {func(t *testing.T, dir string) {
			rewrite(t, dir, redObjects, "    toolkit.fluxcd.io/tenant: iris-red\n  name: iris-red-web\n",
				"    toolkit.fluxcd.io/tenant: iris-red\n    admission.gatekeeper.sh/ignore: 'true'\n  name: iris-red-web\n")
		}, redObjects, "Tenant iris-red: Namespace iris-red-web has the label admission.gatekeeper.sh/ignore"},
		"by Gatekeeper's Config": {config("{excludedNamespaces: ['iris-*'], processes: [webhook]}"), "infrastructure/policies/own/rights.yaml",
			"Config gatekeeper-system/config excludes namespace iris-red-web from admission"},
		"by the Config for all its processes": {config("{excludedNamespaces: [iris-red-web], processes: ['*']}"), "infrastructure/policies/own/rights.yaml",
			"Config gatekeeper-system/config excludes namespace iris-red-web from admission"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, small(t)) })
	}
	t.Run("not by the Config for audits, or by what another constraint has", func(t *testing.T) {
		dir := small(t)
		config("{excludedNamespaces: [iris-red-web], processes: [audit]}")(t, dir)
		excludes("iris-red-web")(t, dir)
		put1(t, dir, "infrastructure/policies/own/other.yaml", "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: VerifiedImages\nmetadata: {name: "+
			"other}\nspec: {enforcementAction: warn, match: {namespaces: [iris-red-web]}}\n")
		rewrite(t, dir, "infrastructure/policies/own/kustomization.yaml", "[rights.yaml]", "[rights.yaml, other.yaml]")
		require.Empty(t, found(t, dir))
	})
}

// mutatingCondition leaves debug containers to the validating webhook, which therefore must not have it.
const mutatingCondition = `{validatingWebhookMatchConditions: [{name: debug-containers-stay, expression: '!(request.operation == "UPDATE" && request.resource.group + "/" + request.resource.resource == "/pods" &&
      (!has(request.subResource) || request.subResource == "") && has(object.spec.ephemeralContainers))'}]}`

func TestCheckFindsValuesOfGatekeeperThatOpenTheGate(t *testing.T) {
	const own, release = "infrastructure/gatekeeper/values-own.yaml", "infrastructure/gatekeeper/release.yaml"
	values := func(text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			rewrite(t, dir, own, "values: {}", "values: "+text)
		}
	}
	const id = "HelmRelease flux-system/gatekeeper: the value "
	for name, c := range map[string]wrong{
		"fails open": {values("{validatingWebhookFailurePolicy: Ignore}"), own,
			id + "validatingWebhookFailurePolicy is Ignore, so what Gatekeeper does not answer in time is admitted"},
		"fails open for labels":   {values("{validatingWebhookCheckIgnoreFailurePolicy: Ignore}"), own, id + "validatingWebhookCheckIgnoreFailurePolicy is Ignore"},
		"the chart's own default": {values("{validatingWebhookFailurePolicy: null}"), own, "validatingWebhookFailurePolicy is Ignore"},
		"no webhook":              {values("{disableValidatingWebhook: true}"), own, "disableValidatingWebhook is true"},
		"labels of pods":          {values("{validatingWebhookObjectSelector: {matchLabels: {verify: 'yes'}}}"), own, "leaves out pods by their labels"},
		"rules without pods": {values("{validatingWebhookCustomRules: [{apiGroups: [apps], resources: [deployments], operations: [CREATE]}]}"), own,
			"validatingWebhookCustomRules has no CREATE pods and no UPDATE pods"},
		"rules for other groups": {values("{validatingWebhookCustomRules: [{apiGroups: [apps], apiVersions: ['*'], resources: ['*'], operations: ['*']}]}"), own,
			"validatingWebhookCustomRules has no CREATE pods"},
		"rules without debugging": {
			values("{validatingWebhookCustomRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE, UPDATE]}]}"), own,
			"validatingWebhookCustomRules has no UPDATE pods/ephemeralcontainers, so"},
		"a scope without pods": {values("{validatingWebhookScope: Cluster}"), own, "validatingWebhookScope is Cluster"},
		"a condition of its own": {values("{validatingWebhookMatchConditions: [{name: not-web, expression: 'request.namespace != \"iris-red-web\"'}]}"), own,
			`validatingWebhookMatchConditions has "not-web"`},
		"a part of a condition": {values("{validatingWebhookMatchConditions: [{name: updates, expression: 'request.operation == \"UPDATE\"'}]}"), own,
			`validatingWebhookMatchConditions has "updates"`},
		"of the mutating webhook": {values(mutatingCondition), own, `validatingWebhookMatchConditions has "debug-containers-stay"`},
		"a label of a team": {values("{validatingWebhookExemptNamespacesLabels: {landwaiter.dev/tenant: [iris-red]}}"), own,
			"leaves out namespaces with the label landwaiter.dev/tenant=iris-red, which namespace iris-red-web of Tenant iris-red has"},
		"a label of its Namespace": {values("{validatingWebhookExemptNamespacesLabels: {pod-security.kubernetes.io/enforce: [restricted]}}"), own,
			"label pod-security.kubernetes.io/enforce=restricted"},
		"the name of a namespace": {values("{validatingWebhookExemptNamespacesLabels: {kubernetes.io/metadata.name: [kube-system, iris-red-web]}}"), own,
			"label kubernetes.io/metadata.name=iris-red-web"},
		"who may have the label": {values("{controllerManager: {exemptNamespaces: [kube-system, iris-red-web]}}"), own,
			id + "controllerManager.exemptNamespaces lets namespace iris-red-web of Tenant iris-red have the label admission.gatekeeper.sh/ignore"},
		"by a beginning": {values("{controllerManager: {exemptNamespacePrefixes: [iris-red-a]}}"), own,
			"controllerManager.exemptNamespacePrefixes lets namespace iris-red-any"},
		"by an end": {values("{controllerManager: {exemptNamespaceSuffixes: [-web]}}"), own,
			"controllerManager.exemptNamespaceSuffixes lets namespace iris-red-web"},
		"in the release": {func(t *testing.T, dir string) {
			rewrite(t, dir, release, "validatingWebhookFailurePolicy: Fail", "validatingWebhookFailurePolicy: Ignore")
		}, release, "validatingWebhookFailurePolicy is Ignore"},
		"from a ConfigMap of the tree": {func(t *testing.T, dir string) {
			put1(t, dir, "infrastructure/gatekeeper/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: flux-system}\ndata: {values.yaml: "+
				"'disableValidatingWebhook: true'}\n")
			rewrite(t, dir, "infrastructure/gatekeeper/kustomization.yaml", "- release.yaml\n", "- release.yaml\n- more.yaml\n")
			rewrite(t, dir, own, "spec:\n", "spec:\n  valuesFrom: [{kind: ConfigMap, name: more}]\n")
		}, release, "disableValidatingWebhook is true"},
		"exemptNamespaces by hand": {func(t *testing.T, dir string) {
			rewrite(t, dir, SettingsFile, "exemptNamespaces:\n", "exemptNamespaces:\n- iris-red-web\n")
		}, SettingsFile, "Tenant iris-red: exemptNamespaces has namespace iris-red-web, and platform init refuses that"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, small(t)) })
	}
	t.Run("not by values for others", func(t *testing.T) {
		dir := small(t)
		values("{validatingWebhookCustomRules: [{apiGroups: ['*'], apiVersions: ['*'], resources: ['*', '*/*'], operations: [CREATE, UPDATE]}], controllerManager: "+
			"{exemptNamespaces: [monitoring], exemptNamespacePrefixes: [kube-]}, validatingWebhookExemptNamespacesLabels: {kubernetes.io/metadata.name: "+
			"[calico-system]}, validatingWebhookTimeoutSeconds: 6}")(t, dir)
		require.Empty(t, found(t, dir))
	})
}

// What init was told last is what a team's images run by.
func TestInitRefusesToExemptANamespaceOfATeam(t *testing.T) {
	allows := func(context.Context, string) (func(namespace, image string) bool, error) {
		return func(string, string) bool { return true }, nil
	}
	for name, c := range map[string]struct {
		enforcement, exempt string
		refused             bool
	}{
		"a team's, with deny":     {"deny", "iris-red-web", true},
		"a team's, with dryrun":   {"dryrun", "iris-red-web", true},
		"a team's home namespace": {"warn", "iris-red", true},
		"the platform's":          {"deny", "monitoring", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			p := Platform{Constraints: []string{imagesSet}, Environments: []string{"staging"}, Enforcement: c.enforcement}
			p, err := p.Complete()
			require.NoError(t, err)
			p.ExemptNamespaces = append(p.ExemptNamespaces, c.exempt)
			tree, err := NewPlatform(p)
			require.NoError(t, err)
			err = p.CheckLockout(t.Context(), dir, tree, WriteOptions{Force: true}, allows)
			if !c.refused {
				require.NoError(t, err)
				return
			}
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, err.Error(), "nothing was written: nobody would verify images of teams")
			require.Contains(t, err.Error(), "leaves out namespace "+c.exempt)
			require.Contains(t, err.Error(), "exemptNamespaces")
		})
	}
}

// The operator makes the namespaces, so the tree names them in Tenants alone.
func TestATenantsNamespacesThatOnlyTheOperatorMakesAreVerifiedToo(t *testing.T) {
	tenant := team("iris-red", func(s *v1beta1.TenantSpec) { s.NamespacePrefix = ""; s.Reconciler.CreateNamespaces = false })
	dir := light(t,
		example{platform: &Platform{Constraints: []string{imagesSet}, Operator: true, Environments: []string{"staging"}, ExemptNamespaces: []string{"iris-red-web"}},
			teams: []Team{{Tenant: tenant}}}.write(t))
	var says []string
	for _, f := range found(t, dir) {
		says = append(says, f.Message)
	}
	require.Contains(t, strings.Join(says, "\n"), "leaves out namespace iris-red-web")
}
