package onboard

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Pinning is the setting for the tags of images in one namespace.
type Pinning struct {
	Namespace string
	// Tenant holds the namespace, nil if none does.
	Tenant *v1beta1.Tenant
	// Pin says whether tags are pinned, from Snapshot.Tags.
	Pin bool
	// Stores says whether the namespace has its own Stores.
	Stores bool
}

// Plan is the set of objects that pin tags in a cluster.
type Plan struct {
	// Objects are in the order in which to apply them: referenced objects first. Objects of an
	// older plan are removed afterwards, so that no namespace is without its Assigns meanwhile.
	Objects []*unstructured.Unstructured
	// Refused are the names of Tenants whose Stores are not used because of the limit.
	Refused []string
}

// set is one Provider with its Assigns, and their namespaces.
type set struct {
	tenant     *v1beta1.Tenant
	namespace  string // with the Stores; the home namespace, or another one of the Tenant
	namespaces []string
}

// Plan decides which objects pin tags, from the settings of each existing namespace.
//
// New namespaces get byDefault until the next plan. Exempt namespaces are never pinned. At most limit sets with their
// own Stores are created, one for each Tenant before anyone's second, for the oldest Tenants first; each costs every
// admission in the cluster. Namespaces beyond the limit are pinned with the cluster's Stores: a tag that those cannot
// resolve is refused, not let through.
func (m Mutation) Plan(namespaces []Pinning, byDefault bool, exempt []string, limit int) Plan {
	var plan Plan
	var pinned, left []string
	refused := map[string]bool{}
	served := map[string]bool{}
	var scoped []*unstructured.Unstructured
	for i, s := range sets(namespaces, exempt) {
		if i >= limit {
			refused[s.tenant.Name] = true
			continue
		}
		for _, namespace := range s.namespaces {
			served[namespace] = true
		}
		scoped = append(scoped, m.Stores(s.tenant, s.namespace, s.namespaces)...)
	}
	for _, n := range namespaces {
		if n.Pin && !served[n.Namespace] && !slices.Contains(exempt, n.Namespace) {
			pinned = append(pinned, n.Namespace)
		} else {
			left = append(left, n.Namespace)
		}
	}
	base := m.Only(pinned)
	if byDefault {
		base = m.Everywhere(append(left, exempt...))
	}
	plan.Objects = append(scoped, base...)
	slices.SortStableFunc(plan.Objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(b.GetKind(), a.GetKind()) })
	plan.Refused = slices.Sorted(maps.Keys(refused))
	return plan
}

// sets returns which Stores serve which namespaces: the first set of every Tenant, the home namespace's
// if it has Stores, then the second ones, so that no Tenant takes others' places; the oldest Tenants
// come first. A level that does not apply to a Tenant has no set.
func sets(namespaces []Pinning, exempt []string) []set {
	homes := map[string]bool{}
	for _, n := range namespaces {
		if n.Tenant != nil && n.Stores && n.Namespace == n.Tenant.Spec.HomeNamespace &&
			n.Tenant.Spec.Verification.PolicyLevel != v1beta1.PolicyLevelCluster {
			homes[n.Namespace] = true
		}
	}
	found := map[string]*set{}
	for _, n := range namespaces {
		if n.Tenant == nil || !n.Pin || slices.Contains(exempt, n.Namespace) {
			continue
		}
		home, decides := n.Tenant.Spec.HomeNamespace, n.Tenant.Spec.Verification.PolicyLevel
		source := ""
		switch {
		case n.Stores && n.Namespace != home && (decides == "" || decides == v1beta1.PolicyLevelNamespace):
			source = n.Namespace
		case homes[home]:
			source = home
		default:
			continue
		}
		if found[source] == nil {
			found[source] = &set{tenant: n.Tenant, namespace: source}
		}
		found[source].namespaces = append(found[source].namespaces, n.Namespace)
	}
	var all []set
	for _, s := range found {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b set) int {
		return cmp.Or(a.tenant.CreationTimestamp.Compare(b.tenant.CreationTimestamp.Time), cmp.Compare(a.tenant.Name, b.tenant.Name),
			cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.namespace, b.namespace))
	})
	turns, of := map[string]int{}, map[string]int{}
	for _, s := range all {
		turns[s.namespace] = of[s.tenant.Name]
		of[s.tenant.Name]++
	}
	slices.SortStableFunc(all, func(a, b set) int { return cmp.Compare(turns[a.namespace], turns[b.namespace]) })
	return all
}

// rank puts the home namespace first.
func (s set) rank() int {
	if s.namespace == s.tenant.Spec.HomeNamespace {
		return 0
	}
	return 1
}

// Manifest returns a Tenant as a person would write it: its name, its form if it has one, and
// its spec without empty fields.
func Manifest(tenant *v1beta1.Tenant) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tenant)
	if err != nil {
		return nil, fmt.Errorf("convert Tenant %s: %w", tenant.Name, err)
	}
	spec, _ := content["spec"].(map[string]any)
	for field, value := range spec {
		if inner, ok := value.(map[string]any); ok && len(inner) == 0 && field != "reconciler" {
			delete(spec, field)
		}
	}
	metadata := map[string]any{"name": tenant.Name}
	if form := tenant.Annotations[v1beta1.AnnotationForm]; form != "" {
		metadata["annotations"] = map[string]any{v1beta1.AnnotationForm: form}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": v1beta1.KindTenant, "metadata": metadata, "spec": spec}}, nil
}

// YAML returns objects as the documents of one file.
func YAML(objects ...map[string]any) ([]byte, error) {
	var text bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write a %s: %w", object["kind"], err)
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	return text.Bytes(), nil
}
