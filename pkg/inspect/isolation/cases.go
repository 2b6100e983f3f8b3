package isolation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
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
			return slices.Concat(guarded("tenant-labels", change("take namespace "+n+" off its team", core("namespaces"), "", n, metadata("labels", v1beta1.LabelTenant, nil))),
				guarded("namespace-deletion", remove(core("namespaces"), "", n)))
		})},
		{"other-names", "take a name that is another team's", []string{"T5"}, everybody, true, func(_ *scene, p pair) []request { return namesOf(p.other) }},
	}
}

// reports is the resource of reports.
func reports() schema.GroupVersionResource {
	return group(v1beta1.ReportGroup, v1beta1.ReportVersion, v1beta1.ReportResource)
}

// readsOf requests to read in a namespace.
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
	binding := create(roleBindings, "ClusterRoleBinding", "", map[string]any{"roleRef": map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": "view"},
		"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": probeName}}})
	return []isolationCase{
		{"cluster-rules", "write rules of the cluster, or a Tenant", []string{"R3", "R5"}, everybody, false, func(*scene, pair) []request { return createOwnKinds("") }},
		{"cluster-tenants", "read who is in other teams", []string{"R1"}, everybody, false,
			func(_ *scene, p pair) []request {
				tenants := group(v1beta1.Group, v1beta1.Version, "tenants")
				get := mayDo("get", tenants, "", "")
				get.own = p.team.tenant.Name
				return []request{get, mayDo("list", tenants, "", "")}
			}},
		{"cluster-permissions", "give itself permissions in the cluster, or pass for the platform", []string{"R1", "T10"}, everybody, false,
			fixed(binding, create(roles, "ClusterRole", "", map[string]any{"rules": []any{}}), mayDo("escalate", roles, "", ""), mayDo("bind", roles, "", ""),
				mayDo("patch", roles, "", ""), mayDo("update", roles, "", ""), mayDo("impersonate", core("users"), "", ""), mayDo("impersonate", core("groups"), "", ""), mayDo("impersonate", core("serviceaccounts"), "", ""),
				mayDo("create", core("serviceaccounts"), "token", ""), mayDo("get", core("secrets"), "", ""), mayDo("create", core("pods"), "", ""),
				mayDo("get", core("nodes"), "proxy", ""), mayDo("manage", group(v1beta1.Group, v1beta1.Version, "tenantlabels"), "", ""))},
		{"cluster-guardrails", "remove the guardrails", []string{"T9"}, everybody, false, guardrailObjects},
		{"cluster-gatekeeper", "switch Gatekeeper off, or loosen its constraints", []string{"R5"}, everybody, false, func(*scene, pair) []request { return gatekeeperObjects() }},
		{"cluster-landwaiter", "reach into Landwaiter's own namespace, or into that of the keys of the cluster", []string{"R7", "R8", "R10"}, everybody, false,
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
	for _, of := range []schema.GroupVersionResource{group(admission, "v1", "validatingwebhookconfigurations"), group(admission, "v1", "mutatingwebhookconfigurations"),
		group("constraints.gatekeeper.sh", "v1beta1", "verifiedimages"), group("templates.gatekeeper.sh", "v1", "constrainttemplates"),
		group("externaldata.gatekeeper.sh", "v1beta1", "providers"), group("config.gatekeeper.sh", "v1alpha1", "configs"), group("mutations.gatekeeper.sh", "v1", "assign"),
		group("apiextensions.k8s.io", "v1", "customresourcedefinitions")} {
		for _, verb := range []string{"create", "patch", "delete"} {
			all = append(all, mayDo(verb, of, "", ""))
		}
	}
	return all
}

func inLandwaiter(namespace string) []request {
	return []request{mayDo("get", core("secrets"), "", namespace), mayDo("list", core("secrets"), "", namespace), mayDo("update", core("secrets"), "", namespace), mayDo("update", core("configmaps"), "", namespace), mayDo("get", core("pods"), "log", namespace), mayDo("create", core("pods"), "exec", namespace),
		mayDo("create", core("serviceaccounts"), "token", namespace), mayDo("impersonate", core("serviceaccounts"), "", namespace), mayDo("patch", group("apps", "v1", "deployments"), "", namespace),
		mayDo("update", group("coordination.k8s.io", "v1", "leases"), "", namespace), create(core("pods"), "Pod", namespace, podBody()), create(core("configmaps"), "ConfigMap", namespace, nil)}
}

// ownCases are about the platform's objects in a team's own namespaces.
func ownCases() []isolationCase {
	everybody := members()
	people := []role{roleAdmin, roleDeveloper, roleViewer, roleAsked, roleBound} // the platform chose the role of the account
	notAdmins := []role{roleDeveloper, roleViewer}
	own := func(of func(namespace string) []request) func(*scene, pair) []request {
		return func(_ *scene, p pair) []request { return inEach(p.own, of) }
	}
	return []isolationCase{
		{"own-labels", "change labels and annotations that rules trust", []string{"T9", "R1"}, everybody, false, func(_ *scene, p pair) []request {
			return inEach(p.own, func(n string) []request { return protectedLabels(p.team, n) })
		}},
		{"own-break-glass", "open its own namespace past the rules", []string{"R5"}, everybody, false, own(breakGlass)},
		{"own-platform-objects", "change or delete quotas, network policies, bindings and accounts of the platform", []string{"A10", "R18"}, everybody, false,
			func(_ *scene, p pair) []request { return platformObjects(p.team) }},
		{"own-trusted-secrets", "have a controller write a Secret that decides what the team trusts", []string{"A11", "T8"}, everybody, false,
			func(s *scene, p pair) []request { return secretWriters(s, p.team) }},
		{"own-namespace", "delete its own namespaces", []string{"R1"}, everybody, false, func(_ *scene, p pair) []request { return ownDeletion(p.team) }},
		{"home-pods", "run pods in the home namespace", []string{"T2"}, everybody, false, func(_ *scene, p pair) []request { return homePods(p.team) }},
		{"home-flux", "have Flux act as another account in the home namespace", []string{"F9", "F16"}, everybody, false, func(_ *scene, p pair) []request { return homeFlux(p.team) }},
		{"home-developers", "write or read the team's trust as a developer or viewer", []string{"R1"}, notAdmins, false, func(_ *scene, p pair) []request {
			if p.team.home == "" || p.team.alone() {
				return nil
			}
			return homeTrust(p.team.home)
		}},
		{"namespace-rules", "write rules as a developer or viewer", []string{"R1"}, notAdmins, false, func(_ *scene, p pair) []request { return inEach(p.ownMembers(), createOwnKinds) }},
		{"namespace-viewers", "change workloads or read Secrets as a viewer", []string{"R1"}, []role{roleViewer}, false, func(_ *scene, p pair) []request {
			return inEach(p.ownMembers(), viewerReach)
		}},
		{"own-escalation", "bind a role with more permissions than its own", []string{"R1", "T10"}, people, false, own(func(n string) []request {
			return []request{bind(n, clusterAdmin), mayDo("escalate", group(rbacGroup, "v1", "roles"), "", n)}
		})},
		{"account-limits", "get tokens, run commands or make quotas as the Git account", []string{"T10"}, []role{roleAccount}, false, func(_ *scene, p pair) []request {
			return accountLimits(p.team)
		}},
		{"account-names", "make namespaces that are not the team's as the Git account", []string{"T5"}, []role{roleAccount}, false, func(_ *scene, p pair) []request {
			return accountNames(p)
		}},
	}
}

// protectedLabels requests changes that only the platform may make.
func protectedLabels(t *team, namespace string) []request {
	space := core("namespaces")
	var all []request
	try := func(does string, patch map[string]any) {
		r := change(does+" of namespace "+namespace, space, "", namespace, patch)
		status := r
		status.does, status.subresource = does+" by the status of namespace "+namespace, "status"
		all = append(all, r, status)
	}
	try("change label "+v1beta1.LabelTenant, metadata("labels", v1beta1.LabelTenant, probeName))
	try("change label "+v1beta1.LabelFluxTenant, metadata("labels", v1beta1.LabelFluxTenant, probeName))
	try("set label "+v1beta1.LabelGatekeeperIgnore, metadata("labels", v1beta1.LabelGatekeeperIgnore, probeName))
	try("set annotation "+v1beta1.AnnotationCreated, metadata("annotations", v1beta1.AnnotationCreated, probeName))
	try("set annotation "+v1beta1.AnnotationAdopted, metadata("annotations", v1beta1.AnnotationAdopted, probeName))
	if t.spaces[namespace].Labels[v1beta1.LabelTenant] != "" { // Pod Security labels are guarded in labelled namespaces
		level := "privileged" // a valid value other than the current one
		if t.spaces[namespace].Labels[podSecurity+"enforce"] == level {
			level = "baseline"
		}
		try("change label "+podSecurity+"enforce", metadata("labels", podSecurity+"enforce", level))
	}
	if namespace == t.home {
		try("change label "+v1beta1.LabelHomeNamespace, metadata("labels", v1beta1.LabelHomeNamespace, probeName))
	}
	if final, ok := finalize(t, namespace); ok {
		all = append(all, final)
	}
	return guarded("tenant-labels", all...)
}

// finalize changes a label through the subresource with which the namespace controller
// finishes deleting a namespace. It takes the whole object.
func finalize(t *team, namespace string) (request, bool) {
	space, ok := t.spaces[namespace]
	if !ok {
		return request{}, false
	}
	changed := labels.Merge(space.Labels, labels.Set{v1beta1.LabelGatekeeperIgnore: probeName})
	return request{does: "set label " + v1beta1.LabelGatekeeperIgnore + " by the finalizers of namespace " + namespace, verb: verbUpdate, GroupVersionResource: core("namespaces"), subresource: "finalize", name: namespace,
		body: object("v1", "Namespace", "", namespace, map[string]any{"labels": changed, "annotations": space.Annotations, "spec": space.Spec})}, true
}

// breakGlass requests to open a namespace.
func breakGlass(namespace string) []request {
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1beta1.AnnotationBreakGlassUntil: "2100-01-01T00:00:00Z", v1beta1.AnnotationBreakGlassReason: probeName, v1beta1.AnnotationBreakGlassOverrideMandatory: "true"}}}
	one := change("set annotation "+v1beta1.AnnotationBreakGlassUntil+" of namespace "+namespace, core("namespaces"), "", namespace, metadata("annotations", v1beta1.AnnotationBreakGlassUntil, "2100-01-01T00:00:00Z"))
	return guarded("tenant-labels", one, change("open break-glass of namespace "+namespace, core("namespaces"), "", namespace, patch))
}

