//go:build e2e || nightly

package teams

import "strings"

const (
	provider = "{apiVersion: externaldata.gatekeeper.sh/v1beta1, kind: Provider, metadata: {name: %s}, spec: {url: %q, timeout: 1, caBundle: eA==}}"
	assign   = "{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, metadata: {name: %s}, spec: {applyTo: [{groups: [''], kinds: [Pod], versions: [v1]}], " +
		"location: %q, parameters: {assign: %s}}}"
	own   = "https://landwaiter.landwaiter-system.svc:443/v1/namespaces/iris-green/mutate"
	image = "spec.containers[name:*].image"
	asked = "{externalData: {provider: landwaiter-tenant-iris-green, dataSource: ValueAtLocation, failurePolicy: Fail}}"
	// A constraint of a name and a label, with further fields of spec and of match, and its prefixes.
	constraint = "{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: TenantAllowedRegistries, metadata: {name: %s, labels: {landwaiter.dev/owner: platform, landwaiter.dev/tenant: %s}}, " +
		"spec: {enforcementAction: %s, match: {%skinds: [{apiGroups: [''], kinds: [Pod]}], namespaceSelector: {matchLabels: {landwaiter.dev/tenant: %s}}}, parameters: {prefixes: [%s], tenantLabel: landwaiter.dev/tenant}}}"
)

