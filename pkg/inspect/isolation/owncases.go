package isolation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// ownCases are about the platform's objects in a team's own namespaces.
func ownCases() []isolationCase {
	everybody := members()
	people := []role{roleAdmin, roleDeveloper, roleViewer, roleAsked, roleBound} // the platform chose the role of the account
	notAdmins := []role{roleDeveloper, roleViewer}
	own := func(of func(namespace string) []request) func(*scene, pair) []request {
		return func(_ *scene, p pair) []request { return inEach(p.own, of) }
	}
	return []isolationCase{
		{"own-labels", "change labels and annotations that rules trust", []string{"T9", "R1"}, everybody, false,
			func(_ *scene, p pair) []request {
				return inEach(p.own, func(n string) []request { return protectedLabels(p.team, n) })
			}},
		{"own-break-glass", "open its own namespace past the rules", []string{"R5"}, everybody, false, own(breakGlass)},
		{"own-platform-objects", "change or delete quotas, network policies, bindings and accounts of the platform", []string{"A10", "R18"},
			everybody, false,
			func(_ *scene, p pair) []request { return platformObjects(p.team) }},
		{"own-trusted-secrets", "have a controller write a Secret that decides what the team trusts", []string{"A11", "T8"}, everybody, false,
			func(s *scene, p pair) []request { return secretWriters(s, p.team) }},
		{"own-namespace", "delete its own namespaces", []string{"R1"}, everybody, false, func(_ *scene, p pair) []request {
			return ownDeletion(p.team)
		}},
		{"home-pods", "run pods in the home namespace", []string{"T2"}, everybody, false,
			func(_ *scene, p pair) []request { return homePods(p.team) }},
		{"home-flux", "have Flux act as another account in the home namespace", []string{"F9", "F16"}, everybody, false,
			func(_ *scene, p pair) []request { return homeFlux(p.team) }},
		{"home-developers", "write or read the team's trust as a developer or viewer", []string{"R1"}, notAdmins, false,
			func(_ *scene, p pair) []request {
				if p.team.home == "" || p.team.alone() {
					return nil
				}
				return homeTrust(p.team.home)
			}},
		{"namespace-rules", "write rules as a developer or viewer", []string{"R1"}, notAdmins, false,
			func(_ *scene, p pair) []request { return inEach(p.ownMembers(), createOwnKinds) }},
		{"namespace-viewers", "change workloads or read Secrets as a viewer", []string{"R1"}, []role{roleViewer}, false,
			func(_ *scene, p pair) []request {
				return inEach(p.ownMembers(), viewerReach)
			}},
		{"own-escalation", "bind a role with more permissions than its own", []string{"R1", "T10"}, people, false, own(func(n string) []request {
			return []request{bind(n, clusterAdmin), mayDo("escalate", group(rbacGroup, "v1", "roles"), "", n)}
		})},
		{"account-limits", "get tokens, run commands or make quotas as the Git account", []string{"T10"}, []role{roleAccount}, false,
			func(_ *scene, p pair) []request {
				return accountLimits(p.team)
			}},
		{"account-names", "make namespaces that are not the team's as the Git account", []string{"T5"}, []role{roleAccount}, false,
			func(_ *scene, p pair) []request {
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
	return request{does: "set label " + v1beta1.LabelGatekeeperIgnore + " by the finalizers of namespace " + namespace, verb: verbUpdate,
			GroupVersionResource: core("namespaces"), subresource: "finalize", name: namespace,
			body: object("v1", "Namespace", "", namespace, map[string]any{"labels": changed, "annotations": space.Annotations, "spec": space.Spec})},
		true
}

// breakGlass requests to open a namespace.
func breakGlass(namespace string) []request {
	patch := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{v1beta1.AnnotationBreakGlassUntil: "2100-01-01T00:00:00Z",
			v1beta1.AnnotationBreakGlassReason: probeName, v1beta1.AnnotationBreakGlassOverrideMandatory: "true"}}}
	one := change("set annotation "+v1beta1.AnnotationBreakGlassUntil+" of namespace "+namespace, core("namespaces"), "", namespace,
		metadata("annotations", v1beta1.AnnotationBreakGlassUntil, "2100-01-01T00:00:00Z"))
	return guarded("tenant-labels", one, change("open break-glass of namespace "+namespace, core("namespaces"), "", namespace, patch))
}

// platformObjects requests to delete and to take over the platform's objects.
func platformObjects(t *team) []request {
	var all []request
	for _, o := range t.owned {
		all = append(all, remove(o.GroupVersionResource, o.namespace, o.name),
			change("take "+o.Resource+" "+o.name+place(o.namespace)+" from the platform", o.GroupVersionResource, o.namespace, o.name,
				metadata("labels", v1beta1.LabelOwner, nil)))
	}
	if namespace := t.member(); namespace != "" {
		r := create(core("configmaps"), "ConfigMap", namespace,
			map[string]any{"labels": map[string]any{v1beta1.LabelOwner: v1beta1.OwnerPlatform}})
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
	spec := map[string]any{"interval": "10m", "prune": true, "path": "./",
		"sourceRef": map[string]any{"kind": "GitRepository", "name": probeName}}
	without := create(kind, "Kustomization", t.home, map[string]any{"spec": maps.Clone(spec)})
	without.does += " without an account"
	spec["serviceAccountName"] = "kustomize-controller"
	return guarded("home-accounts", without, create(kind, "Kustomization", t.home, map[string]any{"spec": spec}))
}

// homeTrust requests access to objects that decide about the team's images.
func homeTrust(home string) []request {
	return append(createOwnKinds(home), mayDo("get", core("secrets"), "", home), mayDo("list", core("secrets"), "", home),
		mayDo("patch", core("secrets"), "", home),
		create(core("secrets"), "Secret", home, map[string]any{"stringData": map[string]any{"probe": "x"}}),
		create(core("configmaps"), "ConfigMap", home, nil), bind(home, "view"),
		mayDo("create", core("serviceaccounts"), "token", home), mayDo("impersonate", core("serviceaccounts"), "", home))
}

func viewerReach(namespace string) []request {
	return []request{create(core("configmaps"), "ConfigMap", namespace, nil), create(core("pods"), "Pod", namespace, podBody()),
		mayDo("get", core("secrets"), "", namespace), mayDo("list", core("secrets"), "", namespace),
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
		return []request{create(core("resourcequotas"), "ResourceQuota", n, map[string]any{"spec": map[string]any{}}),
			mayDo("create", core("serviceaccounts"), "token", n),
			mayDo("impersonate", core("serviceaccounts"), "", n), mayDo("create", core("pods"), "exec", n), bind(n, "edit"), bind(n, clusterAdmin)}
	})
}

// accountNames requests namespaces outside of the team's prefix.
func accountNames(p pair) []request {
	all := []request{
		newNamespace(probeName+"-stray", map[string]any{v1beta1.LabelTenant: p.team.tenant.Name, podSecurity + "enforce": "restricted"}),
		newNamespace(probeName+"-nobodys", nil)}
	if prefix := p.team.tenant.Spec.NamespacePrefix; prefix != "" {
		all = append(all, newNamespace(prefix+probeName, nil)) // without the label
		if p.other != nil {
			all = append(all,
				newNamespace(prefix+probeName, map[string]any{v1beta1.LabelTenant: p.other.tenant.Name, podSecurity + "enforce": "restricted"}))
		}
	}
	return guarded("namespace-names", all...)
}
