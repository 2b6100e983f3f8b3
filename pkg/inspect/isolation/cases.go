package isolation

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// isolationCase is one case of a team.
type isolationCase struct {
	id, tries string
	// shows lists requirements that docs/design/multitenancy.md (R) and docs/design/gitops-points.md publish, for
	// authors who change a case.
	shows []string
	who   []role
	// needsOther says that the case is about another team.
	needsOther bool
	requests   func(*scene, pair) []request
}

// caseNobody is the ID of the attempts that a Tenant without people and account leaves out.
const caseNobody = "team-people"

// caseLeftOut is the ID of the attempts that limits leave out.
const caseLeftOut = "left-out"

// cases are the cases of teams, in the order in which they are printed.
func cases() []isolationCase {
	return slices.Concat(otherCases(), ownCases(), clusterCases())
}

// inEach builds requests for each namespace.
func inEach(namespaces []string, of func(namespace string) []request) []request {
	var all []request
	for _, namespace := range namespaces {
		all = append(all, of(namespace)...)
	}
	return all
}

// createOwnKinds requests to create Landwaiter's kinds in a namespace, or in the cluster.
func createOwnKinds(namespace string) []request {
	var all []request
	for _, kind := range ownKinds(namespace != "") {
		all = append(all,
			create(group(v1beta1.Group, v1beta1.Version, kind.Plural), kind.Name, namespace, map[string]any{"spec": map[string]any{}}))
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
		{"other-secrets", "read or write the Secrets of another team", []string{"R2", "R8", "R15"}, everybody, true,
			other(func(n string) []request {
				return []request{mayDo("get", core("secrets"), "", n), mayDo("list", core("secrets"), "", n), mayDo("watch", core("secrets"), "", n),
					create(core("secrets"), "Secret", n, map[string]any{"stringData": map[string]any{"probe": "x"}})}
			})},
		{"other-reads", "see what another team runs, its rules, reports and events", []string{"R2", "R10"}, everybody, true, other(readsOf)},
		{"other-workloads", "run something in a namespace of another team", []string{"R1", "F9"}, everybody, true,
			other(func(n string) []request {
				return []request{create(core("pods"), "Pod", n, podBody()), create(core("configmaps"), "ConfigMap", n, nil),
					mayDo("create", group("apps", "v1", "deployments"), "", n), mayDo("patch", core("pods"), "ephemeralcontainers", n),
					mayDo("create", core("pods"), "exec", n), mayDo("create", core("pods"), "attach", n), mayDo("create", core("pods"), "portforward", n)}
			})},
		{"other-accounts", "act as an account of another team", []string{"R15", "F9"}, everybody, true, other(func(n string) []request {
			return []request{mayDo("create", core("serviceaccounts"), "token", n), mayDo("impersonate", core("serviceaccounts"), "", n),
				create(core("serviceaccounts"), "ServiceAccount", n, nil)}
		})},
		{"other-permissions", "give itself permissions in a namespace of another team", []string{"R1", "T10"}, everybody, true,
			other(func(n string) []request {
				return []request{bind(n, "view"), mayDo("create", group(rbacGroup, "v1", "roles"), "", n),
					mayDo("escalate", group(rbacGroup, "v1", "roles"), "", n), mayDo("bind", group(rbacGroup, "v1", "roles"), "", n)}
			})},
		{"other-limits", "change quotas or network policies of another team", []string{"R18", "A10"}, everybody, true,
			other(func(n string) []request {
				policies := group("networking.k8s.io", "v1", "networkpolicies")
				return []request{create(policies, "NetworkPolicy", n, map[string]any{"spec": map[string]any{"podSelector": map[string]any{}}}),
					mayDo("delete", policies, "", n), mayDo("patch", core("resourcequotas"), "", n), mayDo("delete", core("resourcequotas"), "", n)}
			})},
		{"other-flux", "have Flux apply something in a namespace of another team", []string{"F9", "F11"}, everybody, true,
			other(func(n string) []request {
				return []request{mayDo("create", group(fluxGroup, "v1", "kustomizations"), "", n),
					mayDo("create", group("helm.toolkit.fluxcd.io", "v2", "helmreleases"), "", n),
					mayDo("create", group("source.toolkit.fluxcd.io", "v1", "gitrepositories"), "", n)}
			})},
		{"other-reports", "forge reports and events of another team", []string{"R10"}, everybody, true, other(func(n string) []request {
			var all []request
			for _, verb := range []string{"create", "update", "patch", "delete"} {
				all = append(all, mayDo(verb, reports(), "", n), mayDo(verb, core("events"), "", n))
			}
			return all
		})},
		{"other-namespace", "relabel or delete a namespace of another team", []string{"T9"}, everybody, true, other(func(n string) []request {
			return slices.Concat(
				guarded("tenant-labels",
					change("take namespace "+n+" off its team", core("namespaces"), "", n, metadata("labels", v1beta1.LabelTenant, nil))),
				guarded("namespace-deletion", remove(core("namespaces"), "", n)))
		})},
		{"other-names", "take a name that is another team's", []string{"T5"}, everybody, true,
			func(_ *scene, p pair) []request { return namesOf(p.other) }},
	}
}

// reports is the resource of reports.
func reports() schema.GroupVersionResource {
	return group(v1beta1.ReportGroup, v1beta1.ReportVersion, v1beta1.ReportResource)
}

// readsOf requests to read in a namespace.
func readsOf(n string) []request {
	resources := []schema.GroupVersionResource{core("pods"), core("configmaps"), core("events"), core("resourcequotas"),
		group("apps", "v1", "deployments"), reports()}
	for _, kind := range ownKinds(true) {
		resources = append(resources, group(v1beta1.Group, v1beta1.Version, kind.Plural))
	}
	all := []request{mayDo("get", core("pods"), "log", n)}
	for _, of := range resources {
		all = append(all, mayDo("get", of, "", n), mayDo("list", of, "", n))
	}
	return all
}

