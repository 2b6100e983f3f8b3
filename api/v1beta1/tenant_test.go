package v1beta1_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tenantRules are those of a Tenant. Wrong patterns and sizes are tested below.
func tenantRules() []rule {
	kinds := []string{"Tenant"}
	const url = "{homeNamespace: a, reconciler: {source: {url: '%s'}}}"
	list := []rule{{
		kinds: kinds, names: true, message: "name a Tenant by at most 40 lower-case letters, digits and dashes: the name is a label value and begins the " +
			"names of objects",
		accepted: []string{"x", "iris-green", "a1", strings.Repeat("a", 40)}, rejected: []string{strings.Repeat("a", 41), "iris.green"},
	}, {
		kinds: kinds, path: "spec", message: "spec.homeNamespace cannot be changed: make another Tenant, and release the namespaces of this one first",
		before: "{homeNamespace: a}", accepted: []string{"{homeNamespace: a, namespaces: [b]}"},
		rejected: []string{"{homeNamespace: b}", "{homeNamespace: b, namespaces: [a]}"},
	}, {
		kinds: kinds, path: "spec", message: "spec.homeNamespace is a namespace of the system; name one of the team",
		accepted: in("{homeNamespace: %s}", "a", "kube", "default-team", "landwaiter-system"),
		rejected: in("{homeNamespace: %s}", "kube-system", "kube-x", "default", "flux-system", "gatekeeper-system"),
	}, {
		kinds: kinds, path: "spec", message: "spec.namespaces lists a namespace of the system; list those of the team",
		accepted: in("{homeNamespace: a, namespaces: [%s]}", "", "b", "b, c", "a"),
		rejected: in("{homeNamespace: a, namespaces: [b, %s]}", "kube-system", "kube-x", "default", "flux-system", "gatekeeper-system"),
	}, {
		kinds: kinds, path: "spec", message: "spec.namespacePrefix covers namespaces of the system; choose one of the team",
		accepted: in("{homeNamespace: a, namespacePrefix: %s}", "iris-", "iris-green-", "flux-system-", "kubernetes-"),
		rejected: in("{homeNamespace: a, namespacePrefix: %s}", "kube-", "kube-team-", "flux-", "gatekeeper-"),
	}, {
		kinds: kinds, path: "spec", message: "spec.reconciler.createNamespaces needs spec.namespacePrefix: without it there is no namespace that the " +
			"account could make",
		accepted: in("{homeNamespace: a, %s}", "reconciler: {createNamespaces: false}", "namespacePrefix: iris-, reconciler: {createNamespaces: true}"),
		rejected: []string{"{homeNamespace: a, reconciler: {createNamespaces: true}}"},
	}, {
		kinds: kinds, path: "spec.reconciler.serviceAccount", message: "pods that name no account run as default and would have its permissions; name another",
		accepted: in("{homeNamespace: a, reconciler: {serviceAccount: %s}}", "deployer", "default-deployer"),
		rejected: []string{"{homeNamespace: a, reconciler: {serviceAccount: default}}"},
	}, {
		kinds: kinds, path: "spec.reconciler.variablesFrom", message: "a Secret is named twice: remove one of the entries",
		accepted: in("{homeNamespace: a, reconciler: {variablesFrom: [%s]}}", "", "{secretRef: {name: s}}, {secretRef: {name: t}, optional: true}"),
		rejected: []string{"{homeNamespace: a, reconciler: {variablesFrom: [{secretRef: {name: s}}, {secretRef: {name: s}, optional: true}]}}"},
	}, {
		kinds: kinds, path: "spec.reconciler.source.url", message: "begin the URL with https://, ssh:// or oci://, and put credentials into source.secretRef",
		accepted: in(url, "https://git.example.com/iris", "ssh://git@git.example.com/iris", "ssh://git.example.com/iris",
			"ssh://APKAEIBAERJR2EXAMPLE@git-codecommit.eu-west-1.amazonaws.com/v1/repos/iris", "oci://registry.example.com/iris"),
		rejected: in(url, "http://git.example.com/iris", "https://me:secret@git.example.com/iris", "ssh://me:secret@git.example.com/iris",
			"ssh://git@me@git.example.com", "ssh://@git.example.com/iris", "git@git.example.com:iris", "file:///etc", "https://", "https://git.example.com/a b"),
	}}
	for _, people := range []string{"admins", "developers", "viewers"} {
		frame := "{homeNamespace: a, access: {" + people + ": [{%s}]}}"
		list = append(list, rule{
			kinds: kinds, path: "spec.access." + people + "[]", message: "names that begin with system: belong to the system; name users and groups of the team",
			accepted: in(frame, "kind: Group, name: iris", "kind: User, name: 'oidc:system:x'"),
			rejected: in(frame, "kind: Group, name: 'system:masters'", "kind: Group, name: 'system:authenticated'",
				"kind: User, name: 'system:serviceaccount:kube-system:x'"),
		}, rule{
			kinds: kinds, path: "spec.access." + people + "[]", message: "set namespace for a ServiceAccount, and remove it for a User or a Group",
			accepted: in(frame, "kind: ServiceAccount, name: s, namespace: a", "kind: User, name: u"),
			rejected: in(frame, "kind: ServiceAccount, name: s", "kind: User, name: u, namespace: a", "kind: Group, name: g, namespace: a"),
		})
	}
	return list
}