// attacksAsOperator are those of somebody who acts with the operator's account. It counts
// as the platform, so its fence alone refuses them.
func attacksAsOperator() []attack {
	const rule, team = "operator-fence", "landwaiter.dev/tenant: iris-green, pod-security.kubernetes.io/enforce: restricted"
	bind := func(namespace, role, subjects string) request { return create(roleBinding, namespace, role, subjects) }
	all := []attack{
		{"bind admin in kube-system", operator(), rule, "", "only in namespaces with the label", bind("kube-system", "admin", "{kind: User, name: eve}")},
		{"bind it for everybody", operator(), rule, "operator-tenants", "of the system", bind("iris-green-web", "admin", "{kind: Group, name: 'system:authenticated'}")},
		{"bind it for an account of the system", operator(), rule, "operator-tenants", "of the system", bind("iris-green-web", "admin", "{kind: ServiceAccount, name: x, namespace: kube-system}")},
		{"a ConfigMap in kube-system", operator(), rule, "", "only in namespaces with the label", create("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: x}}")},
		{"an account in flux-system", operator(), rule, "", "only in namespaces with the label", create("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: flux-system, name: x}}")},
		{"give flux-system to a team", operator(), rule, "operator-tenants", "is one of the system", change("Namespace", "", "flux-system", label("landwaiter.dev/tenant", `"iris-green"`))},
		{"give somebody's namespace to a team", operator(), rule, "operator-tenants", "no namespace that exists", change("Namespace", "", "payments", label("landwaiter.dev/tenant", `"iris-green"`))},
		{"give a team's namespace to another", operator(), rule, "operator-tenants", "no namespace that exists", change("Namespace", "", "iris-red-web", label("landwaiter.dev/tenant", `"iris-green"`))},
		{"claim to have made a namespace", operator(), rule, "", "did not make namespace", change("Namespace", "", "iris-red-web", `{"metadata":{"annotations":{"landwaiter.dev/made":"x"}}}`)},
		{"delete a namespace that it did not make", operator(), rule, "", "only namespaces that it made", remove("Namespace", "", "iris-red-web")},
		{"delete a namespace of nobody", operator(), rule, "", "only namespaces that it made", remove("Namespace", "", "payments")},
		{"exempt a team from Gatekeeper", operator(), rule, "", "exempts no namespace", change("Namespace", "", "iris-green-web", label("admission.gatekeeper.sh/ignore", `"x"`))},
		{"break the glass of a team's namespace", operator(), rule, "", "breaks no glass", change("Namespace", "", "iris-green-web", note("until"))},
		{"make a namespace of nobody", operator(), rule, "", "no namespace that exists", create(namespace, "free", "")},
		{"make one of the system", operator(), rule, "operator-tenants", "is one of the system", create(namespace, "kube-evil", team)},
		{"change a Tenant", operator(), rule, "", "changes no Tenant", change("Tenant", "", "iris-green", `{"spec":{"people":{"admins":[{"kind":"User","name":"eve"}]}}}`)},
		{"make a namespace of a Tenant that there is not", operator(), rule, "", "does not list Tenant ghost", create(namespace, "free", "landwaiter.dev/tenant: ghost, pod-security.kubernetes.io/enforce: restricted")},
		{"bind edit in a namespace whose Tenant is gone", operator(), rule, "", "does not list Tenant gone", create(roleBinding, "orphan", "edit", "{kind: User, name: eve}")},
		{"lower pod security there", operator(), rule, "", "does not list Tenant gone", change("Namespace", "", "orphan", label("pod-security.kubernetes.io/enforce", `"privileged"`))},
		{"let Flux act there", operator(), rule, "", "does not list Tenant gone",
			create("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: orphan, name: x}, spec: {serviceAccountName: x}}")},
		{"make a namespace without pod security", operator(), rule, "operator-tenants", "without the label pod-security", create(namespace, "iris-green-new", "landwaiter.dev/tenant: iris-green")},
		{"limit the registries of everybody", operator(), rule, "", "nothing else", create(strings.ReplaceAll(constraint, "matchLabels", "matchExpressions: [], matchLabels"), "x", "x", "deny", "", "x", "evil.example.com/")},
		{"a limit by another label", operator(), rule, "", "nothing else", create(strings.ReplaceAll(constraint, "tenantLabel: landwaiter.dev/tenant", "tenantLabel: team"), "x", "x", "deny", "", "x", "registry.example.com/green/")},
		{"a limit that everybody shares", operator(), rule, "", "nothing else", create(strings.ReplaceAll(constraint, "tenantLabel: landwaiter.dev/tenant", "shared: [evil.example.com/]"), "x", "x", "deny", "", "x", "registry.example.com/green/")},
		{"limit those of another Tenant", operator(), rule, "", "nothing else", create(constraint, "x", "x", "deny", "", "iris-red", "evil.example.com/")},
		{"a limit by another name", operator(), rule, "", "keeps no constraint x", create(constraint, "x", "iris-green", "deny", "", "x", "registry.example.com/green/")},
		{"take over the limit of a cluster admin", operator(), rule, "", "keeps no constraint everybody", change("TenantAllowedRegistries", "", "everybody",
			`{"metadata":{"labels":{"landwaiter.dev/owner":"platform","landwaiter.dev/tenant":"everybody"}},"spec":{"match":{"namespaceSelector":{"matchLabels":{"landwaiter.dev/tenant":"everybody"}}}}}`)},
		{"a limit that only warns", operator(), rule, "", "nothing else", create(constraint, "x", "x", "warn", "", "x", "registry.example.com/green/")},
		{"a limit with an exception", operator(), rule, "", "nothing else", create(constraint, "x", "x", "deny", "excludedNamespaces: ['*'], ", "x", "registry.example.com/green/")},
		{"a Kustomization with Flux's account", operator(), rule, "", "only in namespaces with the label",
			create("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: x}, spec: {serviceAccountName: kustomize-controller}}")},
	}
	for name, a := range map[string]struct {
		says, provider, url string
	}{
		"a Provider elsewhere":              {"names no Provider but Landwaiter", "landwaiter-tenant-x", "https://evil.example.com/v1/mutate"},
		"a Provider that looks like ours":   {"names no Provider but Landwaiter", "landwaiter-tenant-x", "https://landwaiter.landwaiter-system.svc:443.evil.example.com/v1/mutate"},
		"a Provider that says yes":          {"names no Provider but Landwaiter", "landwaiter-mutate", "https://landwaiter.landwaiter-system.svc:443/v1/verify"},
		"the Provider of what verifies":     {"keeps no Provider", "landwaiter-verify", own},
		"the Provider of somebody else":     {"keeps no Provider", "vault", own},
		"a Provider whose host is a suffix": {"names no Provider but Landwaiter", "landwaiter-mutate", "https://xlandwaiter-landwaiter-systemxsvc:443/v1/mutate"},
	} {
		all = append(all, attack{name, operator(), rule, "", a.says, create(provider, a.provider, a.url)})
	}
	for name, a := range map[string]struct{ says, assign, location, what string }{
		"an Assign on command":                     {"nothing but images", "landwaiter-x", "spec.containers[name:*].command", asked},
		"an Assign on the image of one container":  {"nothing but images", "landwaiter-x", "spec.containers[name:app].image", asked},
		"an Assign of a constant":                  {"only to what Landwaiter answers", "landwaiter-x", image, "{value: evil.example.com/x}"},
		"an Assign that asks somebody else":        {"only to what Landwaiter answers", "landwaiter-x", image, "{externalData: {provider: evil, failurePolicy: Fail}}"},
		"an Assign that has another answer":        {"only to what Landwaiter answers", "landwaiter-x", image, "{externalData: {provider: landwaiter-mutate, failurePolicy: UseDefault, default: evil.example.com/x}}"},
		"an Assign that goes on without an answer": {"only to what Landwaiter answers", "landwaiter-x", image, "{externalData: {provider: landwaiter-mutate, failurePolicy: Ignore}}"},
		"the Assign of somebody else":              {"keeps no Assign", "istio", image, asked},
	} {
		all = append(all, attack{name, operator(), rule, "", a.says, create(assign, a.assign, a.location, a.what)})
	}
	return all
}