// platformObjects requests to delete and to take over the platform's objects.
func platformObjects(t *team) []request {
	var all []request
	for _, o := range t.owned {
		all = append(all, remove(o.GroupVersionResource, o.namespace, o.name),
			change("take "+o.Resource+" "+o.name+place(o.namespace)+" from the platform", o.GroupVersionResource, o.namespace, o.name, metadata("labels", v1beta1.LabelOwner, nil)))
	}
	if namespace := t.member(); namespace != "" {
		r := create(core("configmaps"), "ConfigMap", namespace, map[string]any{"labels": map[string]any{v1beta1.LabelOwner: v1beta1.OwnerPlatform}})
		r.does = "pass off a ConfigMap as the platform's" + place(namespace)
		all = append(all, r)
	}
	return guarded("platform-objects", all...)
}

func ownDeletion(t *team) []request {
	names := t.namespaces()
	if r := t.tenant.Spec.Reconciler; r != nil && r.CreateNamespaces { // its account may delete those with the prefix
		names = slices.DeleteFunc(names, func(n string) bool { return n != t.home })
	}
	return guarded("namespace-deletion", inEach(names, func(n string) []request { return []request{remove(core("namespaces"), "", n)} })...)
}

func homePods(t *team) []request {
	if t.home == "" || t.alone() {
		return nil
	}
	return guarded("home-workloads", create(core("pods"), "Pod", t.home, podBody()))
}

