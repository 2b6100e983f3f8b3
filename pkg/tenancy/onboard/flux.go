package onboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// fluxRole is the role that Flux's own command binds. Bound in a namespace, it lets the
// account relabel and delete that namespace, so [Objects] binds another.
const fluxRole = "cluster-admin"

// FluxOptions are the flags of Flux's command without a field of Tenants.
type FluxOptions struct {
	// SkipNamespace omits the Namespaces.
	SkipNamespace bool
	// Labels are set in addition to Flux's own, which they cannot replace.
	Labels map[string]string
}

// Flux returns the bytes of
// `flux create tenant NAME --with-namespace=… --export` for the home namespace and the listed
// namespaces. The role is cluster-admin unless the Tenant names another.
func Flux(tenant *v1beta1.Tenant, o FluxOptions) ([]byte, error) {
	if _, err := Complete(tenant); err != nil {
		return nil, err
	}
	account, role := tenant.Name, fluxRole
	if reconciler := tenant.Spec.Reconciler; reconciler != nil {
		account, role = Account(tenant), cmp.Or(reconciler.ClusterRole, fluxRole)
	}
	for name, value := range o.Labels {
		if len(validation.IsQualifiedName(name)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return nil, fmt.Errorf("%s=%s is not a label; use NAME=VALUE of letters, digits, dashes, underscores and dots", name, value)
		}
	}
	labels := texts(o.Labels)
	labels[v1beta1.LabelFluxTenant] = tenant.Name
	var documents []map[string]any
	others := slices.DeleteFunc(slices.Clone(tenant.Spec.Namespaces), func(n string) bool { return n == tenant.Spec.HomeNamespace })
	for _, namespace := range append([]string{tenant.Spec.HomeNamespace}, others...) {
		meta := func(name string) map[string]any {
			return map[string]any{"name": name, "namespace": namespace, "labels": labels}
		}
		if !o.SkipNamespace {
			documents = append(documents,
				map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace, "labels": labels}})
		}
		documents = append(documents,
			map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(account)},
			map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding", "metadata": meta(tenant.Name + "-reconciler"),
				"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
				"subjects": []any{
					map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": "gotk:" + namespace + ":reconciler"},
					map[string]any{"kind": rbacv1.ServiceAccountKind, "name": account, "namespace": namespace},
				}})
	}
	return YAML(documents...)
}

// API groups and kinds of Flux. Its types are not imported: they would add all of Flux.
const (
	fluxSource    = "source.toolkit.fluxcd.io/v1"
	fluxKustomize = "kustomize.toolkit.fluxcd.io/v1"
	// applyInterval is how often Flux applies an unchanged repository.
	applyInterval = "10m"
	// retryInterval is how soon it retries after a failure, such as in a namespace that the
	// repository has just created and that is not provisioned yet.
	retryInterval = "1m"
	// fetchTimeout is Flux's own default.
	fetchTimeout = "60s"
)

// sync makes Flux apply the team's repository with the team's account.
func (r *rendering) sync() {
	if isDemo(r.Tenant) {
		r.demo()
		return
	}
	if r.Spec.Reconciler == nil || r.Spec.Reconciler.Source == nil {
		return
	}
	kind := r.source(r.Name, r.Spec.Reconciler.Source)
	spec := map[string]any{
		"force": false, "interval": applyInterval, "path": r.Spec.Reconciler.Path, "prune": true, "retryInterval": retryInterval,
		"serviceAccountName": Account(r.Tenant),
		"sourceRef":          map[string]any{"kind": kind, "name": r.Name},
	}
	if from := r.substituteFrom(); len(from) > 0 {
		spec["postBuild"] = map[string]any{"substituteFrom": from}
	}
	if alone(r.Tenant) {
		spec["targetNamespace"] = r.Spec.HomeNamespace
	}
	if r.Spec.Reconciler.CreateNamespaces {
		spec["patches"] = []any{map[string]any{"patch": r.forceLabels(), "target": map[string]any{"kind": "Namespace", "version": "v1"}}}
	}
	r.flux(fluxKustomize, "Kustomization", r.Name, spec)
}

// source renders Flux's source, and returns its kind.
func (r *rendering) source(name string, source *v1beta1.TenantSource) string {
	spec := map[string]any{"interval": string(source.Interval), "timeout": fetchTimeout, "url": source.URL}
	if source.SecretRef != nil {
		spec["secretRef"] = map[string]any{"name": source.SecretRef.Name}
	}
	if source.Exclude != "" {
		spec["ignore"] = source.Exclude
	}
	kind := "GitRepository"
	if isArtifact(source) {
		kind = "OCIRepository"
		spec["provider"], spec["ref"] = "generic", map[string]any{"tag": source.Branch}
	} else {
		spec["ref"] = map[string]any{"branch": source.Branch}
	}
	r.flux(fluxSource, kind, name, spec)
	return kind
}

// substituteFrom names the sources of variables. For Flux, the last entry wins: a team can write
// its Secrets, but not the ConfigMap.
func (r *rendering) substituteFrom() (from []any) {
	for _, secret := range r.Spec.Reconciler.VariablesFrom {
		from = append(from, map[string]any{"kind": "Secret", "name": secret.SecretRef.Name, "optional": secret.Optional})
	}
	if len(r.Spec.Reconciler.Variables) > 0 {
		from = append(from, map[string]any{"kind": "ConfigMap", "name": VariablesName, "optional": false})
	}
	return from
}

func isArtifact(source *v1beta1.TenantSource) bool { return strings.HasPrefix(source.URL, "oci://") }

func (r *rendering) flux(version, kind, name string, spec map[string]any) {
	r.objects = append(r.objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"namespace": r.Spec.HomeNamespace, "name": name, "labels": texts(r.owned())},
		"spec":     spec,
	}})
}

// forceLabels is a strategic merge patch for every namespace in the team's repository:
// regardless of the team in the file, the namespace belongs to this Tenant.
func (r *rendering) forceLabels() string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: any\n  labels:\n    %s: %q\n    %s: %q\n",
		v1beta1.LabelTenant, r.Name, v1beta1.LabelFluxTenant, r.Name)
}
