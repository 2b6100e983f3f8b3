package onboard

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Names of the mutation objects that serve every namespace without its own Stores.
const (
	baseProvider = "landwaiter-mutate"
	baseAssigns  = "landwaiter"
	mutatePath   = "/v1/mutate"
	// tenantMutation is the prefix of the names of the objects of one Tenant or namespace.
	tenantMutation = "landwaiter-tenant-"
)

// Mutation is the common part of the objects that pin tags.
type Mutation struct {
	// ProviderURL is the address of Landwaiter for Gatekeeper, without a path; the default is
	// https://landwaiter.landwaiter-system.svc:443.
	ProviderURL string
	// CABundle is the CA of Landwaiter's certificate, in PEM.
	CABundle []byte
	// TimeoutSeconds of a call; the default is 1.
	TimeoutSeconds int64
	// Labels of every object in addition to those that identify its owner.
	Labels map[string]string
}

// Everywhere returns the Provider and the Assigns that pin tags with the cluster's Stores,
// in every namespace but those excluded.
func (m Mutation) Everywhere(excluded []string) []*unstructured.Unstructured {
	return m.base(map[string]any{"excludedNamespaces": list(sorted(excluded))})
}

// Only is [Mutation.Everywhere] for the given namespaces. Without any there is no Assign,
// because for Gatekeeper an empty list means every namespace.
func (m Mutation) Only(namespaces []string) []*unstructured.Unstructured {
	if len(namespaces) == 0 {
		return []*unstructured.Unstructured{m.provider(baseProvider, mutatePath, nil)}
	}
	return m.base(map[string]any{"namespaces": list(sorted(namespaces))})
}

func (m Mutation) base(match map[string]any) []*unstructured.Unstructured {
	return append([]*unstructured.Unstructured{m.provider(baseProvider, mutatePath, nil)}, m.assigns(baseAssigns, baseProvider, match, nil)...)
}

// Stores returns the Provider and the Assigns that pin tags with the Stores in one namespace of a
// Tenant, the home namespace or another, in the given namespaces: nothing if there are none. Names for
// another namespace contain a dot, which no Tenant's name has, so they differ from those of other
// Tenants.
func (m Mutation) Stores(tenant *v1beta1.Tenant, of string, namespaces []string) []*unstructured.Unstructured {
	if len(namespaces) == 0 {
		return nil
	}
	name := tenantMutation + tenant.Name
	if of != tenant.Spec.HomeNamespace {
		name += "." + of
	}
	labels := map[string]string{v1beta1.LabelTenant: tenant.Name, v1beta1.LabelOwner: v1beta1.OwnerPlatform}
	provider := m.provider(shortened(name, maxProvider), "/v1/namespaces/"+of+"/mutate", labels)
	return append([]*unstructured.Unstructured{provider},
		m.assigns(shortened(name, maxPrefix), provider.GetName(), map[string]any{"namespaces": list(sorted(namespaces))}, labels)...)
}

const (
	// maxProvider is the longest name that Gatekeeper accepts. The operator guardrail compares the
	// name of a Provider with its namespace, so the name is only shortened if it must be.
	maxProvider = 63
	// maxPrefix is the longest prefix of Assigns' names: Gatekeeper accepts as many bytes with
	// the longest ending.
	maxPrefix = maxProvider - len("-pods-ephemeralcontainers")
)

// shortened cuts a name to a length and adds a hash to keep it unique. The operator guardrail
// knows the form.
func shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:10]
	return strings.TrimRight(name[:most-len(hash)-1], "-.") + "-" + hash
}

func (m Mutation) provider(name, path string, labels map[string]string) *unstructured.Unstructured {
	url, timeout := cmp.Or(m.ProviderURL, "https://landwaiter.landwaiter-system.svc:443"), cmp.Or(m.TimeoutSeconds, 1)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "externaldata.gatekeeper.sh/v1beta1", "kind": "Provider",
		"metadata": m.metadata(name, labels),
		"spec":     map[string]any{"url": url + path, "timeout": timeout, "caBundle": base64.StdEncoding.EncodeToString(m.CABundle)},
	}}
}

// assigns pins a pod's images on creation, and ephemeral containers when they are added: a
// new name would restart the other containers.
func (m Mutation) assigns(prefix, provider string, match map[string]any, labels map[string]string) []*unstructured.Unstructured {
	var made []*unstructured.Unstructured
	for _, place := range []struct{ id, path, operation string }{
		{"containers", "spec.containers", "CREATE"},
		{"initcontainers", "spec.initContainers", "CREATE"},
		{"ephemeralcontainers", "spec.ephemeralContainers", "UPDATE"},
	} {
		scope := maps.Clone(match)
		scope["scope"] = "Namespaced"
		made = append(made, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "mutations.gatekeeper.sh/v1", "kind": "Assign",
			"metadata": m.metadata(prefix+"-pods-"+place.id, labels),
			"spec": map[string]any{
				"applyTo": []any{map[string]any{"groups": []any{""}, "kinds": []any{"Pod"}, "versions": []any{"v1"},
					"operations": []any{place.operation}}},
				"match":    scope,
				"location": place.path + "[name:*].image",
				"parameters": map[string]any{"assign": map[string]any{"externalData": map[string]any{
					"provider": provider, "dataSource": "ValueAtLocation", "failurePolicy": "Fail"}}},
			},
		}})
	}
	return made
}

func (m Mutation) metadata(name string, labels map[string]string) map[string]any {
	all := texts(m.Labels)
	maps.Copy(all, texts(labels))
	metadata := map[string]any{"name": name}
	if len(all) > 0 {
		metadata["labels"] = all
	}
	return metadata
}

// sorted removes duplicate names.
func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