func TestTenantHasOnlyWellFormedFields(t *testing.T) {
	c := crds(t)["Tenant"]
	for name, row := range map[string]struct{ spec, path string }{
		"no home":                       {"{}", "spec.homeNamespace"},
		"home in capitals":              {"{homeNamespace: Iris}", "spec.homeNamespace"},
		"home too long for a namespace": {"{homeNamespace: " + strings.Repeat("a", 64) + "}", "spec.homeNamespace"},
		"a namespace twice":             {"{homeNamespace: a, namespaces: [b, b]}", "spec.namespaces[]"},
		"a pattern of namespaces":       {"{homeNamespace: a, namespaces: ['b-*']}", "spec.namespaces[]"},
		"a prefix without its dash":     {"{homeNamespace: a, namespacePrefix: iris}", "spec.namespacePrefix"},
		"a prefix of everything":        {"{homeNamespace: a, namespacePrefix: '-'}", "spec.namespacePrefix"},
		"a prefix of one letter":        {"{homeNamespace: a, namespacePrefix: a-}", "spec.namespacePrefix"},
		"a prefix that leaves no name":  {"{homeNamespace: a, namespacePrefix: " + strings.Repeat("a", 40) + "-}", "spec.namespacePrefix"},
		"a person without a name":       {"{homeNamespace: a, access: {admins: [{kind: User, name: ''}]}}", "spec.access.admins[].name"},
		"an account of no namespace's name": {"{homeNamespace: a, access: {viewers: [{kind: ServiceAccount, name: s, namespace: 'A b'}]}}",
			"spec.access.viewers[].namespace"},
		"an account that is no name": {"{homeNamespace: a, reconciler: {serviceAccount: 'a/b'}}", "spec.reconciler.serviceAccount"},
		"a source without a URL":     {"{homeNamespace: a, reconciler: {source: {}}}", "spec.reconciler.source.url"},
		"an interval that is none":   {"{homeNamespace: a, reconciler: {source: {url: 'https://g', interval: soon}}}", "spec.reconciler.source.interval"},
		"a Secret of another namespace": {"{homeNamespace: a, reconciler: {source: {url: 'https://g', secretRef: {name: s, namespace: b}}}}",
			"spec.reconciler.source.secretRef.namespace"},
		"a variable that is no text": {"{homeNamespace: a, reconciler: {variables: {REGION: [eu]}}}", "spec.reconciler.variables.REGION"},
		"variables of another namespace": {"{homeNamespace: a, reconciler: {variablesFrom: [{secretRef: {name: s, namespace: b}}]}}",
			"spec.reconciler.variablesFrom[].secretRef.namespace"},
		"variables of another kind": {"{homeNamespace: a, reconciler: {variablesFrom: [{configMapRef: {name: s}, secretRef: {name: s}}]}}",
			"spec.reconciler.variablesFrom[].configMapRef"},
		"variables of no Secret": {"{homeNamespace: a, reconciler: {variablesFrom: [{secretRef: {name: ''}}]}}",
			"spec.reconciler.variablesFrom[].secretRef.name"},
		"a quota that is no quantity":          {"{homeNamespace: a, isolation: {quota: {pods: many}}}", "spec.isolation.quota.pods"},
		"a registry without its slash":         {"{homeNamespace: a, isolation: {registries: [registry.example.com]}}", "spec.isolation.registries[]"},
		"a registry with a scheme":             {"{homeNamespace: a, isolation: {registries: ['https://registry.example.com/']}}", "spec.isolation.registries[]"},
		"a field that does not exist":          {"{homeNamespace: a, selector: {team: iris}}", "spec.selector"},
		"rules that only some namespaces have": {"{homeNamespace: a, verification: {policyLevel: Home}}", "spec.verification.policyLevel"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := c.check(t, object("Tenant", row.spec))
			require.NotEmpty(t, errs)
			require.Equal(t, row.path, at(errs[0]), errs)
		})
	}
}

func TestEveryRuleOfATenantNamesWhatToDo(t *testing.T) {
	fixes := []string{"name ", "make ", "list ", "choose ", "needs ", "begin ", "set ", "remove "}
	for _, r := range tenantRules() {
		require.True(t, slices.ContainsFunc(fixes, func(fix string) bool { return strings.Contains(r.message, fix) }), r.message)
	}
}