func homeFlux(t *team) []request {
	if t.home == "" || !t.fluxKnown {
		return nil
	}
	kind := group(fluxGroup, "v1", "kustomizations")
	spec := map[string]any{"interval": "10m", "prune": true, "path": "./", "sourceRef": map[string]any{"kind": "GitRepository", "name": probeName}}
	without := create(kind, "Kustomization", t.home, map[string]any{"spec": maps.Clone(spec)})
	without.does += " without an account"
	spec["serviceAccountName"] = "kustomize-controller"
	return guarded("home-accounts", without, create(kind, "Kustomization", t.home, map[string]any{"spec": spec}))
}

// homeTrust requests access to objects that decide about the team's images.
func homeTrust(home string) []request {
	return append(createOwnKinds(home), mayDo("get", core("secrets"), "", home), mayDo("list", core("secrets"), "", home), mayDo("patch", core("secrets"), "", home),
		create(core("secrets"), "Secret", home, map[string]any{"stringData": map[string]any{"probe": "x"}}), create(core("configmaps"), "ConfigMap", home, nil), bind(home, "view"),
		mayDo("create", core("serviceaccounts"), "token", home), mayDo("impersonate", core("serviceaccounts"), "", home))
}

func viewerReach(namespace string) []request {
	return []request{create(core("configmaps"), "ConfigMap", namespace, nil), create(core("pods"), "Pod", namespace, podBody()), mayDo("get", core("secrets"), "", namespace), mayDo("list", core("secrets"), "", namespace),
		mayDo("create", core("pods"), "exec", namespace), mayDo("create", core("serviceaccounts"), "token", namespace)}
}

// defaultReconciler is the role whose limits are published.
const defaultReconciler = "landwaiter-reconciler"

func accountLimits(t *team) []request {
	r := t.tenant.Spec.Reconciler
	if r == nil || (r.ClusterRole != "" && r.ClusterRole != defaultReconciler) {
		return nil // the platform chose its own role
	}
	return inEach(t.namespaces(), func(n string) []request {
		return []request{create(core("resourcequotas"), "ResourceQuota", n, map[string]any{"spec": map[string]any{}}), mayDo("create", core("serviceaccounts"), "token", n),
			mayDo("impersonate", core("serviceaccounts"), "", n), mayDo("create", core("pods"), "exec", n), bind(n, "edit"), bind(n, clusterAdmin)}
	})
}

// accountNames requests namespaces outside of the team's prefix.
func accountNames(p pair) []request {
	all := []request{newNamespace(probeName+"-stray", map[string]any{v1beta1.LabelTenant: p.team.tenant.Name, podSecurity + "enforce": "restricted"}),
		newNamespace(probeName+"-nobodys", nil)}
	if prefix := p.team.tenant.Spec.NamespacePrefix; prefix != "" {
		all = append(all, newNamespace(prefix+probeName, nil)) // without the label
		if p.other != nil {
			all = append(all, newNamespace(prefix+probeName, map[string]any{v1beta1.LabelTenant: p.other.tenant.Name, podSecurity + "enforce": "restricted"}))
		}
	}
	return guarded("namespace-names", all...)
}
