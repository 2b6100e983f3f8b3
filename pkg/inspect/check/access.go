package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about permissions.
const (
	TrustWithinReach = "TrustWithinReach"
	BroadAccess      = "BroadAccess"
)

// grant is a binding with the rules of its role.
type grant struct {
	target
	role     rbacv1.RoleRef
	rules    []rbacv1.PolicyRule
	subjects []rbacv1.Subject
}

// grants returns all bindings by their namespace, empty for those of the whole cluster.
func (v *view) grants() map[string][]grant {
	clusterRoles, roles := map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	for _, r := range v.ClusterRoles {
		clusterRoles[r.Name] = r.Rules
	}
	for _, r := range v.Roles {
		roles[r.Namespace+"/"+r.Name] = r.Rules
	}
	all := map[string][]grant{}
	for _, b := range v.ClusterRoleBindings {
		all[""] = append(all[""], grant{builtin("ClusterRoleBinding", "", b.Name), b.RoleRef, clusterRoles[b.RoleRef.Name], b.Subjects})
	}
	for _, b := range v.RoleBindings {
		rules := clusterRoles[b.RoleRef.Name]
		if b.RoleRef.Kind == "Role" {
			rules = roles[b.Namespace+"/"+b.RoleRef.Name]
		}
		all[b.Namespace] = append(all[b.Namespace], grant{builtin("RoleBinding", b.Namespace, b.Name), b.RoleRef, rules, b.Subjects})
	}
	return all
}

// writes reports whether rules let somebody change an object.
func writes(rules []rbacv1.PolicyRule, group, resource, name string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return covers(r.APIGroups, group) && covers(r.Resources, resource) &&
			(len(r.ResourceNames) == 0 || name == "" || slices.Contains(r.ResourceNames, name)) &&
			slices.ContainsFunc([]string{"update", "patch", "delete", "create"}, func(verb string) bool { return covers(r.Verbs, verb) })
	})
}

// trusted reports whether a subject belongs to the system, Landwaiter or Gatekeeper.
func (v *view) trusted(s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return slices.Contains(v.exempt(), cmp.Or(s.Namespace, namespace))
	case rbacv1.GroupKind:
		return s.Name == "system:masters" || s.Name == "system:nodes"
	}
	if account, ok := strings.CutPrefix(s.Name, "system:serviceaccount:"); ok { // an account by its user name
		of, _, _ := strings.Cut(account, ":")
		return slices.Contains(v.exempt(), of)
	}
	return strings.HasPrefix(s.Name, "system:") && s.Name != "system:anonymous"
}

