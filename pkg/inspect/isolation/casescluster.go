package isolation

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// clusterCases are about what belongs to no team.
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
			fixed(mayDo("get", group(v1beta1.Group, v1beta1.Version, "tenants"), "", ""), mayDo("list", group(v1beta1.Group, v1beta1.Version, "tenants"), "", ""))},
		{"cluster-permissions", "give itself permissions in the cluster, or pass for the platform", []string{"R1", "T10"}, everybody, false,
			fixed(binding, create(roles, "ClusterRole", "", map[string]any{"rules": []any{}}), mayDo("escalate", roles, "", ""), mayDo("bind", roles, "", ""),
				mayDo("impersonate", core("users"), "", ""), mayDo("impersonate", core("groups"), "", ""), mayDo("impersonate", core("serviceaccounts"), "", ""),
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

// guardrailObjects asks to delete and change each guardrail.
func guardrailObjects(s *scene, _ pair) []request {
	policies, bindings := group(admission, "v1", "validatingadmissionpolicies"), group(admission, "v1", "validatingadmissionpolicybindings")
	var all []request
	for _, name := range s.guardrailNames() {
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