// bind requests to bind a ClusterRole to a user that does not exist.
func bind(namespace, clusterRole string) request {
	r := create(group(rbacGroup, "v1", "rolebindings"), "RoleBinding", namespace, map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": clusterRole},
		"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": probeName}}})
	r.does = "bind ClusterRole " + clusterRole + place(namespace)
	return r
}

// namesOf requests to create namespaces with names that belong to a team.
func namesOf(t *team) []request {
	var all []request
	if prefix := t.tenant.Spec.NamespacePrefix; prefix != "" {
		all = append(all, newNamespace(prefix+probeName, nil))
	}
	return guarded("namespace-names", all...)
}

// newNamespace requests to create a namespace.
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

// clusterCases are about objects that belong to no team.
func clusterCases() []isolationCase {
	everybody := members()
	fixed := func(requests ...request) func(*scene, pair) []request {
		return func(*scene, pair) []request { return slices.Clone(requests) }
	}
	roles, roleBindings := group(rbacGroup, "v1", "clusterroles"), group(rbacGroup, "v1", "clusterrolebindings")
	binding := create(roleBindings, "ClusterRoleBinding", "",
		map[string]any{"roleRef": map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": "view"},
			"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": probeName}}})
	return []isolationCase{
		{"cluster-rules", "write rules of the cluster, or a Tenant", []string{"R3", "R5"}, everybody, false,
			func(*scene, pair) []request { return createOwnKinds("") }},
		{"cluster-tenants", "read who is in other teams", []string{"R1"}, everybody, false,
			func(_ *scene, p pair) []request {
				tenants := group(v1beta1.Group, v1beta1.Version, "tenants")
				get := mayDo("get", tenants, "", "")
				get.own = p.team.tenant.Name
				return []request{get, mayDo("list", tenants, "", "")}
			}},
		{"cluster-permissions", "give itself permissions in the cluster, or pass for the platform", []string{"R1", "T10"}, everybody, false,
			fixed(binding, create(roles, "ClusterRole", "", map[string]any{"rules": []any{}}), mayDo("escalate", roles, "", ""),
				mayDo("bind", roles, "", ""),
				mayDo("patch", roles, "", ""), mayDo("update", roles, "", ""), mayDo("impersonate", core("users"), "", ""),
				mayDo("impersonate", core("groups"), "", ""), mayDo("impersonate", core("serviceaccounts"), "", ""),
				mayDo("create", core("serviceaccounts"), "token", ""), mayDo("get", core("secrets"), "", ""), mayDo("create", core("pods"), "", ""),
				mayDo("get", core("nodes"), "proxy", ""), mayDo("manage", group(v1beta1.Group, v1beta1.Version, "tenantlabels"), "", ""))},
		{"cluster-guardrails", "remove the guardrails", []string{"T9"}, everybody, false, guardrailObjects},
		{"cluster-gatekeeper", "switch Gatekeeper off, or loosen its constraints", []string{"R5"}, everybody, false,
			func(*scene, pair) []request { return gatekeeperObjects() }},
		{"cluster-landwaiter", "reach into Landwaiter's own namespace, or into that of the keys of the cluster", []string{"R7", "R8", "R10"},
			everybody, false,
			func(s *scene, _ pair) []request {
				return inEach(slices.Compact([]string{s.landwaiter.Namespace, s.keys}), inLandwaiter)
			}},
	}
}

// guardrailObjects requests to delete and change each guardrail.
func guardrailObjects(s *scene, _ pair) []request {
	policies, bindings := group(admission, "v1", "validatingadmissionpolicies"), group(admission, "v1", "validatingadmissionpolicybindings")
	var all []request
	for _, name := range s.guarding {
		all = append(all, remove(policies, "", name), remove(bindings, "", name))
	}
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		all = append(all, mayDo(verb, policies, "", ""), mayDo(verb, bindings, "", ""))
	}
	return all
}

func gatekeeperObjects() []request {
	var all []request
	for _, of := range []schema.GroupVersionResource{group(admission, "v1", "validatingwebhookconfigurations"),
		group(admission, "v1", "mutatingwebhookconfigurations"),
		group("constraints.gatekeeper.sh", "v1beta1", "verifiedimages"), group("templates.gatekeeper.sh", "v1", "constrainttemplates"),
		group("externaldata.gatekeeper.sh", "v1beta1", "providers"), group("config.gatekeeper.sh", "v1alpha1", "configs"),
		group("mutations.gatekeeper.sh", "v1", "assign"),
		group("apiextensions.k8s.io", "v1", "customresourcedefinitions")} {
		for _, verb := range []string{"create", "patch", "delete"} {
			all = append(all, mayDo(verb, of, "", ""))
		}
	}
	return all
}

func inLandwaiter(namespace string) []request {
	return []request{mayDo("get", core("secrets"), "", namespace), mayDo("list", core("secrets"), "", namespace),
		mayDo("update", core("secrets"), "", namespace), mayDo("update", core("configmaps"), "", namespace),
		mayDo("get", core("pods"), "log", namespace), mayDo("create", core("pods"), "exec", namespace),
		mayDo("create", core("serviceaccounts"), "token", namespace), mayDo("impersonate", core("serviceaccounts"), "", namespace),
		mayDo("patch", group("apps", "v1", "deployments"), "", namespace),
		mayDo("update", group("coordination.k8s.io", "v1", "leases"), "", namespace), create(core("pods"), "Pod", namespace, podBody()),
		create(core("configmaps"), "ConfigMap", namespace, nil)}
}