// reacher returns somebody who may change an object but not the resource that names it, and
// the binding.
func (v *view) reacher(all map[string][]grant, f resource.Exposure) (who string, through grant) {
	object := strings.ToLower(f.Object.Kind) + "s"
	resource, _ := v1beta1.KindNamed(f.Resource.Kind)
	reach, owns := map[string]grant{}, map[string]bool{}
	for _, g := range slices.Concat(all[""], all[f.Object.Namespace]) {
		may, owner := writes(g.rules, "", object, f.Object.Name), writes(g.rules, v1beta1.Group, resource.Plural, f.Resource.Name)
		owner = owner && (f.Resource.Namespace != "" || g.Namespace == "") // a role of a namespace says nothing about cluster resources
		for _, s := range g.subjects {
			if v.trusted(s, g.Namespace) {
				continue
			}
			key := s.Kind + " " + s.Name
			if s.Kind == rbacv1.ServiceAccountKind {
				key = s.Kind + " " + cmp.Or(s.Namespace, g.Namespace) + "/" + s.Name
			}
			owns[key] = owns[key] || owner
			if _, known := reach[key]; may && !known {
				reach[key] = g
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(reach)) {
		if !owns[key] {
			return key, reach[key]
		}
	}
	return "", grant{}
}

// withinReach finds trust material that somebody may change without permission to change the
// resource.
func withinReach(v *view, add func(resource.Finding)) {
	all := v.grants()
	for _, f := range v.exposures() {
		who, through := v.reacher(all, f)
		if who == "" {
			continue
		}
		first := ""
		if strings.HasPrefix(f.Field, "spec.source") {
			first = "compare its status.fingerprints with your own keys and certificates first, because the command keeps what is there now"
		}
		add(resource.Finding{ID: TrustWithinReach, Severity: resource.Error, Object: f.Resource,
			Message: fmt.Sprintf("%s may change %s by %s", who, f.Object, through.ObjectRef),
			Why:     "they can, through " + f.Field + ", " + strings.TrimPrefix(f.Allows, "so "), Fix: first,
			Command: inlined(f, v.Resources), Keep: f.Fix})
	}
}

// exposures returns the exposures of all resources. Cluster resources reference objects of one namespace.
func (v *view) exposures() []resource.Exposure {
	found := resource.Exposures(v.Resources...)
	for _, o := range v.Resources {
		source := resource.RefOf(o)
		if source.Namespace != "" {
			continue
		}
		at := source
		at.Namespace = cmp.Or(v.serve.last("cluster-resource-namespace", ""), v.Namespace)
		for _, f := range resource.ExposuresOf(at, resource.SpecOf(o)) {
			f.Resource = source
			found = append(found, f)
		}
	}
	return found
}

// inlined returns the command that moves trust material from the object into the resource.
func inlined(f resource.Exposure, resources []v1beta1.Object) string {
	kind, _ := v1beta1.KindNamed(f.Resource.Kind)
	into := target{policy.ObjectRef{Kind: kind.Plural, Namespace: f.Resource.Namespace, Name: f.Resource.Name}, v1beta1.Group}
	at := slices.IndexFunc(resources, func(o v1beta1.Object) bool { return resource.RefOf(o) == f.Resource })
	key := keyOf(resources[at], f.Field)
	if !isKey(key) {
		return into.edit()
	}
	decoded := fmt.Sprintf("(index .data %q)", key)
	if f.Object.Kind == "Secret" {
		decoded = fmt.Sprintf("(index .data %q | base64decode)", key)
	}
	path := "/" + strings.ReplaceAll(parentOf(f.Field), ".", "/")
	template := fmt.Sprintf(`[{"op":"replace","path":%q,"value":{"inline":{{printf "%%q" %s}}}}]`, path, decoded)
	return fmt.Sprintf("kubectl get %s %s --namespace=%s --output=go-template=%s | kubectl patch %s --type=json --patch-file=/dev/stdin",
		strings.ToLower(f.Object.Kind), resource.ShellWord(f.Object.Name), resource.ShellWord(f.Object.Namespace),
		resource.ShellWord(template), into)
}

// parentOf returns the field that has a reference and can have the trust material instead.
func parentOf(field string) string {
	return strings.TrimSuffix(strings.TrimSuffix(field, ".secretKeyRef"), ".configMapKeyRef")
}

// keyOf returns the key that a resource names in a Secret or ConfigMap, if the material can
// be in the resource instead.
func keyOf(o v1beta1.Object, field string) string {
	var secret, config *v1beta1.KeyReference
	switch spec := resource.SpecOf(o).(type) {
	case *v1beta1.TrustStoreSpec:
		if parentOf(field) == "spec.source" {
			secret, config = spec.Source.SecretKeyRef, spec.Source.ConfigMapKeyRef
		}
	case *v1beta1.StoreSpec:
		if parentOf(field) == "spec.caBundle" && spec.CABundle != nil {
			secret, config = spec.CABundle.SecretKeyRef, spec.CABundle.ConfigMapKeyRef
		}
	}
	switch {
	case secret != nil:
		return secret.Key
	case config != nil:
		return config.Key
	}
	return ""
}

// everybody are the subjects that include everyone.
func everybody(s rbacv1.Subject) bool {
	return s.Kind == rbacv1.GroupKind &&
		slices.Contains([]string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts"}, s.Name) ||
		s.Kind == rbacv1.UserKind && s.Name == "system:anonymous"
}

// broad finds bindings that let everybody change resources.
func broad(v *view, add func(resource.Finding)) {
	all := v.grants()
	for _, namespace := range slices.Sorted(maps.Keys(all)) {
		for _, g := range all[namespace] {
			at := slices.IndexFunc(g.subjects, everybody)
			if at < 0 || !changes(g.rules) {
				continue
			}
			s := g.subjects[at]
			add(resource.Finding{ID: BroadAccess, Severity: resource.Error, Object: g.ObjectRef,
				Message: fmt.Sprintf("it lets %s %s change resources of %s", s.Kind, s.Name, v1beta1.Group),
				Why:     "anyone who can reach the API server decides which images are trusted",
				Command: g.patch(operation{"test", "/subjects/" + strconv.Itoa(at) + "/name", s.Name},
					operation{Op: "remove", Path: "/subjects/" + strconv.Itoa(at)})})
		}
	}
}

// changes reports whether rules let somebody change any resource, or act as the platform.
func changes(rules []rbacv1.PolicyRule) bool {
	return writes(rules, v1beta1.Group, "tenantlabels", "") || slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return covers(r.APIGroups, v1beta1.Group) && slices.Contains(r.Resources, "tenantlabels") && covers(r.Verbs, "manage")
	}) || slices.ContainsFunc(v1beta1.Kinds(), func(k v1beta1.Kind) bool { return writes(rules, v1beta1.Group, k.Plural, "") })
}
