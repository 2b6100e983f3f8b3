package isolation

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// isolationCase is one case of a team.
type isolationCase struct {
	id, tries string
	// shows lists requirements that docs/multitenancy.md (R) and docs/gitops.md publish, for
	// whoever changes a case.
	shows []string
	who   []role
	// needsOther says that the case is about another team.
	needsOther bool
	requests   func(*scene, pair) []request
}

// caseNobody is the ID of what a Tenant without people and account leaves untried.
const caseNobody = "team-people"

// caseLeftOut is the ID of what limits leave untried.
const caseLeftOut = "left-out"

// cases are those of teams, in the order in which they are printed.
func cases() []isolationCase {
	return slices.Concat(otherCases(), ownCases(), clusterCases())
}

// inEach makes requests for each namespace.
func inEach(namespaces []string, of func(namespace string) []request) []request {
	var all []request
	for _, namespace := range namespaces {
		all = append(all, of(namespace)...)
	}
	return all
}

// createOwnKinds asks to create Landwaiter's kinds in a namespace, or in the cluster.
func createOwnKinds(namespace string) []request {
	var all []request
	for _, kind := range ownKinds(namespace != "") {
		all = append(all, create(group(v1beta1.Group, v1beta1.Version, kind.Plural), kind.Name, namespace, map[string]any{"spec": map[string]any{}}))
	}
	return all
}

func otherCases() []isolationCase {
	everybody := members()
	other := func(of func(namespace string) []request) func(*scene, pair) []request {
		return func(_ *scene, p pair) []request { return inEach(p.reach, of) }
	}
	return []isolationCase{
		{"other-rules", "write rules and keys of another team", []string{"R2"}, everybody, true, other(createOwnKinds)},
		{"other-secrets", "read or write the Secrets of another team", []string{"R2", "R8", "R15"}, everybody, true, other(func(n string) []request {
			return []request{mayDo("get", core("secrets"), "", n), mayDo("list", core("secrets"), "", n), mayDo("watch", core("secrets"), "", n),
				create(core("secrets"), "Secret", n, map[string]any{"stringData": map[string]any{"probe": "x"}})}
		})},
		{"other-reads", "see what another team runs, its rules, reports and events", []string{"R2", "R10"}, everybody, true, other(readsOf)},
		{"other-workloads", "run something in a namespace of another team", []string{"R1", "F9"}, everybody, true, other(func(n string) []request {
			return []request{create(core("pods"), "Pod", n, podBody()), create(core("configmaps"), "ConfigMap", n, nil),
				mayDo("create", group("apps", "v1", "deployments"), "", n), mayDo("patch", core("pods"), "ephemeralcontainers", n),
				mayDo("create", core("pods"), "exec", n), mayDo("create", core("pods"), "attach", n), mayDo("create", core("pods"), "portforward", n)}
		})},
		{"other-accounts", "act as an account of another team", []string{"R15", "F9"}, everybody, true, other(func(n string) []request {
			return []request{mayDo("create", core("serviceaccounts"), "token", n), mayDo("impersonate", core("serviceaccounts"), "", n), create(core("serviceaccounts"), "ServiceAccount", n, nil)}
		})},
		{"other-permissions", "give itself permissions in a namespace of another team", []string{"R1", "T10"}, everybody, true, other(func(n string) []request {
			return []request{bind(n, "view"), mayDo("create", group(rbacGroup, "v1", "roles"), "", n), mayDo("escalate", group(rbacGroup, "v1", "roles"), "", n), mayDo("bind", group(rbacGroup, "v1", "roles"), "", n)}
		})},
		{"other-limits", "change quotas or network policies of another team", []string{"R18", "A10"}, everybody, true, other(func(n string) []request {
			policies := group("networking.k8s.io", "v1", "networkpolicies")
			return []request{create(policies, "NetworkPolicy", n, map[string]any{"spec": map[string]any{"podSelector": map[string]any{}}}), mayDo("delete", policies, "", n), mayDo("patch", core("resourcequotas"), "", n), mayDo("delete", core("resourcequotas"), "", n)}
		})},
		{"other-flux", "have Flux apply something in a namespace of another team", []string{"F9", "F11"}, everybody, true, other(func(n string) []request {
			return []request{mayDo("create", group(fluxGroup, "v1", "kustomizations"), "", n), mayDo("create", group("helm.toolkit.fluxcd.io", "v2", "helmreleases"), "", n), mayDo("create", group("source.toolkit.fluxcd.io", "v1", "gitrepositories"), "", n)}
		})},
		{"other-reports", "forge reports and events of another team", []string{"R10"}, everybody, true, other(func(n string) []request {
			var all []request
			for _, verb := range []string{"create", "update", "patch", "delete"} {
				all = append(all, mayDo(verb, reports(), "", n), mayDo(verb, core("events"), "", n))
			}
			return all
		})},
		{"other-namespace", "relabel or delete a namespace of another team", []string{"T9"}, everybody, true, other(func(n string) []request {
			return slices.Concat(guarded("tenant-labels", change("take namespace "+n+" off its team", core("namespaces"), "", n, labels(v1beta1.LabelTenant, nil))),
				guarded("namespace-deletion", remove(core("namespaces"), "", n)))
		})},
		{"other-names", "take a name that is another team's", []string{"T5"}, everybody, true, func(_ *scene, p pair) []request { return namesOf(p.other) }},
	}
}

// reports is the resource of reports.
func reports() schema.GroupVersionResource {
	return group(v1beta1.ReportGroup, v1beta1.ReportVersion, v1beta1.ReportResource)
}

// readsOf asks about reading in a namespace.
func readsOf(n string) []request {
	resources := []schema.GroupVersionResource{core("pods"), core("configmaps"), core("events"), core("resourcequotas"), group("apps", "v1", "deployments"), reports()}
	for _, kind := range ownKinds(true) {
		resources = append(resources, group(v1beta1.Group, v1beta1.Version, kind.Plural))
	}
	all := []request{mayDo("get", core("pods"), "log", n)}
	for _, of := range resources {
		all = append(all, mayDo("get", of, "", n), mayDo("list", of, "", n))
	}
	return all
}

// bind asks to bind a ClusterRole to a user that nobody is.
func bind(namespace, clusterRole string) request {
	r := create(group(rbacGroup, "v1", "rolebindings"), "RoleBinding", namespace, map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": clusterRole},
		"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": probeName}}})
	r.does = "bind ClusterRole " + clusterRole + place(namespace)
	return r
}

// namesOf asks to make namespaces with names that belong to a team.
func namesOf(t *team) []request {
	var all []request
	if prefix := t.tenant.Spec.NamespacePrefix; prefix != "" {
		all = append(all, newNamespace(prefix+probeName, nil))
	}
	return guarded("namespace-names", all...)
}

// newNamespace asks to create a namespace.
func newNamespace(name string, labels map[string]any) request {
	fields := map[string]any{}
	if labels != nil {
		fields["labels"] = labels
	}
	r := create(core("namespaces"), "Namespace", "", fields)
	r.body = object("v1", "Namespace", "", name, fields)
	r.does, r.name = "create namespace "+name, name
	return r
}