// attacksOnTenantsAsOperator stay in namespaces of Tenants, and go against what these say.
func attacksOnTenantsAsOperator() []attack {
	const rule = "operator-tenants"
	const kustomization = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: x}, spec: {%s}}"
	return []attack{
		{"rights for somebody whom the Tenant does not name", operator(), rule, "", "to nobody of these", create(roleBinding, "iris-green-web", "admin", "{kind: User, name: eve}")},
		{"rights of an admin for a developer", operator(), rule, "", "to nobody of these", create(roleBinding, "iris-green-web", "admin", "{kind: Group, name: green-devs}")},
		{"rights in home for a developer", operator(), rule, "", "to nobody of these", create(roleBinding, "iris-green", "edit", "{kind: Group, name: green-devs}")},
		{"rights for another team", operator(), rule, "", "to nobody of these", create(roleBinding, "iris-green-web", "landwaiter-reconciler", "{kind: ServiceAccount, namespace: iris-red, name: iris-red}")},
		{"Secrets of home for somebody", operator(), rule, "", "to nobody of these", create(roleBinding, "iris-green", "landwaiter-material", "{kind: ServiceAccount, namespace: iris-red, name: iris-red}")},
		{"a Kustomization in home with another account", operator(), rule, "", "act as ServiceAccount iris-green", create(kustomization, "iris-green", "serviceAccountName: kustomize-controller")},
		{"a Kustomization in a member", operator(), rule, "", "act as ServiceAccount iris-green", create(kustomization, "iris-green-web", "serviceAccountName: iris-green")},
		{"a Kustomization with a kubeconfig", operator(), rule, "", "act as ServiceAccount iris-green", create(kustomization, "iris-green", "serviceAccountName: iris-green, kubeConfig: {secretRef: {name: x}}")},
		{"a namespace that the Tenant does not have", operator(), rule, "", "has no namespace free", create(namespace, "free", "landwaiter.dev/tenant: iris-green, pod-security.kubernetes.io/enforce: restricted")},
		{"lower pod security", operator(), rule, "", "asks for pod security Restricted", change("Namespace", "", "iris-green-web", label("pod-security.kubernetes.io/enforce", `"privileged"`))},
		{"a longer list of registries", operator(), rule, "", "another list of registries", change("TenantAllowedRegistries", "", "iris-green",
			`{"spec":{"enforcementAction":"deny","match":{"kinds":[{"apiGroups":[""],"kinds":["Pod"]}],"namespaceSelector":{"matchLabels":{"landwaiter.dev/tenant":"iris-green"}}},"parameters":{"prefixes":["registry.example.com/green/","evil.example.com/"]}}}`)},
		{"lift the limit of a Tenant's registries", operator(), rule, "", "another list of registries", remove("TenantAllowedRegistries", "", "iris-green")},
		{"take pod security off", operator(), rule, "", "asks for pod security Restricted", change("Namespace", "", "iris-green-web", label("pod-security.kubernetes.io/enforce", "null"))},
	}
}
