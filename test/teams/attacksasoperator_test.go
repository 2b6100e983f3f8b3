//go:build e2e || nightly

package teams

import (
	"fmt"
	"strings"
)

const (
	// What the operator's objects of a team carry, and those that pin tags.
	ofGreen = "landwaiter.dev/owner: platform, landwaiter.dev/tenant: iris-green"
	pinned  = "app.kubernetes.io/managed-by: landwaiter-operator"
	// A Provider of a name, labels and a URL; an Assign of a name, labels, the rest of its match, location and value.
	provider = "{apiVersion: externaldata.gatekeeper.sh/v1beta1, kind: Provider, metadata: {name: %s, labels: {%s}}, spec: {url: %q, timeout: 1, caBundle: eA==}}"
	assign   = "{apiVersion: mutations.gatekeeper.sh/v1, kind: Assign, metadata: {name: %s, labels: {%s}}, spec: {applyTo: [{groups: [''], kinds: [Pod], " +
		"versions: [v1], operations: [CREATE]}], " +
		"match: {scope: Namespaced, %s}, location: %q, parameters: {assign: %s}}}"
	everyone   = "https://landwaiter.landwaiter-system.svc:443/v1/mutate"
	own        = "https://landwaiter.landwaiter-system.svc:443/v1/namespaces/iris-green/mutate"
	image      = "spec.containers[name:*].image"
	everywhere = "excludedNamespaces: [kube-system]"
	asks       = "{externalData: {provider: %s, dataSource: ValueAtLocation, failurePolicy: Fail}}"
	// A constraint of a name and a label, with further fields of spec and of match, and its prefixes.
	constraint = "{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: TenantAllowedRegistries, metadata: {name: %s, labels: {landwaiter.dev/owner: platform, " +
		"landwaiter.dev/tenant: %s}}, " +
		"spec: {enforcementAction: %s, match: {%skinds: [{apiGroups: [''], kinds: [Pod]}], namespaceSelector: {matchLabels: {landwaiter.dev/tenant: %s}}}, " +
		"parameters: {prefixes: [%s], tenantLabel: landwaiter.dev/tenant}}}"
	// A binding of a namespace, a name, labels, a role and subjects.
	bound = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: %s, name: %s, labels: {%s}}, " +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [%s]}"
	// What a Tenant's CRD says until Landwaiter does, as somebody sends it who merges a patch.
	pending = `{"type":"Effective","status":"Unknown","reason":"Pending","message":"Waiting for ` +
		`Landwaiter","lastTransitionTime":"1970-01-01T00:00:00Z"},{"type":"Ready","status":"Unknown","reason":"Pending","message":"Waiting for ` +
		`Landwaiter","lastTransitionTime":"1970-01-01T00:00:00Z"}`
	orphaned  = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`
	annotated = `{"metadata":{"annotations":{%q:"x"}}}`
)

func asksFor(provider string) string { return fmt.Sprintf(asks, provider) }

// labelled is an object of a team, of a kind, an apiVersion, a namespace and a name, with further fields.
func labelled(kind, namespace, name, fields string) request {
	return create("{apiVersion: %s, kind: %s, metadata: {namespace: %s, name: %s, labels: {%s}}%s}", apiVersions()[kind], kind, namespace, name, ofGreen, fields)
}

// subjectsOf asks to bind others by a binding that there is.
func subjectsOf(namespace, name, subject string) request {
	return change("RoleBinding", namespace, name, `{"subjects":[`+subject+`]}`)
}

// attacksAsOperator are those of somebody who acts with the operator's account. It counts
// as the platform, so the operator guardrails alone refuse them.
func attacksAsOperator() []attack {
	const rule, tenants, team = "operator-guardrail", "operator-tenants", "landwaiter.dev/tenant: iris-green, pod-security.kubernetes.io/enforce: restricted"
	const gone = "landwaiter.dev/owner: platform, landwaiter.dev/tenant: gone"
	all := []attack{
		{"bind admin in kube-system", operator(), rule, "", "only in namespaces with the label",
			create(roleBinding, "kube-system", "admin", "{kind: User, name: eve}")},
		{"bind it for everybody", operator(), rule, tenants, "of the system",
			subjectsOf("iris-green-web", "iris-green-admins", `{"kind":"Group","name":"system:authenticated"}`)},
		{"bind it for an account of the system", operator(), rule, tenants, "of the system",
			subjectsOf("iris-green-web", "iris-green-admins", `{"kind":"ServiceAccount","name":"x","namespace":"kube-system"}`)},
		{"a ConfigMap in kube-system", operator(), rule, "", "only in namespaces with the label",
			create("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: x}}")},
		{"an account in flux-system", operator(), rule, "", "only in namespaces with the label",
			create("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: flux-system, name: x}}")},
		{"give flux-system to a team", operator(), rule, tenants, "is one of the system",
			change("Namespace", "", "flux-system", label("landwaiter.dev/tenant", `"iris-green"`))},
		{"give somebody's namespace to a team", operator(), rule, tenants, "no namespace that exists",
			change("Namespace", "", "payments", label("landwaiter.dev/tenant", `"iris-green"`))},
		{"give a team's namespace to another", operator(), rule, tenants, "no namespace that exists",
			change("Namespace", "", "iris-red-web", label("landwaiter.dev/tenant", `"iris-green"`))},
		{"claim to have made a namespace", operator(), rule, "", "changes no annotation of namespaces iris-red-web",
			change("Namespace", "", "iris-red-web", `{"metadata":{"annotations":{"landwaiter.dev/created":"x"}}}`)},
		{"delete a namespace that it did not make", operator(), rule, tenants, "only namespaces that it made", remove("Namespace", "", "iris-red-web")},
		{"delete a namespace of nobody", operator(), rule, "", "only namespaces that it made", remove("Namespace", "", "payments")},
		{"exempt a team from Gatekeeper", operator(), rule, tenants, "changes no label of namespaces iris-green-web",
			change("Namespace", "", "iris-green-web", label("admission.gatekeeper.sh/ignore", `"x"`))},
		{"break the glass of a team's namespace", operator(), rule, "", "changes no annotation", change("Namespace", "", "iris-green-web", note("until"))},
		{"make a namespace of nobody", operator(), rule, "", "no namespace that exists", create(namespace, "free", "")},
		{"make one of the system", operator(), rule, tenants, "is one of the system", create(namespace, "kube-evil", team)},
		{"change a Tenant", operator(), rule, "", "changes no Tenant",
			change("Tenant", "", "iris-green", `{"spec":{"access":{"admins":[{"kind":"User","name":"eve"}]}}}`)},
		{"make a namespace of a Tenant that there is not", operator(), rule, "", "does not list Tenant ghost",
			create(namespace, "free", "landwaiter.dev/tenant: ghost, pod-security.kubernetes.io/enforce: restricted")},
		{"bind edit in a namespace whose Tenant is gone", operator(), rule, "", "does not list Tenant gone",
			create(bound, "orphan", "x", gone, "edit", "{kind: User, name: eve}")},
		{"lower pod security there", operator(), rule, "", "does not list Tenant gone",
			change("Namespace", "", "orphan", label("pod-security.kubernetes.io/enforce", `"privileged"`))},
		{"let Flux act there", operator(), rule, "", "does not list Tenant gone",
			create("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: orphan, name: x, labels: {%s}}, spec: "+
				"{serviceAccountName: x}}", gone)},
		{"limit the registries of everybody", operator(), rule, "", "nothing else",
			create(strings.ReplaceAll(constraint, "matchLabels", "matchExpressions: [], matchLabels"), "x", "x", "deny", "", "x", "evil.example.com/")},
		{"a limit by another label", operator(), rule, "", "nothing else",
			create(strings.ReplaceAll(constraint, "tenantLabel: landwaiter.dev/tenant", "tenantLabel: team"), "x", "x", "deny", "", "x", "registry.example.com/green/")},
		{"a limit that everybody shares", operator(), rule, "", "nothing else",
			create(strings.ReplaceAll(constraint, "tenantLabel: landwaiter.dev/tenant", "shared: [evil.example.com/]"), "x", "x", "deny", "", "x",
				"registry.example.com/green/")},
		{"limit those of another Tenant", operator(), rule, "", "nothing else", create(constraint, "x", "x", "deny", "", "iris-red", "evil.example.com/")},
		{"a limit by another name", operator(), rule, "", "keeps no constraint x",
			create(constraint, "x", "iris-green", "deny", "", "x", "registry.example.com/green/")},
		{"take over the limit of a cluster admin", operator(), rule, "", "keeps no constraint everybody", change("TenantAllowedRegistries", "", "everybody",
			`{"metadata":{"labels":{"landwaiter.dev/owner":"platform","landwaiter.dev/tenant":"everybody"}},`+
				`"spec":{"match":{"namespaceSelector":{"matchLabels":{"landwaiter.dev/tenant":"everybody"}}}}}`)},
		{"a limit that only warns", operator(), rule, "", "nothing else", create(constraint, "x", "x", "warn", "", "x", "registry.example.com/green/")},
		{"a limit with an exception", operator(), rule, "", "nothing else",
			create(constraint, "x", "x", "deny", "excludedNamespaces: ['*'], ", "x", "registry.example.com/green/")},
		{"a Kustomization with Flux's account", operator(), rule, "", "only in namespaces with the label",
			create("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: x}, spec: {serviceAccountName: " +
				"kustomize-controller}}")},
	}
	all = append(all, attacksOnMetadataAsOperator()...)
	all = append(all, attacksOnFormAsOperator()...)
	return append(all, attacksOnPinsAsOperator()...)
}

// attacksOnMetadataAsOperator let go of what is a Tenant's, or change what others say on it.
func attacksOnMetadataAsOperator() []attack {
	const rule, tenants = "operator-guardrail", "operator-tenants"
	off := func(others string) string {
		return `{"metadata":{"labels":{"landwaiter.dev/tenant":null,"toolkit.fluxcd.io/tenant":null` + others + `}}}`
	}
	condition := func(kind string) string {
		return `{"status":{"conditions":[{"type":"` + kind + `","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	}
	return []attack{
		{"let go of a namespace and lower its pod security", operator(), rule, tenants, "only with all labels of its Tenant",
			change("Namespace", "", "iris-green-web", off(`,"pod-security.kubernetes.io/enforce":"privileged"`))},
		{"let go of a namespace and take its pod security off", operator(), rule, tenants, "only with all labels of its Tenant",
			change("Namespace", "", "iris-green-web", off(`,"pod-security.kubernetes.io/enforce":null`))},
		{"let go of a namespace and say that it is another's", operator(), rule, tenants, "",
			change("Namespace", "", "iris-green-web", `{"metadata":{"labels":{"landwaiter.dev/tenant":null,"toolkit.fluxcd.io/tenant":"iris-red"}}}`)},
		{"let go of a namespace and forget that it was made", operator(), rule, "", "changes no annotation",
			change("Namespace", "", "iris-green-web", `{"metadata":{"annotations":{"landwaiter.dev/created":null}}}`)},
		{"have the garbage collector delete a Tenant", operator(), rule, "", "changes no owner of tenants iris-green", change("Tenant", "", "iris-green", orphaned)},
		{"have it delete a namespace", operator(), rule, "", "changes no owner of namespaces iris-green-web", change("Namespace", "", "iris-green-web", orphaned)},
		{"have it delete a network policy", operator(), rule, "", "changes no owner of networkpolicies default-deny",
			change("NetworkPolicy", "iris-green-web", "default-deny", orphaned)},
		{"have it delete the account", operator(), rule, "", "changes no owner of serviceaccounts iris-green",
			change("ServiceAccount", "iris-green", "iris-green", orphaned)},
		{"keep a Tenant by a finalizer", operator(), rule, "", "adds no finalizer but its own to tenants iris-green",
			change("Tenant", "", "iris-green", `{"metadata":{"finalizers":["example.com/stay"]}}`)},
		{"have a Tenant end without what it stands for", operator(), rule, "", "removes no finalizer of tenants iris-red",
			change("Tenant", "", "iris-red", `{"metadata":{"finalizers":null}}`)},
		{"keep a namespace by a finalizer", operator(), rule, "", "adds no finalizer",
			change("Namespace", "", "iris-green-web", `{"metadata":{"finalizers":["example.com/stay"]}}`)},
		{"have a Kustomization end without Flux", operator(), rule, "", "removes no finalizer of kustomizations iris-red",
			change("Kustomization", "iris-red", "iris-red", `{"metadata":{"finalizers":null}}`)},
		{"say of a Tenant that it is ready", operator(), rule, "", "only the condition Provisioned",
			changeBelow("status", "Tenant", "", "iris-green", condition("Ready"))},
		{"say that a Tenant has another namespace", operator(), rule, "", "only the condition Provisioned",
			changeBelow("status", "Tenant", "", "iris-green", `{"status":{"namespaces":[{"name":"x","state":"Active"}]}}`)},
		{"overwrite the keys that a TrustStore names", operator(), rule, "", "takes over no object: configmaps keys",
			change("ConfigMap", "iris-green", "keys", `{"data":{"cosign.pub":"evil"}}`)},
		{"take them over", operator(), rule, tenants, "takes over no object: configmaps keys", change("ConfigMap", "iris-green", "keys",
			`{"metadata":{"labels":{"landwaiter.dev/owner":"platform","landwaiter.dev/tenant":"iris-green"}},"data":{"cosign.pub":"evil"}}`)},
		{"delete them", operator(), rule, "", "takes over no object: configmaps keys", remove("ConfigMap", "iris-green", "keys")},
		{"bind the admins without saying whose that is", operator(), rule, "", "only with the labels",
			create(roleBinding, "iris-green-web", "admin", "{kind: Group, name: green-admins}")},
		{"give a team's objects to another team", operator(), rule, tenants, "only with the labels",
			change("ServiceAccount", "iris-green", "iris-green", label("landwaiter.dev/tenant", `"iris-red"`))},
		{"let a team change its network policy", operator(), rule, "", "only with the labels",
			change("NetworkPolicy", "iris-green-web", "default-deny", label("landwaiter.dev/owner", "null"))},
		{"let an account have a role of a cloud", operator(), rule, "", "changes no annotation of serviceaccounts iris-green",
			change("ServiceAccount", "iris-green", "iris-green", fmt.Sprintf(annotated, "eks.amazonaws.com/role-arn"))},
		{"let it have one by a label", operator(), rule, "", "changes no label of serviceaccounts iris-green",
			change("ServiceAccount", "iris-green", "iris-green", label("azure.workload.identity/use", `"true"`))},
		{"give it a pull secret", operator(), rule, "", "no other field of serviceaccounts iris-green",
			change("ServiceAccount", "iris-green", "iris-green", `{"imagePullSecrets":[{"name":"x"}]}`)},
		{"annotate a namespace", operator(), rule, "", "changes no annotation of namespaces iris-green-web",
			change("Namespace", "", "iris-green-web", fmt.Sprintf(annotated, "scheduler.alpha.kubernetes.io/node-selector"))},
		{"label a namespace", operator(), rule, tenants, "changes no label of namespaces iris-green-web",
			change("Namespace", "", "iris-green-web", label("istio-injection", `"disabled"`))},
		{"make a namespace with an annotation", operator(), rule, tenants, "changes no annotation",
			create("{apiVersion: v1, kind: Namespace, metadata: {name: iris-green-new, labels: {landwaiter.dev/tenant: iris-green}, annotations: " +
				"{landwaiter.dev/break-glass-until: x}}}")},
		{"keep Flux from a Kustomization", operator(), rule, "", "changes no annotation",
			change("Kustomization", "iris-green", "iris-green", fmt.Sprintf(annotated, "kustomize.toolkit.fluxcd.io/reconcile"))},
	}
}

// attacksOnFormAsOperator write values that others read differently than the operator guardrail.
func attacksOnFormAsOperator() []attack {
	const rule, tenants, fields = "operator-guardrail", "operator-tenants", `{"metadata":{"managedFields":[%s]}}`
	of := func(version, owned string) string {
		return fmt.Sprintf(fields, `{"manager":"kustomize-controller","operation":"Apply","apiVersion":"`+version+`","fieldsType":"FieldsV1","fieldsV1":`+owned+`}`)
	}
	const past = "landwaiter.dev/owner: platform, landwaiter.dev/tenant: past"
	const long = "iris-green-xxxxxxxxxxxx/../../../v1/mutat%65?x="
	return []attack{
		{"have Flux take people out of a Tenant", operator(), rule, "", "who owns fields of tenants iris-green",
			change("Tenant", "", "iris-green", of("landwaiter.dev/v1beta1", `{"f:spec":{"f:people":{}}}`))},
		{"have whoever wrote a Tenant lose its fields", operator(), rule, "", "who owns fields of tenants iris-green",
			change("Tenant", "", "iris-green", fmt.Sprintf(fields, "{}"))},
		{"have Flux take pod security off", operator(), rule, "", "who owns fields of namespaces iris-green-web", change("Namespace", "", "iris-green-web",
			of("v1", `{"f:metadata":{"f:labels":{"f:pod-security.kubernetes.io/enforce":{}}}}`))},
		{"a time that stops whoever lists Tenants", operator(), rule, "", "writes times as", changeBelow("status", "Tenant", "", "iris-green",
			`{"status":{"conditions":[{"type":"Provisioned","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01t00:00:00z"},`+pending+`]}}`)},
		{"somebody whose name reads like another's with a namespace", operator(), rule, "", "names the namespace of accounts alone",
			subjectsOf("iris-green-web", "iris-green-viewers",
				`{"kind":"Group","name":"green-viewers"},{"kind":"User","name":"ada","namespace":"corp"}`)},
		{"a Provider whose path leaves the Tenant's", operator(), tenants, "", "has another Provider",
			create(provider, "landwaiter-tenant-iris-green.iris-green-xxxxxxxxxxxx-0123456789",
				pinned+", "+ofGreen, strings.ReplaceAll(own, "iris-green", long))},
		{"have a Tenant end that Landwaiter lists as one that is there", operator(), rule, "", "does not list Tenant iris-late as one that ends",
			change("Tenant", "", "iris-late", `{"metadata":{"finalizers":null}}`)},
		{"bind admin where a Tenant ends", operator(), rule, "", "does not list Tenant past", create(bound, "past", "x", past, "admin", "{kind: User, name: eve}")},
		{"have Flux apply something else there", operator(), rule, "", "does not list Tenant past",
			change("Kustomization", "past", "past", `{"spec":{"path":"./evil","suspend":true}}`)},
		{"have Flux delete what it applied there", operator(), rule, "", "does not list Tenant past", remove("Kustomization", "past", "past")},
		{"delete a namespace there that it keeps", operator(), rule, "", "does not list Tenant past", remove("Namespace", "", "past")},
		{"take Landwaiter's own lease", operator(), rule, "", "keeps no Lease landwaiter",
			create("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: landwaiter-system, name: landwaiter}}")},
	}
}

// attacksOnPinsAsOperator are on the objects that pin tags.
func attacksOnPinsAsOperator() []attack {
	const rule, tenants, greens = "operator-guardrail", "operator-tenants", pinned + ", " + ofGreen
	var all []attack
	for name, a := range map[string]struct {
		also, says, provider, labels, url string
	}{
		"a Provider elsewhere": {tenants, "names no Provider but Landwaiter", "landwaiter-tenant-iris-green", greens,
			"https://evil.example.com/v1/mutate"},
		"a Provider that looks like ours": {tenants, "names no Provider but Landwaiter", "landwaiter-tenant-iris-green", greens, "https://landwaiter.landwaiter-system.svc:443.evil.example.com/v1/mutate"},
		"a Provider that says yes": {"", "names no Provider but Landwaiter", "landwaiter-mutate", pinned,
			"https://landwaiter.landwaiter-system.svc:443/v1/verify"},
		"the Provider of all asks one team": {"", "names no Provider but Landwaiter", "landwaiter-mutate", pinned, own},
		"the Provider of what verifies":     {"", "keeps no Provider", "landwaiter-verify", pinned, everyone},
		"the Provider of somebody else":     {"", "keeps no Provider", "vault", pinned, everyone},
		"a Provider of nobody":              {"", "without the label", "landwaiter-mutate", "", everyone},
		"a Provider whose host is a suffix": {"", "names no Provider but Landwaiter", "landwaiter-mutate", pinned,
			"https://xlandwaiter-landwaiter-systemxsvc:443/v1/mutate"},
		"a Provider of a Tenant that is no more": {"", "does not list Tenant gone", "landwaiter-tenant-gone",
			pinned + ", landwaiter.dev/owner: platform, landwaiter.dev/tenant: gone", own},
	} {
		all = append(all, attack{name, operator(), rule, a.also, a.says, create(provider, a.provider, a.labels, a.url)})
	}
	for name, a := range map[string]struct{ says, assign, location, what string }{
		"an Assign on command": {"nothing but images", "landwaiter-pods-containers", "spec.containers[name:*].command",
			asksFor("landwaiter-mutate")},
		"an Assign on the image of one container": {"nothing but images", "landwaiter-pods-containers", "spec.containers[name:app].image",
			asksFor("landwaiter-mutate")},
		"an Assign on templates":              {"keeps no Assign", "landwaiter-templates-containers", image, asksFor("landwaiter-mutate")},
		"an Assign of a constant":             {"only to what Landwaiter answers", "landwaiter-pods-containers", image, "{value: evil.example.com/x}"},
		"an Assign that asks somebody else":   {"only to what Landwaiter answers", "landwaiter-pods-containers", image, asksFor("evil")},
		"an Assign that asks what verifies":   {"only to what Landwaiter answers", "landwaiter-pods-containers", image, asksFor("landwaiter-verify")},
		"an Assign of all that asks one team": {"only to what Landwaiter answers", "landwaiter-pods-containers", image, asksFor("landwaiter-tenant-iris-green")},
		"an Assign that has another answer": {"only to what Landwaiter answers", "landwaiter-pods-containers", image,
			"{externalData: {provider: landwaiter-mutate, failurePolicy: UseDefault, default: evil.example.com/x}}"},
		"an Assign that goes on without an answer": {"only to what Landwaiter answers", "landwaiter-pods-containers", image,
			"{externalData: {provider: landwaiter-mutate, failurePolicy: Ignore}}"},
		"an Assign by another name":   {"ask no other Provider", "landwaiter-pods-x-pods-containers", image, asksFor("landwaiter-mutate")},
		"the Assign of somebody else": {"keeps no Assign", "istio", image, asksFor("landwaiter-mutate")},
	} {
		all = append(all, attack{name, operator(), rule, "", a.says, create(assign, a.assign, pinned, everywhere, a.location, a.what)})
	}
	const name = "landwaiter-tenant-iris-green-pods-containers"
	return append(all,
		attack{"an Assign of a team that asks another", operator(), rule, tenants, "ask no other Provider",
			create(assign, name, greens, "namespaces: [iris-green]", image, asksFor("landwaiter-tenant-iris-red"))},
		attack{"an Assign of a team that is for everybody else", operator(), rule, tenants, "in the namespaces that pin tags",
			create(assign, name, greens, "excludedNamespaces: [iris-green]", image, asksFor("landwaiter-tenant-iris-green"))},
		attack{"an Assign of a team for another", operator(), tenants, "", "has another Assign",
			create(assign, name, greens, "namespaces: [iris-green, iris-red]", image, asksFor("landwaiter-tenant-iris-green"))},
		attack{"a Provider of a team that asks another", operator(), tenants, "", "has another Provider",
			create(provider, "landwaiter-tenant-iris-green", greens, strings.ReplaceAll(own, "green", "red"))},
		attack{"a Provider of a tenant namespace by the name of the home namespace", operator(), tenants, "", "has another Provider",
			create(provider, "landwaiter-tenant-iris-green", greens, strings.ReplaceAll(own, "iris-green", "iris-green-web"))},
		attack{"a Provider of a team whose hash is of another name", operator(), tenants, "", "has another Provider",
			create(provider, "landwaiter-tenant-iris-gr-0123456789", greens, own)},
	)
}

// attacksOnTenantsAsOperator stay in namespaces of Tenants, and go against what these say.
func attacksOnTenantsAsOperator() []attack {
	const rule = "operator-tenants"
	const kustomization = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: iris-green, labels: {" + ofGreen +
		"}}, spec: {%s}}"
	changes := func(text string) request { return change("Kustomization", "iris-green", "iris-green", text) }
	source := func(kind, name, url string) request {
		return labelled(kind, "iris-green", name, fmt.Sprintf(", spec: {interval: 1m, timeout: 60s, ref: {branch: main}, url: %q}", url))
	}
	return []attack{
		{"permissions for somebody whom the Tenant does not name", operator(), rule, "", "to others than these",
			subjectsOf("iris-green-web", "iris-green-admins", `{"kind":"User","name":"eve"}`)},
		{"permissions of an admin for a developer", operator(), rule, "", "to others than these",
			subjectsOf("iris-green-web", "iris-green-admins", `{"kind":"Group","name":"green-devs"}`)},
		{"permissions by another name", operator(), rule, "", "has no rolebindings x in namespace iris-green-web",
			create(bound, "iris-green-web", "x", ofGreen, "admin", "{kind: Group, name: green-admins}")},
		{"another role by a known name", operator(), rule, "", "gives ClusterRole admin to others",
			create(bound, "iris-green", "landwaiter-reference-reader", ofGreen, "admin", "{kind: ServiceAccount, namespace: landwaiter-system, name: landwaiter}")},
		{"permissions in the home namespace for a developer", operator(), rule, "", "has no rolebindings iris-green-developers",
			create(bound, "iris-green", "iris-green-developers", ofGreen, "edit", "{kind: Group, name: green-devs}")},
		{"permissions for another team", operator(), rule, "", "to others than these",
			subjectsOf("iris-green-web", "iris-green-reconciler", `{"kind":"ServiceAccount","namespace":"iris-red","name":"iris-red"}`)},
		{"Secrets of the home namespace for somebody", operator(), rule, "", "to others than these",
			create(bound, "iris-green", "landwaiter-reference-reader", ofGreen, "landwaiter-reference-reader",
				"{kind: ServiceAccount, namespace: iris-red, name: iris-red}")},
		{"a Kustomization in the home namespace with another account", operator(), rule, "", "has another serviceAccountName of kustomizations iris-green",
			changes(`{"spec":{"serviceAccountName":"kustomize-controller"}}`)},
		{"a Kustomization of another source", operator(), rule, "", "has another sourceRef of kustomizations iris-green",
			changes(`{"spec":{"sourceRef":{"kind":"GitRepository","name":"evil"}}}`)},
		{"a Kustomization of another path", operator(), rule, "", "has another path of kustomizations iris-green", changes(`{"spec":{"path":"./evil"}}`)},
		{"a Kustomization that is not applied", operator(), rule, "", "has another suspend of kustomizations iris-green", changes(`{"spec":{"suspend":true}}`)},
		{"a Kustomization that patches", operator(), rule, "", "has another patches of kustomizations iris-green",
			changes(`{"spec":{"patches":[{"patch":"evil"}]}}`)},
		{"a Kustomization with variables of a Secret that the Tenant does not name", operator(), rule, "", "has another postBuild of kustomizations iris-green",
			changes(`{"spec":{"postBuild":{"substituteFrom":[{"kind":"Secret","name":"x"}]}}}`)},
		{"a Kustomization in a tenant namespace", operator(), rule, "", "has no kustomizations iris-green in namespace iris-green-web",
			create(kustomization, "iris-green-web", "serviceAccountName: iris-green")},
		{"a Kustomization with a kubeconfig", operator(), rule, "", "has another kubeConfig of kustomizations iris-green",
			changes(`{"spec":{"kubeConfig":{"secretRef":{"name":"x"}}}}`)},
		{"a Kustomization more", operator(), rule, "", "has no kustomizations evil",
			labelled("Kustomization", "iris-green", "evil", ", spec: {path: ./, serviceAccountName: iris-green}")},
		{"a repository of somebody else", operator(), rule, "", "has another url of gitrepositories iris-green",
			source("GitRepository", "iris-green", "https://example.com/evil")},
		{"a repository more", operator(), rule, "", "has no gitrepositories evil", source("GitRepository", "evil", "https://example.com/evil")},
		{"an artifact instead of a repository", operator(), rule, "", "has no ocirepositories iris-green",
			source("OCIRepository", "iris-green", "oci://example.com/evil")},
		{"an account more", operator(), rule, "", "has no serviceaccounts evil", labelled("ServiceAccount", "iris-green", "evil", "")},
		{"an account in a tenant namespace", operator(), rule, "", "has no serviceaccounts iris-green in namespace iris-green-web",
			labelled("ServiceAccount", "iris-green-web", "iris-green", "")},
		{"a ConfigMap more", operator(), rule, "", "has no configmaps evil", labelled("ConfigMap", "iris-green", "evil", ", data: {a: b}")},
		{"variables that the Tenant does not have", operator(), rule, "", "has no configmaps tenant-vars",
			labelled("ConfigMap", "iris-green", "tenant-vars", ", data: {a: b}")},
		{"tell a team that it is another", operator(), rule, "", "has another tenant of configmaps landwaiter-tenant",
			change("ConfigMap", "iris-green", "landwaiter-tenant", `{"data":{"tenant":"iris-red"}}`)},
		{"tell a team that it has another namespace", operator(), rule, "", "has not all namespaces",
			change("ConfigMap", "iris-green", "landwaiter-tenant", `{"data":{"namespaces":"iris-green\niris-red"}}`)},
		{"a quota that the Tenant does not have", operator(), rule, "", "has another quota in namespace iris-green-web",
			change("ResourceQuota", "iris-green-web", "tenant", `{"spec":{"hard":{"pods":"0"}}}`)},
		{"open the default-deny", operator(), rule, "", "has another ingress of networkpolicies default-deny",
			change("NetworkPolicy", "iris-green-web", "default-deny", `{"spec":{"ingress":[{}]}}`)},
		{"have it deny less", operator(), rule, "", "has another policyTypes of networkpolicies default-deny",
			change("NetworkPolicy", "iris-green-web", "default-deny", `{"spec":{"policyTypes":["Ingress"]}}`)},
		{"have it deny some pods", operator(), rule, "", "has another podSelector of networkpolicies default-deny",
			change("NetworkPolicy", "iris-green-web", "default-deny", `{"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}`)},
		{"a network policy more", operator(), rule, "", "has no networkpolicies x",
			labelled("NetworkPolicy", "iris-green-web", "x", ", spec: {podSelector: {}, ingress: [{}]}")},
		{"a network policy of tenant namespaces in the home namespace", operator(), rule, "", "has no networkpolicies allow-dns in namespace iris-green",
			labelled("NetworkPolicy", "iris-green", "allow-dns", ", spec: {podSelector: {}, ingress: [{}]}")},
		{"delete the default-deny", operator(), rule, "", "has networkpolicies default-deny, and keeps it",
			remove("NetworkPolicy", "iris-green-web", "default-deny")},
		{"have Flux delete what a team runs", operator(), rule, "", "has kustomizations iris-green, and keeps it",
			remove("Kustomization", "iris-green", "iris-green")},
		{"delete a team's account", operator(), rule, "", "has serviceaccounts iris-green, and keeps it", remove("ServiceAccount", "iris-green", "iris-green")},
		{"let go of the default-deny", operator(), rule, "", "has networkpolicies default-deny, and keeps it",
			change("NetworkPolicy", "iris-green-web", "default-deny", `{"metadata":{"labels":{"landwaiter.dev/owner":null,"landwaiter.dev/tenant":null}}}`)},
		{"let go of a namespace", operator(), rule, "", "has namespace iris-red-web, and keeps it",
			change("Namespace", "", "iris-red-web", `{"metadata":{"labels":{"landwaiter.dev/tenant":null,"toolkit.fluxcd.io/tenant":null}}}`)},
		{"delete a namespace of a Tenant that is there", operator(), rule, "", "has namespace iris-green-web, and keeps it",
			remove("Namespace", "", "iris-green-web")},
		{"have a home namespace keep workloads", operator(), rule, "", "has landwaiter.dev/home-namespace of namespace iris-green",
			change("Namespace", "", "iris-green", label("landwaiter.dev/home-namespace", "null"))},
		{"have a tenant namespace keep no workloads", operator(), rule, "", "has another landwaiter.dev/home-namespace of namespace iris-green-web",
			change("Namespace", "", "iris-green-web", label("landwaiter.dev/home-namespace", `"iris-green"`))},
		{"a namespace that the Tenant does not have", operator(), rule, "", "has no namespace free",
			create(namespace, "free", "landwaiter.dev/tenant: iris-green, pod-security.kubernetes.io/enforce: restricted")},
		{"make a namespace without pod security", operator(), rule, "", "of namespace iris-green-new",
			create(namespace, "iris-green-new", "landwaiter.dev/tenant: iris-green, toolkit.fluxcd.io/tenant: iris-green")},
		{"lower pod security", operator(), rule, "", "has another pod-security.kubernetes.io/enforce of namespace iris-green-web",
			change("Namespace", "", "iris-green-web", label("pod-security.kubernetes.io/enforce", `"privileged"`))},
		{"a longer list of registries", operator(), rule, "", "another list of registries", change("TenantAllowedRegistries", "", "iris-green",
			`{"spec":{"enforcementAction":"deny","match":{"kinds":[{"apiGroups":[""],"kinds":["Pod"]}],`+
				`"namespaceSelector":{"matchLabels":{"landwaiter.dev/tenant":"iris-green"}}},"parameters":{"prefixes":["registry.example.com/green/",`+
				`"evil.example.com/"]}}}`)},
		{"lift the limit of a Tenant's registries", operator(), rule, "", "has tenantallowedregistries iris-green, and keeps it",
			remove("TenantAllowedRegistries", "", "iris-green")},
		{"take pod security off", operator(), rule, "", "has pod-security.kubernetes.io/enforce of namespace iris-green-web",
			change("Namespace", "", "iris-green-web", label("pod-security.kubernetes.io/enforce", "null"))},
	}
}
