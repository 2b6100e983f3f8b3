package library

// beyondGator are cases that no suite can have, because gator never sends the namespace along.
// They count as cases of the template's suite.
func beyondGator(folder string) []testCase {
	namespace := func(labels any) object {
		return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "iris", "labels": labels}}
	}
	secret := func(key string) object {
		return object{"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": object{"name": "app", "namespace": "iris"}, "spec": object{
			"secretStoreRef": object{"kind": "ClusterSecretStore", "name": "vault"}, "data": []any{object{"secretKey": "a", "remoteRef": object{"key": key}}}}}
	}
	reviewed := func(name string, given, namespace object, parameters any, inventory object, want ...string) testCase {
		review := reviewOf(given)
		review["namespaceObject"] = namespace
		made := testCase{name: "live: " + name, assertions: []assertion{{Violations: float64(len(want))}}}
		made.ask(object{"review": review, "parameters": parameters}, inventory)
		for _, message := range want {
			made.assertions = append(made.assertions, assertion{Violations: float64(1), Message: message})
		}
		return made
	}
	labelled, synced := namespace(object{"landwaiter.dev/tenant": "iris"}),
		object{"cluster": object{"v1": object{"Namespace": object{"iris": namespace(object{"landwaiter.dev/tenant": "iris"})}}}}
	switch folder {
	case "external-secret-tenant-keys":
		return []testCase{
			reviewed("own key while Gatekeeper has no Namespaces", secret("iris-db"), labelled, object{}, object{}, "whether a tenant with a longer name owns the key"),
			reviewed("own key while Gatekeeper has Namespaces", secret("iris-db"), labelled, object{}, synced),
			reviewed("own key behind a separator that labels can have", secret("iris.db"), labelled, object{"separator": "."}, object{},
				"whether a tenant with a longer name owns the key"),
			reviewed("own key where no name begins another's", secret("iris/db"), labelled, object{"separator": "/"}, object{}),
			reviewed("namespace without labels that the inventory has with them", secret("iris-db"), namespace(nil), object{}, synced, "has no label"),
			reviewed("namespace that Gatekeeper does not know but the inventory", secret("iris-db"), object{}, object{}, synced),
		}
	case "flux-service-account-required":
		kustomization := object{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": object{"name": "app", "namespace": "iris"},
			"spec": object{"serviceAccountName": "iris"}}
		return []testCase{
			reviewed("account of the namespace's label", kustomization, labelled, object{}, object{}),
			reviewed("namespace without labels", kustomization, namespace(nil), object{}, synced, "has no label"),
			reviewed("account of another where there are no parameters", kustomization, namespace(object{"landwaiter.dev/tenant": "other"}), nil, object{},
				"is not the account of tenant other"),
			reviewed("label that is a number", kustomization, namespace(object{"landwaiter.dev/tenant": 7}), object{}, object{}, "has no label"),
		}
	default:
		return nil
	}
}
